package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/sense"
	"github.com/ringiflow/ringi/store"
)

const (
	// handover is the lease of a task until its worker shows that it received
	// it: what a poll answer that got lost costs.
	handover    = 5 * time.Second
	longestPoll = sense.LongestPoll
	// mostPerPoll bounds what one lost answer can hold up.
	mostPerPoll = 256
	// pollFallback is how long a task may stay unseen when every wake-up was
	// lost or it was made ready on another node.
	pollFallback = time.Second
	// homeFor is how long a task that is ready is left to the node that made it so,
	// where there are several: that node has the run in memory, and its next task is
	// born leased there. A worker of another node waits for so long at the least.
	homeFor = 250 * time.Millisecond
	// mostPolls bounds the memory that waiting polls take.
	mostPolls = 20_000
)

// A dispatcher hands tasks to the polls that wait for them: those that a
// commit of this node makes, in that commit; all others by claims. Safe for
// concurrent use, apart from Round.
type dispatcher struct {
	*parts
	wake chan struct{}

	mu       sync.Mutex
	lines    []*line // in order of their making
	waiting  int
	ticket   uint64
	back     []store.Lapse // hand-outs whose caller went away
	draining bool
	seen     sense.Roster
	told     time.Time // what the other nodes know of it; for the rounds of tell only
}

// A line is the polls that wait for the same kind of tasks.
type line struct {
	tenant     ringi.Tenant
	queue      string
	activities []string // nil: all of the queue

	polls  []*poll // waiting, first come first served
	wishes []*wish // standing
	rests  []*wish // of workers that are about to ask again
	ready  sense.Ready
	used   time.Time
}

// serves reports whether a task belongs to the line.
func (l *line) serves(tenant ringi.Tenant, queue, activity string) bool {
	return l.tenant == tenant && l.queue == queue && (l.activities == nil || slices.Contains(l.activities, activity))
}

func (d *dispatcher) line(req ringi.PollRequest, now time.Time) *line {
	for _, l := range d.lines {
		if l.tenant == req.Tenant && l.queue == req.Queue && slices.Equal(l.activities, req.Activities) {
			l.used = now
			return l
		}
	}
	l := &line{tenant: req.Tenant, queue: req.Queue, activities: req.Activities, used: now}
	d.lines = append(d.lines, l)
	return l
}

// claim takes ready tasks of a line from the store: with other nodes on it first
// those that this one has made ready, and then what stands there for longer. The
// first claim takes all, since of what was made before the line nothing is known.
func (d *dispatcher) claim(ctx context.Context, l *line, req ringi.PollRequest) ([]handOut, error) {
	home := d.home()
	d.mu.Lock()
	first := l.ready.Unseen()
	d.mu.Unlock()
	if home == 0 || first {
		return d.claimOldest(ctx, l, req, 0)
	}
	own, err := d.claimOwn(ctx, l, req)
	d.mu.Lock()
	enough := len(own) == req.Max || !l.ready.MayHoldOthers(d.clock.Now())
	d.mu.Unlock()
	if err != nil || enough {
		return own, err
	}
	req.Max -= len(own)
	others, err := d.claimOldest(ctx, l, req, home)
	if len(own) > 0 {
		err = nil // the next claim shows what is wrong
	}
	return append(own, others...), err
}

// home is homeFor where there are several nodes, and else nothing.
func (d *dispatcher) home() time.Duration {
	if d.fleet.others.Load() == 0 {
		return 0
	}
	return homeFor
}

// claimOwn takes the oldest of the tasks that this node has made ready. Whatever
// of them is not there any more is forgotten.
func (d *dispatcher) claimOwn(ctx context.Context, l *line, req ringi.PollRequest) ([]handOut, error) {
	d.mu.Lock()
	own := l.ready.Take(req.Max)
	d.mu.Unlock()
	if len(own.Tasks) == 0 {
		return nil, nil
	}
	now := d.clock.Now()
	claimed, err := d.Store.Claim(ctx, store.Claim{Queue: req.Queue, Worker: req.Worker, Max: req.Max, Now: now, Handover: handover, Only: own.Tasks})
	err = d.reach.Wrote(ctx, 0, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		l.ready.Return(own)
		return nil, unavailable(err)
	}
	return d.unpack(claimed, now), nil
}

