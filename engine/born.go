package engine

import (
	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A reservation is the polls and wishes that one batch took for the tasks that
// it makes. While a batch has a poll, no claim and no other batch can fill it; a
// wish is only promised a task.
type reservation struct {
	polls []*reserved
	wants map[*ringi.PollRequest]bool // of the batch's own commands: answered with it
	given map[string]int              // tasks by worker
}

// expect notes what the commands of a batch want with their answers.
func (r *reservation) expect(groups []*group) {
	for _, g := range groups {
		for _, v := range g.answers {
			if want := wantOf(v.cmd.Do); want != nil {
				if r.wants == nil {
					r.wants = map[*ringi.PollRequest]bool{}
				}
				r.wants[want] = true
			}
		}
	}
}

// A reserved is a poll or a wish of which a batch makes use.
type reserved struct {
	*poll
	*wish
	promised int // what was taken of the wish's room
	outs     []bornLeased
}

func (r *reserved) worker() string {
	if r.wish != nil {
		return r.wish.req.Worker
	}
	return r.poll.req.Worker
}

// A bornLeased task is written under the lease of the poll that will get it.
type bornLeased struct {
	group *group
	handOut
}

// reserve looks for waiting polls for the tasks that a write makes, and marks
// those as handed out. A task is born leased only when nothing older can wait
// in its queue: the last claim for that poll found nothing more.
func (d *dispatcher) reserve(r *reservation, g *group, w *store.Write) {
	now := d.clock.Now()
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if t.Row == nil || !t.Fresh || t.Row.Held || t.Row.ReadyAt.After(now) || t.Row.Begun != 0 {
			continue
		}
		task, err := taskOf(g.key, g.after.Definition, g.after.Version, *t.Row, t.Row.Token(1), g.events)
		if err != nil {
			continue // its input stands in an earlier row: a claim reads it from there
		}
		p := d.reservePoll(r, g.key, t.Row)
		if p == nil {
			continue
		}
		t.Lease = &store.Lease{Worker: p.worker(), Until: now.Add(handover), At: now}
		p.outs = append(p.outs, bornLeased{group: g, handOut: handOut{task: task, back: store.Lapse{
			Key: g.key, Lane: t.Lane, Token: task.Token, LeaseEnd: t.Lease.Until,
		}}})
	}
}

// A claimant is a poll or a wish with room for a task.
type claimant struct {
	reserved
	load   int // tasks that the batch gives its worker already
	late   lateness
	ticket uint64
}

// lateness is when a claimant is answered.
type lateness int

const (
	withBatch  lateness = iota
	afterBatch          // with a later one
	asksAgain           // when its worker asks again
)

// before orders claimants: those that are there before those that will be, by
// what their workers are given, so that a burst spreads over workers, by when
// they are answered, and by how long they waited.
func (c *claimant) before(o *claimant) bool {
	switch {
	case (c.late == asksAgain) != (o.late == asksAgain):
		return o.late == asksAgain
	case c.load != o.load:
		return c.load < o.load
	case c.late != o.late:
		return c.late < o.late
	}
	return c.ticket < o.ticket
}

// reservePoll finds who gets a task; nil is nobody, and then a claim will find it.
//
// A wish may take a task although others stand ready if all of those are known
// and it has room for them too, since it claims them in the end.
func (d *dispatcher) reservePoll(r *reservation, key store.Key, row *ringi.TaskRow) *reserved {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var best claimant
	found := false
	consider := func(c claimant) {
		c.load = r.given[c.worker()]
		if !found || c.before(&best) {
			best, found = c, true
		}
	}
	for _, l := range d.lines {
		if !l.serves(key.Tenant, row.Queue, row.Activity) || !l.ready.Sure(now) {
			continue
		}
		for _, w := range l.wishes {
			if w.room() > l.ready.Known() {
				late := afterBatch
				if r.wants[w.of] {
					late = withBatch
				}
				consider(claimant{reserved: reserved{wish: w}, late: late, ticket: w.ticket})
			}
		}
		if l.ready.Known() > 0 {
			continue
		}
		if len(l.polls) > 0 {
			consider(claimant{reserved: reserved{poll: l.polls[0]}, ticket: l.polls[0].ticket})
		}
		for _, w := range l.rests {
			if w.room() > 0 {
				consider(claimant{reserved: reserved{wish: w}, late: asksAgain, ticket: w.ticket})
			}
		}
		for _, p := range r.polls {
			if p.poll != nil && p.poll.line == l && len(p.outs) < p.poll.req.Max {
				consider(claimant{reserved: reserved{poll: p.poll}, ticket: p.poll.ticket})
			}
		}
	}
	if !found {
		d.expect(key, row)
		return nil
	}
	if r.given == nil {
		r.given = map[string]int{}
	}
	r.given[best.worker()]++
	return d.reserved(r, best.reserved)
}

// reserved is the batch's entry for a poll or wish, made when it has none yet.
// The caller holds the lock.
func (d *dispatcher) reserved(r *reservation, of reserved) *reserved {
	if of.wish != nil {
		of.wish.promised++
	}
	for _, p := range r.polls {
		if p.poll == of.poll && p.wish == of.wish {
			p.promised++
			return p
		}
	}
	of.promised = 1
	if of.poll != nil {
		d.step(of.poll)
		of.poll.taken = true
	}
	r.polls = append(r.polls, &of)
	return &of
}

// expect notes that a task will be claimed. The caller holds the lock.
func (d *dispatcher) expect(key store.Key, row *ringi.TaskRow) {
	for _, l := range d.lines {
		if l.serves(key.Tenant, row.Queue, row.Activity) {
			l.ready.Expect(readyTask(key, row))
		}
	}
}

// release takes back what was reserved for a group whose write does not hold.
func (d *dispatcher) release(r *reservation, g *group) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		l.ready.Forget(g.key)
	}
	for _, p := range r.polls {
		kept := p.outs[:0]
		for _, o := range p.outs {
			if o.group != g {
				kept = append(kept, o)
			}
		}
		p.outs = kept
	}
}

// settle hands over what the commit has made true. A poll that got nothing
// stands in line again, where it stood.
func (d *dispatcher) settle(r *reservation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range r.polls {
		outs := make([]handOut, len(p.outs))
		for i, o := range p.outs {
			outs[i] = o.handOut
		}
		outs = d.sift(outs)
		if p.wish != nil {
			d.fulfil(p.wish, p.promised, outs)
		} else {
			d.fill(p.poll, outs)
		}
	}
	*r = reservation{}
}
