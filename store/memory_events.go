package store

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// memoryEventKey is what the unique index of sent events is on.
type memoryEventKey struct {
	tenant ringi.Tenant
	id     string
}

type memoryEvent struct {
	ringi.SentEvent
	keep time.Time
}

// serves reports whether the event may be given to a wait: to one that was
// open when it was sent, however late, or opened while it was kept; never to
// the run that it started.
func (e *memoryEvent) serves(w ringi.WaitRow) bool {
	return e.Name == w.Event && e.Key == w.Key && e.ID != w.NotEvent &&
		(!w.OpenedAt.After(e.SentAt) || w.OpenedAt.Before(e.keep))
}

// Send implements Events.
func (m *Memory) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keepUntil time.Time) (bool, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	key := memoryEventKey{tenant, e.ID}
	if was := m.events[key]; was != nil {
		if was.Name != e.Name || was.Key != e.Key || !bytes.Equal(was.Data, e.Data) {
			return false, &EventKnown{Event: was.SentEvent}
		}
		return false, nil
	}
	e.Data = slices.Clone(e.Data)
	m.events[key] = &memoryEvent{e, keepUntil}
	return true, nil
}

// Pairs implements Events.
func (m *Memory) Pairs(ctx context.Context, q PairQuery) ([]Pair, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	events := m.sortedEvents()
	var pairs []Pair
	for _, r := range m.openRuns() {
		if q.Tenant != 0 && r.key.Tenant != q.Tenant {
			continue
		}
		for _, step := range slices.Sorted(maps.Keys(r.waits)) {
			w := r.waits[step]
			if q.Name != "" && (w.Event != q.Name || w.Key != q.Key) {
				continue
			}
			i := slices.IndexFunc(events, func(e tenantEvent) bool { return e.tenant == r.key.Tenant && e.serves(w) })
			if i >= 0 {
				pairs = append(pairs, Pair{Key: r.key, Step: step, Event: events[i].SentEvent})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b Pair) int {
		return cmp.Or(a.Event.SentAt.Compare(b.Event.SentAt), cmp.Compare(a.Event.ID, b.Event.ID))
	})
	return pairs[:min(max(q.Limit, 0), len(pairs))], nil
}

type tenantEvent struct {
	tenant ringi.Tenant
	*memoryEvent
}

// sortedEvents lists all events, oldest first.
func (m *Memory) sortedEvents() []tenantEvent {
	list := make([]tenantEvent, 0, len(m.events))
	for k, e := range m.events {
		list = append(list, tenantEvent{k.tenant, e})
	}
	slices.SortFunc(list, func(a, b tenantEvent) int {
		return cmp.Or(a.SentAt.Compare(b.SentAt), cmp.Compare(a.ID, b.ID), cmp.Compare(a.tenant, b.tenant))
	})
	return list
}

// Expire implements Events.
func (m *Memory) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for _, e := range m.sortedEvents() {
		if n < limit && !e.keep.After(now) && !m.awaited(e) {
			delete(m.events, memoryEventKey{e.tenant, e.ID})
			n++
		}
	}
	return n, nil
}

// awaited reports whether an open wait may still take the event.
func (m *Memory) awaited(e tenantEvent) bool {
	for _, r := range m.open {
		if r.key.Tenant != e.tenant {
			continue
		}
		for _, w := range r.waits {
			if e.serves(w) {
				return true
			}
		}
	}
	return false
}
