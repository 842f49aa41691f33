package storetest

import (
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func (s *subject) beat(l *line, row ringi.TaskRow, token int64, now time.Time) store.Beaten {
	s.Helper()
	got, err := s.h.Store.Beat(s.ctx, store.Beat{Key: l.Key, Step: row.Step, Direction: row.Direction, Token: token, Now: now})
	s.must(err)
	if len(got) != 1 {
		s.Fatalf("%d answers to one beat", len(got))
	}
	return got[0]
}

func leaseTests() []suiteTest {
	return []suiteTest{
		{"the first beat confirms and gives the work lease", func(s *subject) {
			l := s.run()
			row := l.schedule(nil)
			s.take(at(0), 1)
			if got := s.beat(l, row, row.Token(1), at(2)); got != (store.Beaten{OK: true}) {
				s.Errorf("answer %+v, want OK", got)
			}
			want := store.TaskLease{Token: row.Token(1), Leased: true, Confirmed: true, Worker: "w1", LeaseEnd: at(22), AttemptEnd: at(30)}
			if got := s.lease(l); got != want {
				s.Errorf("lease %+v, want %+v", got, want)
			}
		}},
		{"beats answer in order, stale ones with no", beatsInOrder}, // W11
		{"a beat extends a lease also after its end", func(s *subject) {
			l := s.run()
			row := l.schedule(nil)
			s.take(at(0), 1)
			s.beat(l, row, row.Token(1), at(1))
			if got := s.beat(l, row, row.Token(1), at(27)); !got.OK || !s.lease(l).LeaseEnd.Equal(at(35)) {
				s.Errorf("answer %+v with lease %+v, want OK until 35: not beyond the attempt and its grace", got, s.lease(l))
			}
		}},
		{"a beat under the current token takes a lapsed hand-over up again", func(s *subject) {
			l := s.run()
			row := l.schedule(nil)
			s.take(at(0), 1)
			s.lapse(l, row.Token(1), at(5), at(6))
			if got := s.beat(l, row, row.Token(1), at(6)); !got.OK {
				s.Errorf("answer %+v, want OK", got)
			}
			if got := s.take(at(7), 1); len(got) != 0 {
				s.Errorf("the task was handed out beside its worker: %+v", got)
			}
			if got := s.lease(l); !got.Leased || !got.Confirmed || got.Lapsed != 0 {
				s.Errorf("lease %+v, want confirmed and no lapses", got)
			}
		}},
		{"beats in another order never shorten the lease", func(s *subject) {
			l := s.run()
			row := l.schedule(nil)
			s.take(at(0), 1)
			s.beat(l, row, row.Token(1), at(8))
			s.beat(l, row, row.Token(1), at(4))
			if got := s.lease(l).LeaseEnd; !got.Equal(at(28)) {
				s.Errorf("lease ends at %v, want %v", got, at(28))
			}
		}},
		{"a begin gives the work lease and keeps the attempt's end", beginLease},
		{"a sweep looks early, never late", checkTimes},
		{"an awaited row that nobody holds is looked at at once", awaitedFree}, // W24, S-13
		{"only a sweep moves the look later, under its conditions", checkMoves},
		{"due tasks come in the order of their times and are not claimed", func(s *subject) {
			for _, give := range []float64{30, 10, 20, 99} {
				s.run().schedule(func(r *ringi.TaskRow) { r.GiveUpAt = at(give) })
			}
			for range 2 {
				due, err := s.h.Store.DueTasks(s.ctx, at(50), 2)
				s.must(err)
				if len(due) != 2 || !due[0].Row.GiveUpAt.Equal(at(10)) || !due[1].Row.GiveUpAt.Equal(at(20)) {
					s.Errorf("due %+v, want those of 10 and 20", due)
				}
			}
		}},
	}
}

func beatsInOrder(s *subject) {
	a, b := s.run(), s.run()
	ra, rb := a.schedule(nil), b.schedule(nil)
	s.take(at(0), 2)
	s.lapse(b, rb.Token(1), at(5), at(5))
	s.take(at(5), 1) // b is handed out again: token 2
	beat := func(l *line, row ringi.TaskRow, token int64) store.Beat {
		return store.Beat{Key: l.Key, Step: row.Step, Direction: row.Direction, Token: token, Now: at(6)}
	}
	wrongStep, wrongDirection := beat(a, ra, ra.Token(1)), beat(a, ra, ra.Token(1))
	wrongStep.Step = "charge"
	wrongDirection.Direction = ringi.Undo
	before := s.lease(b)
	got, err := s.h.Store.Beat(s.ctx,
		beat(b, rb, rb.Token(1)), beat(a, ra, ra.Token(1)), beat(a, ra, ra.Token(0)), wrongStep, wrongDirection, beat(s.run(), ra, ra.Token(1)))
	s.must(err)
	want := []bool{false, true, false, false, false, false}
	for i := range want {
		if got[i].OK != want[i] {
			s.Errorf("beat %d: OK %v, want %v", i, got[i].OK, want[i])
		}
	}
	if after := s.lease(b); after != before {
		s.Errorf("a stale beat made the lease %+v, want %+v", after, before)
	}
}

func beginLease(s *subject) {
	l := s.run()
	row := l.schedule(func(r *ringi.TaskRow) { r.Begin = true })
	s.take(at(0), 1)
	row.Begun = row.Token(1)
	w := l.next(1)
	w.Needs = []ringi.Need{{Token: row.Token(1)}}
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Begun: at(21)}}
	l.do(w)
	want := store.TaskLease{Token: row.Token(1), Leased: true, Confirmed: true, Worker: "w1", LeaseEnd: at(21), AttemptEnd: at(30)}
	if got := s.lease(l); got != want {
		s.Errorf("lease %+v, want %+v", got, want)
	}
	standing, err := s.h.Records.Standing(s.ctx, l.Key)
	s.must(err)
	if len(standing.Tasks) != 1 || standing.Tasks[0] != row {
		s.Errorf("task %+v, want %+v", standing.Tasks, row)
	}
}

