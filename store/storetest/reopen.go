package storetest

import "github.com/ringiflow/ringi/store"

// reopenTests are about what outlives the process; they are run on drivers
// whose Traits.Durable is set.
func reopenTests() []suiteTest {
	return []suiteTest{
		{"everything stands after the store was opened again", func(s *subject) { // S5
			l := s.run()
			l.do(l.full())
			s.put("order", "d1", 5)
			s.send("e1", 1, 50)
			before, answer := s.count(l.Key), s.commit()
			s.h = s.h.Reopen(s.T)
			if got := s.count(l.Key); got != before {
				s.Errorf("stands %+v, want %+v", got, before)
			}
			if got := s.commit(); got.Incarnation != answer.Incarnation {
				s.Errorf("incarnation %q, want %q: it is the same database", got.Incarnation, answer.Incarnation)
			}
			if version, created := s.put("order", "d1", 5); version != 1 || created {
				s.Errorf("the definition is version %d, created %v, want 1, false", version, created)
			}
			l.do(l.next(1))
		}},
		{"a write in doubt is settled after the store was opened again", func(s *subject) {
			l := s.run()
			w := l.full()
			l.do(w)
			before := s.count(l.Key)
			s.h = s.h.Reopen(s.T)
			s.apply(w)
			if got := s.count(l.Key); got != before {
				s.Errorf("stands %+v, want %+v", got, before)
			}
		}},
		{"leases and claims of timers outlive the process", func(s *subject) { // TC-01
			l := s.run()
			row := l.schedule(nil)
			s.take(at(0), 1)
			w := l.next(1)
			w.Timers = []store.TimerChange{timer("t", 1, 1)}
			l.do(w)
			lease := s.lease(l)
			s.h = s.h.Reopen(s.T)
			if got := s.lease(l); got != lease {
				s.Errorf("lease %+v, want %+v", got, lease)
			}
			if got := s.beat(l, row, row.Token(1), at(3)); !got.OK {
				s.Error("the worker's token is not current any more")
			}
			due, err := s.h.Store.DueTimers(s.ctx, at(2), at(12), 9)
			s.must(err)
			if len(due) != 1 {
				s.Errorf("%d timers are due, want 1", len(due))
			}
		}},
	}
}
