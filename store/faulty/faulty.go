// Package faulty wraps a store and lets its calls fail on a schedule, in the
// ways in which databases fail: refused, done without an answer, never done
// without an answer, done after its failure was reported. Tests of the engine
// and the simulator stand on it; the schedule decides from the number and the
// kind of a call alone, so that a run can be repeated.
package faulty

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringiflow/ringi/store"
)

// A Fault is what happens to one call.
type Fault int

// The faults. Calls that only read know no doubt: for them every fault is
// Unavailable.
const (
	// None lets the call through.
	None Fault = iota
	// Unavailable does nothing and says so: store.ErrUnavailable.
	Unavailable
	// Before does nothing, and nobody knows: store.ErrDoubt.
	Before
	// After does everything, and nobody knows: store.ErrDoubt.
	After
	// Late says store.ErrDoubt and is done afterwards: before the next Commit,
	// which queues behind it in a database, or when Land is called. Reads until
	// then see the state before it. Of calls other than Commit it is After.
	Late
)

// Op names a method of the four contracts.
type Op string

// The methods. Close is never failed.
const (
	Commit        Op = "Commit"
	Load          Op = "Load"
	Claim         Op = "Claim"
	Beat          Op = "Beat"
	DueTimers     Op = "DueTimers"
	DueTasks      Op = "DueTasks"
	Settle        Op = "Settle"
	Run           Op = "Run"
	Log           Op = "Log"
	Standing      Op = "Standing"
	Runs          Op = "Runs"
	Approvals     Op = "Approvals"
	Incidents     Op = "Incidents"
	Queues        Op = "Queues"
	Audit         Op = "Audit"
	PutDefinition Op = "PutDefinition"
	Definition    Op = "Definition"
	Definitions   Op = "Definitions"
	Send          Op = "Send"
	Pairs         Op = "Pairs"
	Expire        Op = "Expire"
)

// A Call is one call that is about to happen.
type Call struct {
	Op     Op
	N      int // of all calls, from 1
	NthOp  int // of the calls of this method, from 1
	Writes int // with Commit: how many
}

// Config says what is wrapped and what fails. The parts that a test does not
// use may be nil.
type Config struct {
	Store   store.Store
	Records store.Records
	Catalog store.Catalog
	Events  store.Events
	// Plan is asked before every call, one at a time; nil lets all through.
	Plan func(Call) Fault
}

// Store is the wrapped store; it fulfils all four contracts. Safe for
// concurrent use, though only calls that follow each other are repeatable.
type Store struct {
	c Config

	mu          sync.Mutex
	calls       int
	byOp        map[Op]int
	down        bool
	incarnation string
	late        [][]store.Write
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Records = (*Store)(nil)
	_ store.Catalog = (*Store)(nil)
	_ store.Events  = (*Store)(nil)
)

// New wraps a store.
func New(c Config) *Store { return &Store{c: c, byOp: map[Op]int{}} }

// Script is a plan that gives these faults to the calls of one method, in
// order, and lets all others through.
func Script(op Op, faults ...Fault) func(Call) Fault {
	return func(c Call) Fault {
		if c.Op == op && c.NthOp <= len(faults) {
			return faults[c.NthOp-1]
		}
		return None
	}
}

// Down begins or ends an outage: while it lasts every call is Unavailable,
// whatever the plan says.
func (s *Store) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Restored makes the store answer as another incarnation from now on, as a
// database does after a restore or a failover.
func (s *Store) Restored(incarnation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incarnation = incarnation
}

// Land does what is late, in the order in which it was sent.
func (s *Store) Land(ctx context.Context) error {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, writes := range late {
		if _, err := s.c.Store.Commit(ctx, writes...); err != nil {
			return fmt.Errorf("faulty: land a late commit: %w", err)
		}
	}
	return nil
}

// next counts a call and asks the plan.
func (s *Store) next(op Op, writes int) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.byOp[op]++
	if s.down {
		return Unavailable
	}
	if s.c.Plan == nil {
		return None
	}
	return s.c.Plan(Call{Op: op, N: s.calls, NthOp: s.byOp[op], Writes: writes})
}

func unavailable(op Op) error {
	return fmt.Errorf("%w: %s failed on schedule", store.ErrUnavailable, op)
}

func doubt(op Op) error { return fmt.Errorf("%w: %s failed on schedule", store.ErrDoubt, op) }

// read does a call that changes nothing.
func read[T any](s *Store, op Op, do func() (T, error)) (T, error) {
	if s.next(op, 0) != None {
		var none T
		return none, unavailable(op)
	}
	return do()
}

// change does a call that changes something outside a commit.
func change[T any](s *Store, op Op, do func() (T, error)) (T, error) {
	var none T
	switch s.next(op, 0) {
	case Unavailable:
		return none, unavailable(op)
	case Before:
		return none, doubt(op)
	case After, Late:
		if _, err := do(); err != nil {
			return none, err
		}
		return none, doubt(op)
	}
	return do()
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	fault := s.next(Commit, len(writes))
	if fault == Unavailable {
		return store.Committed{}, unavailable(Commit)
	}
	if err := s.Land(ctx); err != nil {
		return store.Committed{}, err
	}
	switch fault {
	case Before:
		return store.Committed{}, doubt(Commit)
	case Late:
		s.mu.Lock()
		s.late = append(s.late, append([]store.Write(nil), writes...))
		s.mu.Unlock()
		return store.Committed{}, doubt(Commit)
	}
	c, err := s.c.Store.Commit(ctx, writes...)
	if err != nil {
		return store.Committed{}, err
	}
	if fault == After {
		return store.Committed{}, doubt(Commit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incarnation != "" {
		c.Incarnation = s.incarnation
	}
	return c, nil
}
