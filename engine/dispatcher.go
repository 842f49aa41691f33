package engine

import (
	"context"
	"maps"
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

	polls   []*poll              // waiting, first come first served
	wishes  []*wish              // standing
	rests   []*wish              // of workers that are about to ask again
	sure    bool                 // nothing stands ready but what is in fresh, as far as this node knows
	fresh   map[readyTask]uint64 // what was made ready here and may still stand so, by gen
	coming  map[readyTask]bool   // what commits under way make ready; true: claimed already
	claims  int                  // under way
	gone    map[readyTask]bool   // taken out of fresh by one claim; another may have got it
	gen     uint64               // grows whenever something was made ready
	blind   uint64               // the last gen that fresh had no room for
	checkAt time.Time            // when it is claimed for whatever is known
	soon    time.Time            // when the next retry or give-back becomes ready; zero: none is known
	turns   []time.Time          // when those that Later put off become ready, in order
	used    time.Time
}

// A readyTask is an attempt that waits for a worker.
type readyTask struct {
	key  store.Key
	lane int
	seq  int64
}

// mostFresh bounds the memory of a queue that no worker serves.
const mostFresh = 1024

// expects notes that a commit which is about to be sent makes a task ready: a
// claim can see it before this node hears that it was committed.
func (l *line) expects(t readyTask) {
	if l.coming == nil {
		l.coming = map[readyTask]bool{}
	}
	l.coming[t] = false
}

// made notes that a task was made ready.
func (l *line) made(t readyTask) {
	claimed := l.coming[t]
	delete(l.coming, t)
	if claimed {
		return
	}
	l.gen++
	if len(l.fresh) >= mostFresh {
		l.blind, l.sure = l.gen, false
		return
	}
	if l.fresh == nil {
		l.fresh = map[readyTask]uint64{}
	}
	l.fresh[t] = l.gen
}

// claimed notes what a claim found that began when the line was at gen. When it
// found all, whatever was ready before it is gone, and only what was made ready
// meanwhile may still stand. The rejected alternative, to forget nothing until
// nothing is made ready during a claim, never comes to an end under load: then
// every task is claimed, which costs a commit, and none is born leased.
func (l *line) claimed(list []store.Claimed, gen uint64, all bool) {
	for _, c := range list {
		t := readyTask{c.Key, c.Row.Lane, c.Row.Seq}
		_, coming := l.coming[t]
		if coming {
			l.coming[t] = true
		}
		if _, fresh := l.fresh[t]; !fresh && !coming && !l.gone[t] && !all {
			l.sure = false // another node made it ready, or an earlier process, and perhaps more
		}
		delete(l.fresh, t)
	}
	if !all {
		return
	}
	maps.DeleteFunc(l.fresh, func(t readyTask, at uint64) bool {
		if at <= gen && l.claims > 1 {
			if l.gone == nil {
				l.gone = map[readyTask]bool{}
			}
			l.gone[t] = true
		}
		return at <= gen
	})
	l.sure = l.blind <= gen
}

// empty reports whether nothing stands ready.
func (l *line) empty() bool { return l.sure && len(l.fresh) == 0 }

// putOff notes when a task that Later put off becomes ready. All those times are
// kept, not only the next: each claim takes those that are due, and the next ones
// would wait for the fallback.
func (l *line) putOff(at time.Time) {
	i, _ := slices.BinarySearchFunc(l.turns, at, time.Time.Compare)
	l.turns = slices.Insert(l.turns, i, at)
	if len(l.turns) > mostFresh {
		l.turns = l.turns[:mostFresh] // the fallback finds the rest
	}
}

// overdue reports whether a task whose time was known stands ready by now.
func (l *line) overdue(now time.Time) bool {
	return !l.soon.IsZero() && !l.soon.After(now) || len(l.turns) > 0 && !l.turns[0].After(now)
}

// next is when the line is claimed for at the latest.
func (l *line) next() time.Time {
	next := l.checkAt
	if !l.soon.IsZero() && l.soon.Before(next) {
		next = l.soon
	}
	if len(l.turns) > 0 && l.turns[0].Before(next) {
		next = l.turns[0]
	}
	return next
}

// mayHold reports whether a claim may find something.
func (l *line) mayHold(now time.Time) bool { return !l.empty() || !now.Before(l.next()) }

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

// claim takes ready tasks of a line from the store.
func (d *dispatcher) claim(ctx context.Context, l *line, req ringi.PollRequest) ([]handOut, error) {
	now := d.clock.Now()
	d.mu.Lock()
	gen := l.gen
	l.claims++
	d.mu.Unlock()
	defer d.claimEnded(l)
	claimed, err := d.Store.Claim(ctx, store.Claim{
		Tenant: req.Tenant, Queue: req.Queue, Activities: req.Activities, Worker: req.Worker,
		Max: req.Max, Now: now, Handover: handover,
	})
	if d.reach.Wrote(ctx, 0, err) != nil {
		return nil, unavailable(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l.checkAt = now.Add(pollFallback)
	if !l.soon.After(now) {
		l.soon = time.Time{}
	}
	if len(claimed) < req.Max { // else more of them may stand ready
		due, _ := slices.BinarySearchFunc(l.turns, now.Add(1), time.Time.Compare)
		l.turns = slices.Delete(l.turns, 0, due)
	}
	l.claimed(claimed, gen, len(claimed) < req.Max)
	return d.unpack(claimed, now), nil
}

// claimEnded says that one claim of the line fewer is under way.
func (d *dispatcher) claimEnded(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.claims--; l.claims == 0 {
		l.gone = nil
	}
}

// unpack makes tasks of what was claimed. One that cannot be read is given
// back and holds up none of the others. The caller holds the lock.
func (d *dispatcher) unpack(claimed []store.Claimed, now time.Time) []handOut {
	outs := make([]handOut, 0, len(claimed))
	for _, c := range claimed {
		back := store.Lapse{Key: c.Key, Lane: c.Row.Lane, Token: c.Token, LeaseEnd: now.Add(handover)}
		t, err := taskOfClaim(c)
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
				l.putOff(o.back.ReadyAt)
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
			more := !l.empty()
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
		if len(l.polls) > 0 && l.mayHold(now) {
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
			pause = min(pause, l.next().Sub(now))
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
			if l.soon.IsZero() || row.ReadyAt.Before(l.soon) {
				l.soon = row.ReadyAt
				signal(d.wake)
			}
			continue
		}
		l.made(readyTask{key, row.Lane, row.Seq})
		if len(l.polls) > 0 {
			signal(d.wake)
		}
	}
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
