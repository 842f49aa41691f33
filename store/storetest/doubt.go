package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/faulty"
)

func doubtTests() []suiteTest {
	return []suiteTest{
		{"a write that is sent again is applied once", func(s *subject) {
			l := s.run()
			w := l.full()
			l.do(w)
			before := s.count(l.Key)
			s.apply(w)
			s.apply(w)
			if got := s.count(l.Key); got != before {
				s.Errorf("stands %+v, want %+v", got, before)
			}
		}},
		{"a write that is sent again after the run moved on is not lost", func(s *subject) {
			l := s.run()
			w := l.full()
			l.do(w)
			end := l.next(1)
			end.Tasks = []store.TaskChange{{Lane: 0}}
			l.do(end)
			before := s.count(l.Key)
			s.apply(w)
			if got := s.count(l.Key); got != before {
				s.Errorf("stands %+v, want %+v: the repetition must not bring rows back", got, before)
			}
		}},
		{"a start that is sent again does not lose to its own key", func(s *subject) {
			l := s.run()
			w := l.start("o-1")
			l.do(w)
			s.apply(w)
		}},
		{"a repetition does not hide a loser beside it", func(s *subject) {
			a, b := s.started(), s.started()
			done, stale := a.next(1), b.next(1)
			a.do(done)
			b.do(b.next(1))
			if lost := s.lose(done, stale); lost.Index != 1 {
				s.Errorf("write %d lost, want 1", lost.Index)
			}
		}},
		{"the audit record of a claim that is sent again is kept once", func(s *subject) {
			l := s.started()
			w := l.claim()
			w.Audit = []store.AuditRecord{s.audit(l.Key.Run, "cancel"), s.audit(l.Key.Run, "pause")}
			s.apply(w)
			s.apply(w)
			if got := s.count(l.Key); got.audit != 2 {
				s.Errorf("%d audit records, want 2", got.audit)
			}
		}},
		{"done without an answer: the repetition settles it", func(s *subject) { s.settle(faulty.After) }}, // W14
		{"never done and without an answer: the repetition does it", func(s *subject) { s.settle(faulty.Before) }},
		{"done late: the repetition finds it done", func(s *subject) { s.settle(faulty.Late) }},
		{"refused: the repetition does it", func(s *subject) { s.settle(faulty.Unavailable) }},
		{"cut off at any moment it is done whole or not at all", cutOff},
	}
}

// settle commits through a store whose first commit fails in this way, sends
// the same writes again, and finds them applied once.
func (s *subject) settle(fault faulty.Fault) {
	s.Helper()
	f := faulty.New(faulty.Config{Store: s.h.Store, Plan: faulty.Script(faulty.Commit, fault)})
	l, other := s.run(), s.run()
	w, o := l.full(), other.start("")
	_, err := f.Commit(s.ctx, w, o)
	if !errors.Is(err, store.ErrDoubt) && !errors.Is(err, store.ErrUnavailable) {
		s.Fatalf("answer %v, want a failure", err)
	}
	c, err := f.Commit(s.ctx, w, o)
	s.must(err)
	if len(c.Lost) != 0 {
		s.Errorf("lost %v, want none", c.Lost)
	}
	want := rows{log: 1, tasks: 1, timers: 1, waits: 1, approvals: 1, incidents: 1, messages: 1, audit: 1, snapshot: true, listed: true}
	if got := s.count(l.Key); got != want {
		s.Errorf("stands %+v, want %+v", got, want)
	}
	l.did(w)
	l.do(l.next(1))
}

// cutOff commits under contexts that end at the first look, at the second, and
// so on until the commit comes through: a crash between any two statements.
func cutOff(s *subject) {
	for looks := int64(0); ; looks++ {
		l, other := s.run(), s.started()
		w, o := l.full(), other.next(1)
		before := s.count(l.Key)
		ctx, cancel := contextEnding(s.ctx, looks)
		_, err := s.h.Store.Commit(ctx, w, o)
		cancel()
		got := s.count(l.Key)
		done := got.log == 1
		switch {
		case err == nil && !done, errors.Is(err, store.ErrUnavailable) && done:
			s.Fatalf("after %d looks: answer %v, done %v", looks, err, done)
		case err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrDoubt):
			s.Fatalf("after %d looks: answer %v, want ErrUnavailable or ErrDoubt", looks, err)
		case !done && got != before:
			s.Fatalf("after %d looks: half a write stands: %+v, want %+v", looks, got, before)
		}
		s.apply(w, o)
		after := s.count(l.Key)
		if after.log != 1 || after.tasks != 1 || after.messages != before.messages+1 || after.audit != 1 {
			s.Fatalf("after %d looks: the repetition left %+v", looks, after)
		}
		if err == nil {
			return
		}
	}
}

