package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

var _ Desk = (*Memory)(nil)

// List implements Desk.
func (s *Memory) List(ctx context.Context, f Filter) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.After != "" && !canonicalUUID(f.After) {
		return nil, fmt.Errorf("%w: it is %q", ErrAfter, clip(f.After))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Entry
	for _, r := range s.selected(f) {
		list = append(list, Entry{
			Message: r.Message, State: r.state, Attempts: r.attempts, NextAt: fromMicro(cmp.Or(r.lease, r.nextAt)),
			ClaimedBy: r.by, DeliveredAt: r.delivered, LastError: r.err,
		})
	}
	return list, nil
}

// selected lists the rows of a filter.
func (s *Memory) selected(f Filter) []*memoryRow {
	var rows []*memoryRow
	for _, r := range s.rows {
		if f.selects(r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *memoryRow) int { return strings.Compare(a.ID, b.ID) })
	return rows[:min(f.limit(), len(rows))]
}

func (f *Filter) selects(r *memoryRow) bool {
	return (f.IDs == nil || slices.Contains(f.IDs, r.ID)) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.state)) &&
		(len(f.Destinations) == 0 || slices.Contains(f.Destinations, r.Destination)) &&
		(len(f.Tenants) == 0 || slices.Contains(f.Tenants, r.Tenant)) &&
		(f.AggregateType == "" || f.AggregateType == r.AggregateType) &&
		(f.AggregateID == "" || f.AggregateID == r.AggregateID) &&
		(f.Type == "" || f.Type == r.Type) && r.ID > f.After
}

// Retry implements Desk.
func (s *Memory) Retry(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead, Parked}, Pending); err != nil {
		return 0, err
	}
	return s.change(ctx, "retry", at, f, s.reopen)
}

// Resend implements Desk.
func (s *Memory) Resend(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Delivered}); err != nil {
		return 0, err
	}
	if !f.Old && s.anyOld(at, f) {
		return 0, ErrResendOld
	}
	return s.change(ctx, "resend", at, f, s.reopen)
}

// anyOld tells whether a selected message was delivered too long ago.
func (s *Memory) anyOld(at time.Time, f Filter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.selected(f), func(r *memoryRow) bool {
		return r.delivered.Before(at.Add(-ResendWithin))
	})
}

func (s *Memory) reopen(r *memoryRow, at time.Time) {
	r.state, r.attempts, r.nextAt, r.lease, r.by, r.delivered = Pending, 0, at.UnixMicro(), 0, "", time.Time{}
	s.open[r.ID] = r
}

// Purge implements Desk.
func (s *Memory) Purge(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead}, Parked, Delivered); err != nil {
		return 0, err
	}
	return s.change(ctx, "purge", at, f, func(r *memoryRow, _ time.Time) {
		delete(s.rows, r.ID)
		delete(s.open, r.ID)
	})
}

func (s *Memory) change(ctx context.Context, verb string, at time.Time, f Filter, do func(*memoryRow, time.Time)) (int, error) {
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
		s.changes = append(s.changes, Change{fromMicro(at.UnixMicro()), verb, storable(f.Reason), ids})
	}
	return len(rows), nil
}

// Changes implements Desk.
func (s *Memory) Changes(ctx context.Context, limit int) ([]Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.changes)
	slices.Reverse(list)
	return list[:min(len(list), (&Filter{Limit: limit}).limit())], nil
}

// release makes due what waits behind a parked message that is no longer there.
func (s *Memory) release(at time.Time) {
	parked := map[keyed]bool{}
	for _, r := range s.open {
		if r.state == Parked {
			parked[keyed{r.key, r.Destination}] = true
		}
	}
	for _, r := range s.open {
		if r.state == Pending && r.nextAt == never && !parked[keyed{r.key, r.Destination}] {
			r.nextAt = at.UnixMicro()
		}
	}
}

// keyed is what order is kept by.
type keyed struct {
	key         Key
	destination string
}

// Backlog implements Desk.
func (s *Memory) Backlog(ctx context.Context) ([]Depth, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := map[Depth]*Depth{}
	for _, r := range s.rows {
		if r.state == Delivered {
			continue
		}
		of := Depth{Destination: r.Destination, Tenant: r.Tenant}
		d := at[of]
		if d == nil {
			d = &Depth{Destination: r.Destination, Tenant: r.Tenant}
			at[of] = d
		}
		d.count(r)
	}
	list := make([]Depth, 0, len(at))
	for _, d := range at {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Depth) int {
		return cmp.Or(strings.Compare(a.Destination, b.Destination), cmp.Compare(a.Tenant, b.Tenant))
	})
	return list, nil
}

func (d *Depth) count(r *memoryRow) {
	switch r.state {
	case Pending:
		d.Pending++
		if r.attempts > 0 {
			d.Failing++
		}
	case Claimed:
		d.Claimed++
	case Parked:
		d.Parked++
	case Dead:
		d.Dead++
		return
	}
	if d.Oldest.IsZero() || r.CreatedAt.Before(d.Oldest) {
		d.Oldest = r.CreatedAt
	}
}
