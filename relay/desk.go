package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// A Verb is what an operator does to messages.
type Verb string

// The verbs.
const (
	Retry  Verb = "retry"  // dead and parked ones become due
	Resend Verb = "resend" // delivered ones go once more
	Purge  Verb = "purge"  // dead ones are deleted
)

// ErrNone says that none of the messages that were named is in a state that the
// verb is about.
var ErrNone = errors.New("none of these messages is there in a state that can be changed that way")

// usual are the states that a verb is about unless told otherwise.
func (v Verb) usual() []outbox.State {
	switch v {
	case Retry:
		return []outbox.State{outbox.Dead, outbox.Parked}
	case Resend:
		return []outbox.State{outbox.Delivered}
	}
	return []outbox.State{outbox.Dead}
}

// change is what the desk does for the verb.
func (v Verb) change(desk outbox.Desk) change {
	switch v {
	case Retry:
		return desk.Retry
	case Resend:
		return desk.Resend
	}
	return desk.Purge
}

// Changed is what a verb did.
type Changed struct {
	Messages int

	// LastDelivered is when the last of them had been delivered: a broker that
	// remembers ids for longer than since then drops it.
	LastDelivered time.Time
}

// Do changes every message that the filter selects, at most so many; 0 means
// all. It fails before it changes anything with ErrNone, or with
// outbox.ErrResendOld.
func (v Verb) Do(ctx context.Context, desk outbox.Desk, at time.Time, f outbox.Filter, most int) (Changed, error) {
	if len(f.States) == 0 {
		f.States = v.usual()
	}
	c, err := choose(ctx, desk, f, most)
	switch {
	case err != nil:
		return Changed{}, err
	case len(f.IDs) > 0 && len(c.ids) == 0:
		return Changed{}, ErrNone
	case v == Resend && !f.Old && !c.first.IsZero() && at.Sub(c.first) > outbox.ResendWithin:
		return Changed{}, outbox.ErrResendOld
	}
	n, err := c.apply(ctx, v.change(desk), at, f)
	return Changed{Messages: n, LastDelivered: c.last}, err
}

// change is Desk.Retry, Resend or Purge.
type change func(ctx context.Context, at time.Time, f outbox.Filter) (int, error)

// chosen are the messages that a filter selected.
type chosen struct {
	ids []string

	first, last time.Time // when they were delivered; zero if none was
}

// choose finds the messages that a filter selects before any is changed, since
// those that are could be selected again.
func choose(ctx context.Context, desk outbox.Desk, f outbox.Filter, most int) (chosen, error) {
	var c chosen
	for {
		f.Limit = outbox.MostListed
		if most > 0 {
			f.Limit = min(f.Limit, most-len(c.ids))
		}
		list, err := desk.List(ctx, f)
		if err != nil {
			return c, err
		}
		for i := range list {
			c.add(&list[i])
		}
		if len(list) < f.Limit || len(c.ids) == most {
			return c, nil
		}
		f.After = c.ids[len(c.ids)-1]
	}
}

func (c *chosen) add(e *outbox.Entry) {
	c.ids = append(c.ids, e.ID)
	at := e.DeliveredAt
	if at.IsZero() {
		return
	}
	if c.first.IsZero() || at.Before(c.first) {
		c.first = at
	}
	if at.After(c.last) {
		c.last = at
	}
}

// apply changes the chosen messages, so many in one transaction that no writer
// waits long, and returns how many were changed before an error. Only those in
// one of the states of f are.
func (c chosen) apply(ctx context.Context, do change, at time.Time, f outbox.Filter) (changed int, err error) {
	if len(c.ids) == 0 { // states that cannot be changed that way are refused all the same
		return do(ctx, at, outbox.Filter{IDs: []string{}, States: f.States})
	}
	for chunk := range slices.Chunk(c.ids, outbox.MostListed) {
		n, err := do(ctx, at, outbox.Filter{IDs: chunk, States: f.States, Old: f.Old, Reason: f.Reason, Limit: outbox.MostListed})
		changed += n
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// unserved are the destinations that messages wait for and none of the sinks
// serves.
func unserved(depths []outbox.Depth, sinks []*Sink) (names []string) {
	for _, d := range depths {
		waits := d.Pending+d.Claimed+d.Parked > 0
		served := slices.ContainsFunc(sinks, func(s *Sink) bool { return s.Destination == d.Destination })
		if waits && !served && !slices.Contains(names, d.Destination) {
			names = append(names, d.Destination)
		}
	}
	return names
}