// claimOldest takes the tasks that stand ready for longest, and at least for so
// long.
func (d *dispatcher) claimOldest(ctx context.Context, l *line, req ringi.PollRequest, least time.Duration) ([]handOut, error) {
	now := d.clock.Now()
	d.mu.Lock()
	look := l.ready.Begin(now, least)
	d.mu.Unlock()
	defer d.claimEnded(l)
	claimed, err := d.Store.Claim(ctx, store.Claim{
		Tenant: req.Tenant, Queue: req.Queue, Activities: req.Activities, Worker: req.Worker,
		Max: req.Max, Now: now, Due: now.Add(-least), Handover: handover,
	})
	if d.reach.Wrote(ctx, 0, err) != nil {
		return nil, unavailable(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.ready.Saw(look, claimed, len(claimed) < req.Max, now.Add(pollFallback))
	return d.unpack(claimed, now), nil
}

// claimEnded says that one claim of the line fewer is under way.
func (d *dispatcher) claimEnded(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.ready.End()
}

// unpack makes tasks of what was claimed. One that cannot be read is given
// back and holds up none of the others. The caller holds the lock.
func (d *dispatcher) unpack(claimed []store.Claimed, now time.Time) []handOut {
	outs := make([]handOut, 0, len(claimed))
	logs := logRows{}
	for _, c := range claimed {
		back := store.Lapse{Key: c.Key, Lane: c.Row.Lane, Token: c.Token, LeaseEnd: now.Add(handover)}
		t, err := logs.task(c)
		if err != nil {
			d.log.Error("a task cannot be handed out", "run", c.Key.Run, "step", c.Row.Step, "err", err)
			back.ReadyAt = now.Add(quarantineFor)
			d.back = append(d.back, back)
			continue
		}
		outs = append(outs, handOut{task: t, back: back})
	}
	return d.sift(outs)
}

// sift keeps the tasks whose time has come, and puts the others back. The caller
// holds the lock.
func (d *dispatcher) sift(outs []handOut) []handOut {
	if d.Later == nil || len(outs) == 0 || (ringi.Actor{}).Serves(outs[0].task.Queue) {
		return outs
	}
	now := d.clock.Now()
	kept := outs[:0]
	for _, o := range outs {
		wait := d.Later(o.task)
		if wait <= 0 {
			kept = append(kept, o)
			continue
		}
		o.back.ReadyAt, o.back.Unsent = now.Add(wait), true
		d.back = append(d.back, o.back)
		for _, l := range d.lines {
			if l.serves(o.task.Tenant, o.task.Queue, o.task.Activity) {
				l.ready.PutOff(o.back.ReadyAt.Add(d.home()))
			}
		}
	}
	if len(d.back) > 0 {
		signal(d.wake)
	}
	return kept
}

// Round gives back what went to nobody and claims for the lines that may have
// something. It stops at the first failure; the next round goes on.
func (d *dispatcher) Round(ctx context.Context) (worked bool, err error) {
	if err := d.settleBack(ctx); err != nil {
		return false, err
	}
	for _, l := range d.due() {
		for {
			p := d.first(l)
			if p == nil {
				break
			}
			outs, err := d.claimFor(ctx, p)
			worked = worked || len(outs) > 0
			d.mu.Lock()
			d.fill(p, outs)
			more := !l.ready.Empty()
			d.mu.Unlock()
			if err == nil && d.Later != nil {
				err = d.settleBack(ctx) // of each claim, lest they pile up
			}
			if err != nil {
				return worked, err
			}
			if !more {
				break
			}
		}
	}
	return worked, nil
}

func (d *dispatcher) settleBack(ctx context.Context) error {
	d.mu.Lock()
	back := d.back
	d.back = nil
	d.mu.Unlock()
	if len(back) == 0 {
		return nil
	}
	// If this fails the leases end by themselves.
	return d.reach.Wrote(ctx, 0, d.Store.Settle(ctx, store.Settlement{Lapses: back}))
}

// due lists the lines to claim for, and forgets those that nobody used lately.
func (d *dispatcher) due() []*line {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.Forget(now)
	d.lines = slices.DeleteFunc(d.lines, func(l *line) bool {
		d.expire(l, now)
		return len(l.polls)+len(l.wishes)+len(l.rests) == 0 && now.Sub(l.used) > sense.RosterKeep
	})
	var due []*line
	for _, l := range d.lines {
		if len(l.polls) > 0 && l.ready.MayHold(now) {
			due = append(due, l)
		}
	}
	return due
}

// first takes the poll out of the line that came first.
func (d *dispatcher) first(l *line) *poll {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.polls) == 0 {
		return nil
	}
	p := l.polls[0]
	d.step(p)
	p.taken = true
	return p
}

// pause is how long the next round can wait if nothing wakes it.
func (d *dispatcher) pause() time.Duration {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	pause := pollFallback
	for _, l := range d.lines {
		if len(l.polls) > 0 {
			pause = min(pause, l.ready.Next().Sub(now))
		}
		for _, r := range l.rests {
			if r.promised == 0 {
				pause = min(pause, r.until.Sub(now))
			}
		}
	}
	return max(pause, time.Millisecond)
}

// ready says that a task became ready, or will be at a time. It is a hint: the
// fallback finds the task without it.
func (d *dispatcher) ready(key store.Key, row *ringi.TaskRow) {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		if !l.serves(key.Tenant, row.Queue, row.Activity) {
			continue
		}
		if row.ReadyAt.After(now) {
			if l.ready.Later(row.ReadyAt.Add(d.home())) {
				signal(d.wake)
			}
			continue
		}
		l.ready.Made(readyTask(key, row))
		if len(l.polls) > 0 {
			signal(d.wake)
		}
	}
}

func readyTask(key store.Key, row *ringi.TaskRow) sense.ReadyTask {
	return sense.ReadyTask{TaskRef: store.TaskRef{Key: key, Lane: row.Lane}, Seq: row.Seq}
}

// alive notes a worker's heartbeat.
func (d *dispatcher) alive(tenant ringi.Tenant, worker string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.Beat(tenant, worker, now)
}

// drain ends every poll that waits and takes no new one.
func (d *dispatcher) drain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
	for _, l := range d.lines {
		for _, p := range l.polls {
			p.taken = true
			p.got <- nil
		}
		d.waiting -= len(l.polls)
		l.polls = nil
		for _, r := range l.rests {
			d.end(r)
		}
		l.rests = nil
	}
}

func draining() error {
	return &ringi.Error{Code: ringi.CodeUnavailable, Message: "the server is shutting down", Hint: "try again in a moment, or another server"}
}
