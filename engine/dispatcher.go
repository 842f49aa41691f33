package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// handover is the lease of a task until its worker shows that it received
	// it: what a poll answer that got lost costs.
	handover = 5 * time.Second
	// longestPoll ends below the idle time-outs of common proxies.
	longestPoll = 20 * time.Second
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
	seen     roster
}

// A line is the polls that wait for the same kind of tasks.
type line struct {
	tenant     ringi.Tenant
	queue      string
	activities []string // nil: all of the queue

	polls   []*poll   // waiting, first come first served
	empty   bool      // the last claim found nothing more, and nothing was made ready since
	gen     uint64    // grows whenever something was made ready
	checkAt time.Time // when it is claimed for whatever is known
	soon    time.Time // when the next retry or give-back becomes ready; zero: none is known
	used    time.Time
}

// next is when the line is claimed for at the latest.
func (l *line) next() time.Time {
	if !l.soon.IsZero() && l.soon.Before(l.checkAt) {
		return l.soon
	}
	return l.checkAt
}

// mayHold reports whether a claim may find something.
func (l *line) mayHold(now time.Time) bool { return !l.empty || !now.Before(l.next()) }

func (l *line) takes(activity string) bool {
	return l.activities == nil || slices.Contains(l.activities, activity)
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

// claim takes ready tasks from the store for one poll.
func (d *dispatcher) claim(ctx context.Context, p *poll) ([]handOut, error) {
	now := d.clock.now()
	d.mu.Lock()
	gen := p.line.gen
	d.mu.Unlock()
	claimed, err := d.Store.Claim(ctx, store.Claim{
		Tenant: p.req.Tenant, Queue: p.req.Queue, Activities: p.req.Activities, Worker: p.req.Worker,
		Max: p.req.Max, Now: now, Handover: handover,
	})
	if d.reach.note(ctx, err) != nil {
		return nil, unavailable(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.line.checkAt = now.Add(pollFallback)
	if !p.line.soon.After(now) {
		p.line.soon = time.Time{}
	}
	if p.line.gen == gen {
		p.line.empty = len(claimed) < p.req.Max
	}
	return d.unpack(claimed, now), nil
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
	return outs
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
			outs, err := d.claim(ctx, p)
			worked = worked || len(outs) > 0
			d.mu.Lock()
			d.fill(p, outs)
			more := !l.empty
			d.mu.Unlock()
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
	return d.reach.note(ctx, d.Store.Settle(ctx, store.Settlement{Lapses: back}))
}

// due lists the lines to claim for, and forgets those that nobody used lately.
func (d *dispatcher) due() []*line {
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.forget(now)
	d.lines = slices.DeleteFunc(d.lines, func(l *line) bool {
		return len(l.polls) == 0 && now.Sub(l.used) > rosterKeep
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
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	pause := pollFallback
	for _, l := range d.lines {
		if len(l.polls) > 0 {
			pause = min(pause, l.next().Sub(now))
		}
	}
	return max(pause, time.Millisecond)
}

// ready says that a task became ready, or will be at a time. It is a hint: the
// fallback finds the task without it.
func (d *dispatcher) ready(tenant ringi.Tenant, row *ringi.TaskRow) {
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		if l.tenant != tenant || l.queue != row.Queue || !l.takes(row.Activity) {
			continue
		}
		if row.ReadyAt.After(now) {
			if l.soon.IsZero() || row.ReadyAt.Before(l.soon) {
				l.soon = row.ReadyAt
				signal(d.wake)
			}
			continue
		}
		l.gen++
		l.empty = false
		if len(l.polls) > 0 {
			signal(d.wake)
		}
	}
}

// alive notes a worker's heartbeat.
func (d *dispatcher) alive(tenant ringi.Tenant, worker string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.beat(tenant, worker, now)
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
	}
}

func draining() error {
	return &ringi.Error{Code: ringi.CodeUnavailable, Message: "the server is shutting down", Hint: "try again in a moment, or another server"}
}
