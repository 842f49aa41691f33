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
	now := d.clock.now()
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if t.Row == nil || !t.Fresh || t.Row.Held || t.Row.ReadyAt.After(now) || t.Row.Begun != 0 {
			continue
		}
		task, err := taskOf(g.key, g.after.Definition, g.after.Version, *t.Row, t.Row.Token(1), g.events)
		if err != nil {
			continue // its input stands in an earlier row: a claim reads it from there
		}
		p := d.reservePoll(r, g.key.Tenant, t.Row)
		if p == nil {
			continue
		}
		t.Lease = &store.Lease{Worker: p.worker(), Until: now.Add(handover), At: now}
		p.outs = append(p.outs, bornLeased{group: g, handOut: handOut{task: task, back: store.Lapse{
			Key: g.key, Lane: t.Lane, Token: task.Token, LeaseEnd: t.Lease.Until,
		}}})
	}
}

// reservePoll finds who gets a task: of the polls and wishes with room the one
// that is given least, so that a burst spreads over workers, and among those
// the one that has waited longest. nil is nobody.
//
// A wish may take a task although others stand ready if all of those are known
// and it has room for them too, since it claims them in the end.
func (d *dispatcher) reservePoll(r *reservation, tenant ringi.Tenant, row *ringi.TaskRow) *reserved {
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var best reserved
	load, ticket := 0, uint64(0)
	consider := func(of reserved, l int, t uint64) {
		if best.poll == nil && best.wish == nil || l < load || l == load && t < ticket {
			best, load, ticket = of, l, t
		}
	}
	for _, l := range d.lines {
		if l.tenant != tenant || l.queue != row.Queue || !l.takes(row.Activity) || !l.sure || !l.soon.IsZero() && !l.soon.After(now) {
			continue
		}
		for _, w := range l.wishes {
			if w.room() > len(l.fresh) {
				consider(reserved{wish: w}, len(w.held)+w.promised, w.ticket)
			}
		}
		if len(l.fresh) > 0 {
			continue
		}
		if len(l.polls) > 0 {
			consider(reserved{poll: l.polls[0]}, 0, l.polls[0].ticket)
		}
		for _, p := range r.polls {
			if p.poll != nil && p.poll.line == l && len(p.outs) < p.poll.req.Max {
				consider(reserved{poll: p.poll}, len(p.outs), p.poll.ticket)
			}
		}
	}
	if best.poll == nil && best.wish == nil {
		return nil
	}
	return d.reserved(r, best)
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

// release takes back what was reserved for a group whose write does not hold.
func (r *reservation) release(g *group) {
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
		if p.wish != nil {
			d.fulfil(p.wish, p.promised, outs)
		} else {
			d.fill(p.poll, outs)
		}
	}
	r.polls = nil
}
