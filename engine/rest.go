package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// restFor is how long a worker that was answered has to ask again, over a
// network too. What was born for one that does not is given back after it.
const restFor = 200 * time.Millisecond

// A worker that got less than it asked for asks again as soon as it has read the
// answer. Tasks that are made in between would have to be claimed, each with a
// row and all of them with a commit more, and that is a good part of a busy
// worker's time. So what was left of its request, its rest, stays in line for a
// moment: tasks are born for it when nobody else is there, and handed over when
// it asks. A rest is a wish that no report waits for; of a worker there is at most
// one in a line.

// leave keeps what is left of a request that is answered with so many tasks. A
// poll that ends without any leaves nothing. The caller holds the lock.
func (d *dispatcher) leave(l *line, req ringi.PollRequest, tasks int) {
	room := req.Max - tasks
	if room <= 0 || tasks == 0 && req.Wait > 0 || d.draining {
		return
	}
	r := l.restOf(req.Worker)
	if r == nil {
		d.ticket++
		r = &wish{req: req, line: l, ticket: d.ticket}
		r.req.Max = 0
		l.rests = append(l.rests, r)
	}
	r.req.Max += room
	r.until = d.clock.Now().Add(restFor)
}

// rest reports whether the wish is one.
func (w *wish) rest() bool { return !w.until.IsZero() }

func (l *line) restOf(worker string) *wish {
	for _, r := range l.rests {
		if r.req.Worker == worker {
			return r
		}
	}
	return nil
}

// collect ends the rest of a worker that asks again, and returns what it holds as
// far as the new request has room. The caller holds the lock.
func (d *dispatcher) collect(l *line, req ringi.PollRequest) []handOut {
	r := l.restOf(req.Worker)
	if r == nil {
		return nil
	}
	outs := r.take(req.Max)
	r.req.Max = len(r.held) + r.promised
	l.tidy()
	return outs
}

// claimFor claims for a poll. When there is hardly more than what is known of, half
// of its room stays in line as a rest: else what is made during the claim would be
// the reason for the next.
func (d *dispatcher) claimFor(ctx context.Context, p *poll) ([]handOut, error) {
	if p.req.Wait <= 0 {
		return d.claim(ctx, p.line, p.req)
	}
	req := p.req
	d.mu.Lock()
	req.Max = max(p.line.ready.Bound(req.Max), (req.Max+1)/2)
	d.leave(p.line, p.req, req.Max)
	d.mu.Unlock()
	outs, err := d.claim(ctx, p.line, req)
	d.mu.Lock()
	defer d.mu.Unlock()
	req.Max = p.req.Max - len(outs)
	meanwhile := d.collect(p.line, req)
	if err != nil {
		d.putBack(meanwhile)
		return nil, err
	}
	return append(outs, meanwhile...), nil
}

// take takes at most n tasks out of what a wish holds.
func (w *wish) take(n int) []handOut {
	n = min(n, len(w.held))
	outs := w.held[:n:n]
	w.held = w.held[n:]
	return outs
}

// tidy drops the rests of which nothing is left.
func (l *line) tidy() {
	l.rests = slices.DeleteFunc(l.rests, func(r *wish) bool { return r.req.Max == 0 && r.promised == 0 })
}

// forward gives what was born for a rest to what its worker has asked for
// meanwhile. The caller holds the lock.
func (d *dispatcher) forward(r *wish) {
	l := r.line
	for _, w := range l.wishes {
		if w.req.Worker == r.req.Worker {
			outs := r.take(w.room())
			r.req.Max -= len(outs)
			w.held = append(w.held, outs...)
		}
	}
	for _, p := range slices.Clone(l.polls) {
		if p.req.Worker == r.req.Worker && len(r.held) > 0 {
			outs := r.take(p.req.Max)
			r.req.Max -= len(outs)
			d.step(p)
			p.taken = true
			d.fill(p, outs)
		}
	}
	r.until = d.clock.Now().Add(restFor)
	l.tidy()
}

// expire ends the rests of workers that did not come back. The caller holds the
// lock.
func (d *dispatcher) expire(l *line, now time.Time) {
	l.rests = slices.DeleteFunc(l.rests, func(r *wish) bool {
		over := r.promised == 0 && !now.Before(r.until)
		if over {
			d.end(r)
		}
		return over
	})
}

// end gives back what a rest holds, and what it is still promised once that is
// settled. The caller holds the lock.
func (d *dispatcher) end(r *wish) {
	d.putBack(r.held)
	r.held, r.gone = nil, true
}
