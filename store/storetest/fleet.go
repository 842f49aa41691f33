package storetest

import (
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func fleetTests() []suiteTest {
	return []suiteTest{
		{"nodes that meet see one another until they leave", fleetMeets},
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
