package engine

import (
	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A reservation is the polls that one batch took for the tasks that it makes.
// While a batch has a poll, no claim and no other batch can fill it.
type reservation struct {
	polls []*reserved
}

type reserved struct {
	*poll
	outs []bornLeased
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
		t.Lease = &store.Lease{Worker: p.req.Worker, Until: now.Add(handover), At: now}
		p.outs = append(p.outs, bornLeased{group: g, handOut: handOut{task: task, back: store.Lapse{
			Key: g.key, Lane: t.Lane, Token: task.Token, LeaseEnd: t.Lease.Until,
		}}})
	}
}

// reservePoll takes the poll that has waited longest, or else fills up one
// that the batch has already: a burst spreads over workers first.
func (d *dispatcher) reservePoll(r *reservation, tenant ringi.Tenant, row *ringi.TaskRow) *reserved {
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	fits := func(l *line) bool {
		return l.tenant == tenant && l.queue == row.Queue && l.takes(row.Activity) &&
			l.empty && (l.soon.IsZero() || l.soon.After(now))
	}
	var first *poll
	for _, l := range d.lines {
		if fits(l) && len(l.polls) > 0 && (first == nil || l.polls[0].ticket < first.ticket) {
			first = l.polls[0]
		}
	}
	if first != nil {
		d.step(first)
		first.taken = true
		p := &reserved{poll: first}
		r.polls = append(r.polls, p)
		return p
	}
	for _, p := range r.polls {
		if fits(p.line) && len(p.outs) < p.req.Max {
			return p
		}
	}
	return nil
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
		d.fill(p.poll, outs)
	}
	r.polls = nil
}
