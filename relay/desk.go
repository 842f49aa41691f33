package relay

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// A Change is what an operator does to messages: Desk.Retry, Resend or Purge.
type Change func(ctx context.Context, at time.Time, f outbox.Filter) (int, error)

// Chosen are the messages that a filter selected.
type Chosen struct {
	IDs []string

	// FirstDelivered and LastDelivered are when the first and the last of them
	// were; zero if none was.
	FirstDelivered, LastDelivered time.Time
}

// Choose finds the messages that a filter selects, at most so many; 0 means all.
// Who means to change them names their states: what has another by then stays
// as it is.
func Choose(ctx context.Context, desk outbox.Desk, f outbox.Filter, most int) (Chosen, error) {
	var c Chosen
	for {
		f.Limit = outbox.MostListed
		if most > 0 {
			f.Limit = min(f.Limit, most-len(c.IDs))
		}
		list, err := desk.List(ctx, f)
		if err != nil {
			return c, err
		}
		for i := range list {
			c.add(&list[i])
		}
		if len(list) < f.Limit || len(c.IDs) == most {
			return c, nil
		}
		f.After = c.IDs[len(c.IDs)-1]
	}
}

func (c *Chosen) add(e *outbox.Entry) {
	c.IDs = append(c.IDs, e.ID)
	at := e.DeliveredAt
	if at.IsZero() {
		return
	}
	if c.FirstDelivered.IsZero() || at.Before(c.FirstDelivered) {
		c.FirstDelivered = at
	}
	if at.After(c.LastDelivered) {
		c.LastDelivered = at
	}
}

// Apply changes the chosen messages, so many in one transaction that no writer
// waits long, and returns how many were changed before an error. Only those in
// one of the states of f are.
func (c Chosen) Apply(ctx context.Context, change Change, at time.Time, f outbox.Filter) (changed int, err error) {
	for chunk := range slices.Chunk(c.IDs, outbox.MostListed) {
		n, err := change(ctx, at, outbox.Filter{IDs: chunk, States: f.States, Old: f.Old, Limit: outbox.MostListed})
		changed += n
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// Unserved are the destinations that messages wait for and none of the sinks
// serves.
func Unserved(depths []outbox.Depth, sinks []*Sink) (names []string) {
	for _, d := range depths {
		waits := d.Pending+d.Claimed+d.Parked > 0
		served := slices.ContainsFunc(sinks, func(s *Sink) bool { return s.Destination == d.Destination })
		if waits && !served && !slices.Contains(names, d.Destination) {
			names = append(names, d.Destination)
		}
	}
	return names
}
