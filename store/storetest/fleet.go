package storetest

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func fleetTests() []suiteTest {
	return []suiteTest{
		{"nodes that meet see one another until they leave", fleetMeets},
		{"workers that one node sees are known to all", fleetSights},
		{"a format is raised when nobody reads less, and never lowered", fleetRaises},
	}
}

func (s *subject) meet(n store.Node) store.Met {
	s.T.Helper()
	met, err := s.h.Fleet.Meet(s.T.Context(), n)
	s.must(err)
	return met
}

func fleetMeets(s *subject) {
	if s.h.Fleet == nil {
		return // there can be one node only
	}
	a, b := store.Node{ID: "a", Version: "1.0", Format: 1}, store.Node{ID: "b", Version: "2.0", Format: 2}
	if met := s.meet(b); !slices.Equal(met.Nodes, []store.Node{b}) || met.Format < ringi.FirstFormat {
		s.T.Errorf("the first met %+v", met)
	}
	if met := s.meet(a); !slices.Equal(met.Nodes, []store.Node{a, b}) {
		s.T.Errorf("met %+v, want both", met)
	}
	a.Format = 3
	if met := s.meet(a); !slices.Equal(met.Nodes, []store.Node{a, b}) {
		s.T.Errorf("met %+v, want what was said last", met)
	}
	for range 2 {
		s.must(s.h.Fleet.Leave(s.T.Context(), "b"))
	}
	if met := s.meet(a); !slices.Equal(met.Nodes, []store.Node{a}) {
		s.T.Errorf("met %+v, want one", met)
	}
}

func fleetSights(s *subject) { // TC-19
	if s.h.Fleet == nil {
		return
	}
	at := func(d time.Duration) time.Time { return time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(d) }
	sight := func(seen ...store.Sighting) {
		s.T.Helper()
		s.must(s.h.Fleet.Sight(s.T.Context(), seen...))
	}
	want := func(tenant ringi.Tenant, after time.Time, want ...store.Sighting) {
		s.T.Helper()
		got, err := s.h.Fleet.Sightings(s.T.Context(), tenant, after)
		s.must(err)
		if !slices.EqualFunc(got, want, func(a, b store.Sighting) bool {
			return a.Tenant == b.Tenant && a.Worker == b.Worker && a.Queue == b.Queue && a.Polled.Equal(b.Polled) && a.Seen.Equal(b.Seen)
		}) {
			s.T.Errorf("seen %+v, want %+v", got, want)
		}
	}
	sight()
	want(1, at(0))
	b := store.Sighting{Tenant: 1, Worker: "b", Queue: "q", Polled: at(time.Second), Seen: at(time.Minute)}
	a := store.Sighting{Tenant: 1, Worker: "a", Seen: at(2 * time.Minute)} // it polls no queue
	other := store.Sighting{Tenant: 2, Worker: "a", Queue: "q", Polled: at(time.Second), Seen: at(time.Second)}
	sight(b, a, other)
	want(1, at(0), a, b)
	want(1, at(time.Minute), a)
	want(2, at(0), other)
	earlier, later := b, b
	earlier.Polled, earlier.Seen = at(0), at(0)
	later.Polled, later.Seen = at(time.Minute), at(3*time.Minute)
	sight(earlier)
	want(1, at(0), a, b)
	sight(later)
	want(1, at(0), a, later)
	much := store.Sighting{Tenant: 1, Worker: "c", Queue: "q", Polled: at(2 * store.SightingsKept), Seen: at(2 * store.SightingsKept)}
	sight(much)
	want(1, time.Time{}.AddDate(2000, 0, 0), much)
}

func fleetRaises(s *subject) {
	if s.h.Fleet == nil {
		return
	}
	first := s.meet(store.Node{ID: "a", Format: 1 << 20}).Format
	old, newer := first+1, first+2
	a, b := store.Node{ID: "a", Format: newer}, store.Node{ID: "b", Format: old}
	s.meet(b)
	raise := func(to, want int) {
		s.T.Helper()
		s.must(s.h.Fleet.Raise(s.T.Context(), to))
		if met := s.meet(a); met.Format != want {
			s.T.Errorf("raised to %d it is %d, want %d", to, met.Format, want)
		}
	}
	s.meet(a)
	raise(newer, first) // one reads less
	raise(old, old)
	s.must(s.h.Fleet.Leave(s.T.Context(), "b"))
	raise(newer, newer)
	raise(old, newer)
}
