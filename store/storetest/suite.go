// Package storetest is the suite that every store driver passes. It knows the
// contracts of package store and nothing of any driver: what a driver cannot
// do is declared in its Traits, as data, and not skipped in a test.
//
// A driver's test opens a fresh store and hands it over:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness { … })
//	}
package storetest

import (
	"context"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

// A Harness is one open, empty store with all its parts.
type Harness struct {
	Store   store.Store
	Records store.Records
	Catalog store.Catalog
	Events  store.Events
	Outbox  outbox.Source
	// Fleet is nil where there can be one node only.
	Fleet store.Fleet
	// Inspector is what replay reads.
	Inspector store.Inspector
	// Reopen closes the store and opens what it kept as a process that starts
	// anew would. It is called only when Traits.Durable is set.
	Reopen func(t *testing.T) Harness
	Traits Traits
}

// Traits are the differences between drivers.
type Traits struct {
	// Durable says that what was committed outlives Close.
	Durable bool
}

// Run runs the whole suite. Each test opens a store of its own and closes it.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	groups := []struct {
		name  string
		tests []suiteTest
	}{
		{"commit", commitTests()},
		{"start key", startKeyTests()},
		{"need", needTests()},
		{"bad write", badWriteTests()},
		{"doubt", doubtTests()},
		{"race", raceTests()},
		{"load", loadTests()},
		{"claim", claimTests()},
		{"lease", leaseTests()},
		{"timer", timerTests()},
		{"event", eventTests()},
		{"catalog", catalogTests()},
		{"records", recordTests()},
		{"list", listTests()},
		{"inspect", inspectTests()},
		{"fleet", fleetTests()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					s := newSubject(t, open(t))
					test.run(s)
				})
			}
		})
	}
	t.Run("reopen", func(t *testing.T) {
		for _, test := range reopenTests() {
			t.Run(test.name, func(t *testing.T) {
				s := newSubject(t, open(t))
				if s.h.Traits.Durable {
					test.run(s)
				}
			})
		}
	})
}

// suiteTest is one test; its name reads as a specification.
type suiteTest struct {
	name string
	run  func(s *subject)
}

// subject is the store under test, with what tests need to talk about it.
type subject struct {
	*testing.T
	h     Harness
	ctx   context.Context
	drawn int // ids so far
}

func newSubject(t *testing.T, h Harness) *subject {
	s := &subject{T: t, h: h, ctx: context.Background()}
	t.Cleanup(func() {
		if err := s.h.Store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// must fails the test at once on an error.
func (s *subject) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// commit commits and fails the test on an error; it returns the answer.
func (s *subject) commit(writes ...store.Write) store.Committed {
	s.Helper()
	c, err := s.h.Store.Commit(s.ctx, writes...)
	s.must(err)
	return c
}

// apply commits writes that must all win.
func (s *subject) apply(writes ...store.Write) {
	s.Helper()
	for _, l := range s.commit(writes...).Lost {
		s.Fatalf("write %d lost on %s", l.Index, l.What)
	}
}

// lose commits writes of which exactly one must lose, and returns it.
func (s *subject) lose(writes ...store.Write) store.LostWrite {
	s.Helper()
	c := s.commit(writes...)
	if len(c.Lost) != 1 {
		s.Fatalf("lost %v, want exactly one write", c.Lost)
	}
	return c.Lost[0]
}