// endingContext ends after it was looked at so many times.
type endingContext struct {
	context.Context
	looks  atomic.Int64
	cancel context.CancelFunc
}

// contextEnding returns a context that ends when it has been asked for its
// state more than looks times.
func contextEnding(parent context.Context, looks int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	e := &endingContext{Context: ctx, cancel: cancel}
	e.looks.Store(looks)
	return e, cancel
}

func (e *endingContext) look() {
	if e.looks.Add(-1) < 0 {
		e.cancel()
	}
}

// Err implements context.Context.
func (e *endingContext) Err() error {
	e.look()
	return e.Context.Err()
}

// Done implements context.Context.
func (e *endingContext) Done() <-chan struct{} {
	e.look()
	return e.Context.Done()
}

func raceTests() []suiteTest {
	return []suiteTest{
		{"of many writers of one run exactly one wins each sequence", raceSequence}, // W6
		{"of many starts of one key exactly one wins", raceStartKey},                // TC-41
		{"of many claimers each task goes to exactly one", raceClaim},               // W11
		{"of many sweepers each timer goes to exactly one", raceTimers},             // W17
	}
}

const racers = 8

// race runs do in many goroutines at once.
func race(do func(racer int)) {
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

func raceSequence(s *subject) {
	l := s.started()
	for range 10 {
		writes := make([]store.Write, racers)
		for i := range writes {
			writes[i] = l.next(1)
		}
		var won atomic.Int64
		var winner atomic.Int64
		race(func(i int) {
			c, err := s.h.Store.Commit(s.ctx, writes[i])
			switch {
			case err != nil:
				s.Errorf("racer %d: %v", i, err)
			case len(c.Lost) == 0:
				won.Add(1)
				winner.Store(int64(i))
			}
		})
		if won.Load() != 1 {
			s.Fatalf("%d writers won sequence %d, want 1", won.Load(), l.seq+1)
		}
		l.did(writes[winner.Load()])
	}
	if got := s.count(l.Key); got.log != 11 {
		s.Errorf("%d log rows, want 11", got.log)
	}
}

func raceStartKey(s *subject) {
	writes := make([]store.Write, racers)
	for i := range writes {
		writes[i] = s.run().start("o-1")
	}
	var won atomic.Int64
	var mu sync.Mutex
	holders := map[string]bool{}
	race(func(i int) {
		c, err := s.h.Store.Commit(s.ctx, writes[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			s.Errorf("racer %d: %v", i, err)
		case len(c.Lost) == 0:
			won.Add(1)
			holders[string(writes[i].Key.Run)] = true
		case c.Lost[0].Lost.Holder != nil:
			holders[string(c.Lost[0].Lost.Holder.Run)] = true
		}
	})
	if won.Load() != 1 || len(holders) != 1 {
		s.Errorf("%d starts won and %d holders were named, want 1 and 1", won.Load(), len(holders))
	}
}

func raceClaim(s *subject) {
	const tasks = 40
	for range tasks {
		s.run().schedule(nil)
	}
	var mu sync.Mutex
	taken := map[store.Key]int{}
	race(func(i int) {
		for {
			claimed, err := s.h.Store.Claim(s.ctx, store.Claim{Tenant: tenant, Queue: "default", Worker: "w", Max: 3, Now: at(1), Handover: handover})
			if err != nil {
				s.Errorf("racer %d: %v", i, err)
			}
			if len(claimed) == 0 {
				return
			}
			mu.Lock()
			for _, c := range claimed {
				taken[c.Key]++
			}
			mu.Unlock()
		}
	})
	for key, n := range taken {
		if n != 1 {
			s.Errorf("run %s was handed out %d times", key.Run, n)
		}
	}
	if len(taken) != tasks {
		s.Errorf("%d tasks were handed out, want %d", len(taken), tasks)
	}
}

func raceTimers(s *subject) {
	const timers = 20
	for range timers {
		l := s.run()
		w := l.start("")
		w.Timers = []store.TimerChange{timer("t", 1, 1)}
		l.do(w)
	}
	var mu sync.Mutex
	fired := map[store.Key]int{}
	race(func(i int) {
		due, err := s.h.Store.DueTimers(s.ctx, at(2), at(12), timers)
		if err != nil {
			s.Errorf("racer %d: %v", i, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range due {
			fired[d.Key]++
		}
	})
	for key, n := range fired {
		if n != 1 {
			s.Errorf("the timer of run %s was claimed %d times", key.Run, n)
		}
	}
	if len(fired) != timers {
		s.Errorf("%d timers were claimed, want %d", len(fired), timers)
	}
}
