package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

type memoryFleet struct {
	format int // 0: ringi.FirstFormat
	nodes  map[string]memoryNode
	seen   map[sightingKey]Sighting
}

type sightingKey struct {
	tenant        ringi.Tenant
	worker, queue string
}

type memoryNode struct {
	Node
	seen time.Time
}

// running lists the nodes that were seen lately.
func (f *memoryFleet) running(now time.Time) []Node {
	var list []Node
	for _, n := range f.nodes {
		if now.Sub(n.seen) < SeenFor {
			list = append(list, n.Node)
		}
	}
	slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Meet implements Fleet.
func (m *Memory) Meet(_ context.Context, n Node) (Met, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Met{}, ErrUnavailable
	}
	if m.fleet.nodes == nil {
		m.fleet.nodes = map[string]memoryNode{}
	}
	now := m.now()
	m.fleet.nodes[n.ID] = memoryNode{n, now}
	return Met{Format: max(m.fleet.format, ringi.FirstFormat), Nodes: m.fleet.running(now)}, nil
}

// Leave implements Fleet.
func (m *Memory) Leave(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fleet.nodes, id)
	return nil
}

// Raise implements Fleet.
func (m *Memory) Raise(_ context.Context, format int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrUnavailable
	}
	less := func(n Node) bool { return n.Format < format }
	if !slices.ContainsFunc(m.fleet.running(m.now()), less) {
		m.fleet.format = max(m.fleet.format, format)
	}
	return nil
}

// Sight implements Fleet.
func (m *Memory) Sight(_ context.Context, seen ...Sighting) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrUnavailable
	}
	if m.fleet.seen == nil {
		m.fleet.seen = map[sightingKey]Sighting{}
	}
	var latest time.Time
	for _, s := range seen {
		key := sightingKey{s.Tenant, s.Worker, s.Queue}
		before := m.fleet.seen[key]
		s.Polled, s.Seen = later(s.Polled, before.Polled), later(s.Seen, before.Seen)
		m.fleet.seen[key] = s
		latest = later(latest, s.Seen)
	}
	for key, s := range m.fleet.seen {
		if latest.Sub(s.Seen) > SightingsKept {
			delete(m.fleet.seen, key)
		}
	}
	return nil
}

// Sightings implements Fleet.
func (m *Memory) Sightings(_ context.Context, tenant ringi.Tenant, after time.Time) ([]Sighting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrUnavailable
	}
	var list []Sighting
	for _, s := range m.fleet.seen {
		if s.Tenant == tenant && s.Seen.After(after) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Sighting) int {
		return cmp.Or(strings.Compare(a.Worker, b.Worker), strings.Compare(a.Queue, b.Queue))
	})
	return list, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
