package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

var _ outbox.Desk = (*Outbox)(nil)

// List implements Desk.
func (s *Outbox) List(ctx context.Context, f outbox.Filter) ([]outbox.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []outbox.Entry
	for _, r := range s.selected(f) {
		list = append(list, outbox.Entry{
			Message: r.Message, State: r.at.State, Attempts: r.attempts, NextAt: table.Time(cmp.Or(r.at.Lease, r.at.NextAt)),
			ClaimedBy: r.by, DeliveredAt: r.delivered, LastError: r.err,
		})
	}
	return list, nil
}

// selected lists the rows of a filter.
func (s *Outbox) selected(f outbox.Filter) []*entry {
	var rows []*entry
	for _, r := range s.rows {
		if selects(&f, r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
	return rows[:min(f.Most(), len(rows))]
}

func selects(f *outbox.Filter, r *entry) bool {
	return (f.IDs == nil || slices.Contains(f.IDs, r.ID)) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.at.State)) &&
		(len(f.Destinations) == 0 || slices.Contains(f.Destinations, r.Destination)) &&
		(len(f.Tenants) == 0 || slices.Contains(f.Tenants, r.Tenant)) &&
		(f.AggregateType == "" || f.AggregateType == r.AggregateType) &&
		(f.AggregateID == "" || f.AggregateID == r.AggregateID) &&
		(f.Type == "" || f.Type == r.Type) && r.ID > f.After
}

// Retry implements Desk.
func (s *Outbox) Retry(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Dead, outbox.Parked}, outbox.Pending); err != nil {
		return 0, err
	}
	return s.change(ctx, "retry", at, f, s.reopen)
}

// Resend implements Desk.
func (s *Outbox) Resend(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Delivered}); err != nil {
		return 0, err
	}
	if !f.Old && s.anyOld(at, f) {
		return 0, outbox.ErrResendOld
	}
	return s.change(ctx, "resend", at, f, s.reopen)
}

// anyOld tells whether a selected message was delivered too long ago.
func (s *Outbox) anyOld(at time.Time, f outbox.Filter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.selected(f), func(r *entry) bool {
		return r.delivered.Before(at.Add(-outbox.ResendWithin))
	})
}

func (s *Outbox) reopen(r *entry, at time.Time) {
	r.at.State, r.attempts, r.at.NextAt, r.at.Lease, r.by, r.delivered = outbox.Pending, 0, at.UnixMicro(), 0, "", time.Time{}
	s.open[r.ID] = r
}

// Purge implements Desk.
func (s *Outbox) Purge(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Dead}, outbox.Parked, outbox.Delivered); err != nil {
		return 0, err
	}
	return s.change(ctx, "purge", at, f, func(r *entry, _ time.Time) {
		delete(s.rows, r.ID)
		delete(s.open, r.ID)
	})
}

func (s *Outbox) change(ctx context.Context, verb string, at time.Time, f outbox.Filter, do func(*entry, time.Time)) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.selected(f)
	ids := make([]string, len(rows))
	for i, r := range rows {
		do(r, at)
		ids[i] = r.ID
	}
	s.release(at)
	if len(ids) > 0 {
		s.changes = append(s.changes, outbox.Change{At: table.Time(at.UnixMicro()), Verb: verb, Reason: outbox.Storable(f.Reason), Messages: ids})
	}
	return len(rows), nil
}

// Changes implements Desk.
func (s *Outbox) Changes(ctx context.Context, limit int) ([]outbox.Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.changes)
	slices.Reverse(list)
	return list[:min(len(list), (&outbox.Filter{Limit: limit}).Most())], nil
}

// release makes due what waits behind a parked message that is no longer there.
func (s *Outbox) release(at time.Time) {
	parked := map[keyed]bool{}
	for _, r := range s.open {
		if r.at.State == outbox.Parked {
			parked[keyed{r.at.Key, r.Destination}] = true
		}
	}
	for _, r := range s.open {
		if r.at.State == outbox.Pending && r.at.NextAt == table.Never && !parked[keyed{r.at.Key, r.Destination}] {
			r.at.NextAt = at.UnixMicro()
		}
	}
}

// keyed is what order is kept by.
type keyed struct {
	key         outbox.Key
	destination string
}

// Backlog implements Desk.
func (s *Outbox) Backlog(ctx context.Context) ([]outbox.Depth, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := map[outbox.Depth]*outbox.Depth{}
	for _, r := range s.rows {
		if r.at.State == outbox.Delivered {
			continue
		}
		of := outbox.Depth{Destination: r.Destination, Tenant: r.Tenant}
		d := at[of]
		if d == nil {
			d = &outbox.Depth{Destination: r.Destination, Tenant: r.Tenant}
			at[of] = d
		}
		count(d, r)
	}
	list := make([]outbox.Depth, 0, len(at))
	for _, d := range at {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b outbox.Depth) int {
		return cmp.Or(strings.Compare(a.Destination, b.Destination), cmp.Compare(a.Tenant, b.Tenant))
	})
	return list, nil
}

func count(d *outbox.Depth, r *entry) {
	switch r.at.State {
	case outbox.Pending:
		d.Pending++
		if r.attempts > 0 {
			d.Failing++
		}
	case outbox.Claimed:
		d.Claimed++
	case outbox.Parked:
		d.Parked++
	case outbox.Dead:
		d.Dead++
		return
	}
	if d.Oldest.IsZero() || r.CreatedAt.Before(d.Oldest) {
		d.Oldest = r.CreatedAt
	}
}