func checkTimes(s *subject) {
	looked := func(what string, l *line, now time.Time, want bool) {
		s.Helper()
		found := false
		for _, d := range s.due(now) {
			found = found || d.Key == l.Key
		}
		if found != want {
			s.Errorf("%s: looked at by %v: %v, want %v", what, now.Sub(at(0)), found, want)
		}
	}
	ready := s.run()
	ready.schedule(func(r *ringi.TaskRow) { r.GiveUpAt = at(60) })
	looked("ready", ready, at(59), false)
	looked("ready", ready, at(60), true)
	s.claim(store.Claim{Tenant: tenant, Queue: "default", Worker: "w1", Max: 1, Now: at(10), Handover: handover})
	looked("handed over", ready, at(14), false)
	looked("handed over", ready, at(15), true)

	never := s.run()
	never.schedule(nil)
	looked("ready without a limit", never, at(1e7), false)

	short := s.run()
	row := short.task(0, at(0))
	row.Timeout = 2 * time.Second
	w := short.start("")
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true, Lease: &store.Lease{Worker: "w1", At: at(0), Until: at(5)}}}
	short.do(w)
	looked("attempt shorter than its hand-over", short, at(2), true)

	// The next step in place keeps the earlier look.
	next := short.task(0, at(1))
	w = short.next(1)
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &next, Fresh: true, Lease: &store.Lease{Worker: "w1", At: at(1), Until: at(90)}}}
	short.do(w)
	looked("next step", short, at(31), true)
}

// awaitedFree lets a hand-over lapse before the write that begins to wait for
// it: nobody will hand the row out or answer for it any more.
func awaitedFree(s *subject) {
	for _, give := range []time.Time{{}, at(1e6)} {
		l := s.run()
		row := l.schedule(func(r *ringi.TaskRow) { r.GiveUpAt = give })
		s.take(at(0), 1)
		s.lapse(l, row.Token(1), at(5), at(5))
		row.Held, row.Awaited = true, true
		w := l.next(1)
		w.Tasks = []store.TaskChange{{Lane: 0, Row: &row}}
		l.do(w)
		found := false
		for _, d := range s.due(at(6)) {
			found = found || d.Key == l.Key
		}
		if !found {
			s.Errorf("with the time to give up at %v nobody looks at the row", give)
		}
	}
}

func checkMoves(s *subject) {
	l := s.run()
	row := l.schedule(nil)
	s.take(at(0), 1)
	dueAt := func(now float64) bool { return len(s.due(at(now))) == 1 }
	move := func(c store.Check) {
		c.Key = l.Key
		s.must(s.h.Store.Settle(s.ctx, store.Settlement{Checks: []store.Check{c}}))
	}
	move(store.Check{Token: row.Token(2), At: at(50)})
	move(store.Check{Token: row.Token(1), At: at(50), LeaseEnd: at(4)})
	if !dueAt(5) {
		s.Error("a look was moved although its condition failed")
	}
	move(store.Check{Token: row.Token(1), At: at(20), LeaseEnd: at(5)})
	if dueAt(19) || !dueAt(20) {
		s.Error("the look was not moved to 20")
	}
	move(store.Check{Token: row.Token(1), At: at(40)})
	if dueAt(39) || !dueAt(40) {
		s.Error("the look was not moved to 40")
	}
	// A lapse gives the row back and looks again when it may give up.
	s.lapse(l, row.Token(1), at(5), at(6))
	if dueAt(1e7) {
		s.Error("a look stands although the task has no limit")
	}
	s.take(at(6), 1)
	if dueAt(10) || !dueAt(11) {
		s.Error("the next hand-out is not looked at when its lease ends")
	}
}
