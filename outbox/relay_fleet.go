package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// holdsPerLease is how often a relay renews its partitions: with publishing
// bounded to half a lease, a third of it is left when a batch is marked last.
const holdsPerLease = 3

// hold asks the fleet for the relay's share when it is time and nothing is in the
// relay's hands: every claim has been marked, or was left to its lease. While the
// destination is down it asks more often, to hear when another relay gets through.
func (r *Relay) hold(ctx context.Context, rep *Report) error {
	if r.cfg.Fleet == nil {
		return nil
	}
	due := !rep.At.Before(r.holdAt) || r.circuit.open(rep.At) && rep.At.Sub(r.heldAt) >= r.cfg.PollMost
	if due && !r.ahead.has() {
		h := r.ask()
		h.Took, h.Failed = r.suspects.took, r.circuit.failed
		if !r.clock.follows {
			h.Now = rep.At
		}
		begun := time.Now()
		held, err := r.cfg.Fleet.Hold(ctx, h)
		if err != nil {
			return err
		}
		if r.clock.follows {
			r.clock.set(held.Now, begun)
			rep.At = r.cfg.Now()
		}
		// Relays that start together find their shares within a moment.
		r.holdPause = min(max(2*r.holdPause, r.cfg.PollFirst), r.cfg.Lease/holdsPerLease)
		if !slices.Equal(r.parts, held.Partitions) {
			r.feed.pollAt = time.Time{} // what was committed before they were ours, the feed told others
		}
		r.parts, r.holdAt, r.heldAt = held.Partitions, held.Now.Add(r.holdPause), held.Now
		r.suspects.far = farSight{took: held.Took, failed: held.Failed}
		if held.Took.After(r.circuit.failed) {
			r.circuit.look(rep.At)
		}
	}
	rep.Partitions = len(r.parts)
	return nil
}

func (r *Relay) ask() Hold {
	return Hold{By: r.cfg.Name, Destination: r.cfg.Destination, Lease: r.cfg.Lease}
}

// leave gives the partitions back after the last round. Marks that are still
// owed go with them: the messages are sent again by whoever has them next.
func (r *Relay) leave(ctx context.Context) {
	if r.cfg.Fleet == nil {
		return
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
	defer cancel()
	if err := r.cfg.Fleet.Leave(leaving, r.ask()); err != nil {
		r.cfg.Observe(Report{At: r.cfg.Now(), Destination: r.cfg.Destination, Err: fmt.Errorf("outbox: leave the fleet; the others wait for the lease to end: %w", err)})
	}
	r.parts, r.holdAt, r.holdPause = nil, time.Time{}, 0
}

// fleetClock is the clock of a fleet's database: its last answer plus what has
// passed here since. Relays whose own clocks differ agree on leases that way.
type fleetClock struct {
	follows bool
	base    time.Time // the database's
	read    time.Time // ours, with a monotonic reading, when that was asked for
}

// set takes an answer. It was true at some moment after the question, so the
// clock is never ahead of the database's by more than the question took.
func (c *fleetClock) set(base, asked time.Time) { c.base, c.read = base, asked }

// now is zero before the first answer, when everything is due.
func (c *fleetClock) now() time.Time {
	if c.base.IsZero() {
		return time.Time{}
	}
	return c.base.Add(time.Since(c.read))
}
