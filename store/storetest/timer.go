package storetest

import (
	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// timer is a change that sets a timer.
func timer(id string, generation int, seconds float64) store.TimerChange {
	return store.TimerChange{ID: id, Row: &ringi.TimerRow{ID: id, Generation: generation, FireAt: at(seconds)}}
}

func timerTests() []suiteTest {
	due := func(s *subject, now, until float64, limit int) []store.DueTimer {
		s.Helper()
		list, err := s.h.Store.DueTimers(s.ctx, at(now), at(until), limit)
		s.must(err)
		return list
	}
	with := func(s *subject, changes ...store.TimerChange) *line {
		l := s.run()
		w := l.start("")
		w.Timers = changes
		l.do(w)
		return l
	}
	return []suiteTest{
		{"is due at its instant, not before", func(s *subject) { // W17
			l := with(s, timer("deadline", 3, 10))
			if got := due(s, 9.999999, 20, 9); len(got) != 0 {
				s.Errorf("due before its time: %+v", got)
			}
			got := due(s, 10, 20, 9)
			want := ringi.TimerRow{ID: "deadline", Generation: 3, FireAt: at(10)}
			if len(got) != 1 || got[0].Key != l.Key || got[0].TimerRow != want {
				s.Errorf("due %+v, want %+v", got, want)
			}
		}},
		{"is claimed by one sweeper until the claim ends", func(s *subject) {
			with(s, timer("t", 1, 10))
			first, second, third := due(s, 11, 21, 9), due(s, 12, 22, 9), due(s, 21, 31, 9)
			if len(first) != 1 || len(second) != 0 || len(third) != 1 {
				s.Errorf("claimed %d, %d, %d times, want 1, 0, 1", len(first), len(second), len(third))
			}
		}},
		{"the earliest come first and a limit holds", func(s *subject) {
			with(s, timer("b", 1, 2), timer("c", 1, 3), timer("a", 1, 1))
			got := append(due(s, 9, 19, 2), due(s, 9, 19, 2)...)
			if len(got) != 3 || got[0].ID != "a" || got[1].ID != "b" || got[2].ID != "c" {
				s.Errorf("due %+v, want a, b, c", got)
			}
		}},
		{"set anew it is due at the new instant, claimed or not", func(s *subject) { // TC-05
			l := with(s, timer("t", 1, 1))
			due(s, 2, 100, 9)
			w := l.next(1)
			w.Timers = []store.TimerChange{timer("t", 2, 5)}
			l.do(w)
			if got := due(s, 4, 100, 9); len(got) != 0 {
				s.Errorf("due %+v before its new time", got)
			}
			if got := due(s, 5, 100, 9); len(got) != 1 || got[0].Generation != 2 {
				s.Errorf("due %+v, want generation 2", got)
			}
		}},
		{"a drop deletes the generation that was dropped and no other", func(s *subject) { // TC-05
			l := with(s, timer("t", 2, 1))
			drop := func(generation int) {
				s.must(s.h.Store.Settle(s.ctx, store.Settlement{Drops: []store.DueTimer{
					{Key: l.Key, TimerRow: ringi.TimerRow{ID: "t", Generation: generation}},
				}}))
			}
			drop(1)
			if got := s.count(l.Key); got.timers != 1 {
				s.Errorf("%d timers, want 1", got.timers)
			}
			drop(2)
			if got := s.count(l.Key); got.timers != 0 {
				s.Errorf("%d timers, want 0", got.timers)
			}
		}},
	}
}
