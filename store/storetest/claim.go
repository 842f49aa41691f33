package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// take claims tasks of queue "default" at a time.
func (s *subject) take(now time.Time, limit int) []store.Claimed {
	s.Helper()
	return s.claim(store.Claim{Queue: "default", Worker: "w1", Max: limit, Now: now, Handover: handover})
}

func (s *subject) claim(c store.Claim) []store.Claimed {
	s.Helper()
	claimed, err := s.h.Store.Claim(s.ctx, c)
	s.must(err)
	return claimed
}

// due reads the task rows that a sweep looks at, at a time.
func (s *subject) due(now time.Time) []store.DueTask {
	s.Helper()
	tasks, err := s.h.Store.DueTasks(s.ctx, now, 100)
	s.must(err)
	return tasks
}

// lease reads the lease of a run's only task: far in the future every row is due.
func (s *subject) lease(l *line) store.TaskLease {
	s.Helper()
	for _, t := range s.due(at(1e8)) {
		if t.Key == l.Key {
			return t.TaskLease
		}
	}
	s.Fatalf("no sweep ever looks at the task of run %s", l.Key.Run)
	return store.TaskLease{}
}

func claimTests() []suiteTest {
	return []suiteTest{
		{"gives all that the worker must be told", claimTells}, // W10
		{"gives the log row that holds the input, also from inside a transition", claimInput},
		{"takes the oldest first", func(s *subject) {
			var want []ringi.RunID
			for _, ready := range []float64{3, 1, 2} {
				l := s.run()
				l.schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(ready) })
				want = append(want, l.Key.Run)
			}
			want = []ringi.RunID{want[1], want[2], want[0]}
			var got []ringi.RunID
			for range 2 {
				for _, c := range s.take(at(9), 2) {
					got = append(got, c.Key.Run)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				s.Errorf("claimed %v, want %v", got, want)
			}
		}},
		{"leaves what is not ready, held, of another queue, activity or tenant", claimLeaves},
		{"leaves what became ready only a moment ago, if it is to", claimDue},
		{"takes only the tasks that are named", claimOnly},
		{"takes tenants in turn", claimInTurn}, // W26
		{"gives each hand-out the next token", claimTokens},
		{"a hand-over that lapsed is handed out again under the next token", claimLapsed},
		{"a hand-out that reached nobody takes its token back", claimUnsent},
		{"a task that is only let finish is not given back", claimAwaited}, // W24
		{"a task that is born leased has had its first hand-out", claimBornLeased},
		{"a new attempt begins its tokens anew, a changed row keeps them", claimFresh},
		{"a paused task is not handed out and a resumed one is", claimHeld},
	}
}

func claimTells(s *subject) {
	l := s.run()
	row := l.task(2, at(1))
	row.Direction, row.Attempt, row.Begin = ringi.Undo, 3, true
	row.GiveUpAt, row.TotalAt = at(600), at(900)
	w := l.start("")
	w.Tasks = []store.TaskChange{{Lane: 2, Row: &row, Fresh: true}}
	l.do(w)
	got := s.take(at(2), 5)
	if len(got) != 1 {
		s.Fatalf("claimed %d tasks, want 1", len(got))
	}
	c := got[0]
	if c.Key != l.Key || c.Row != row || c.Token != row.Token(1) || c.Definition != "order" || c.Version != 3 {
		s.Errorf("claimed %+v, want row %+v with token %d", c, row, row.Token(1))
	}
	if c.InputFirst != 1 || !bytes.Equal(c.InputBody, w.Body) {
		s.Errorf("input row %d %s, want 1 %s", c.InputFirst, c.InputBody, w.Body)
	}
	want := store.TaskLease{Token: row.Token(1), Leased: true, Worker: "w1", LeaseEnd: at(2 + 5), AttemptEnd: at(2 + 30)}
	if lease := s.lease(l); lease != want {
		s.Errorf("lease %+v, want %+v", lease, want)
	}
}

func claimInput(s *subject) {
	l := s.started()
	w := l.next(4)
	row := l.task(0, at(0))
	row.Seq, row.InputSeq = 4, 4
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true}}
	l.do(w)
	l.do(l.next(2))
	c := s.take(at(1), 1)
	if len(c) != 1 || c[0].InputFirst != 2 || !bytes.Equal(c[0].InputBody, w.Body) {
		s.Errorf("claimed %+v, want the log row at 2", c)
	}
}

func claimDue(s *subject) {
	old, young := s.run(), s.run()
	old.schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(1) })
	young.schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(3) })
	c := store.Claim{Queue: "default", Worker: "w1", Max: 5, Now: at(4), Due: at(2), Handover: handover}
	if got := s.claim(c); len(got) != 1 || got[0].Key != old.Key {
		s.Errorf("claimed %+v, want the task of run %s", got, old.Key.Run)
	}
	if end := s.lease(old).LeaseEnd; !end.Equal(at(4 + 5)) {
		s.Errorf("its lease ends at %v, and begins at the time of the claim", end)
	}
	c.Due = at(3)
	if got := s.claim(c); len(got) != 1 || got[0].Key != young.Key {
		s.Errorf("claimed %+v, want the task of run %s", got, young.Key.Run)
	}
}

func claimOnly(s *subject) {
	var all []store.TaskRef
	for _, change := range []func(*ringi.TaskRow){
		func(r *ringi.TaskRow) { r.ReadyAt = at(3) },
		func(r *ringi.TaskRow) { r.ReadyAt = at(1) }, // not named
		func(r *ringi.TaskRow) { r.ReadyAt, r.Activity = at(2), "another" },
		func(r *ringi.TaskRow) { r.ReadyAt = at(50) },
		func(r *ringi.TaskRow) { r.Held = true },
		func(r *ringi.TaskRow) { r.Queue = "another" },
	} {
		l := s.run()
		l.schedule(change)
		all = append(all, store.TaskRef{Key: l.Key, Lane: 0})
	}
	named := append([]store.TaskRef{{Key: all[0].Key, Lane: 7}, all[0]}, all[2:]...)
	c := store.Claim{Queue: "default", Activities: []string{"none"}, Worker: "w1", Max: 9, Now: at(4), Handover: handover, Only: named}
	got := s.claim(c)
	if len(got) != 2 || got[0].Key != all[2].Key || got[1].Key != all[0].Key || len(got[0].InputBody) == 0 || got[0].Definition == "" {
		s.Fatalf("claimed %+v, want the tasks of runs %s and %s with all that is to be told", got, all[2].Key.Run, all[0].Key.Run)
	}
	if again := s.claim(c); len(again) != 0 {
		s.Errorf("claimed %+v again", again)
	}
	c.Only = []store.TaskRef{}
	if none := s.claim(c); len(none) != 0 {
		s.Errorf("claimed %+v, and nothing was named", none)
	}
}

func claimLeaves(s *subject) {
	for _, change := range []func(*ringi.TaskRow){
		func(r *ringi.TaskRow) { r.ReadyAt = at(50) },
		func(r *ringi.TaskRow) { r.Held = true },
		func(r *ringi.TaskRow) { r.Queue = "mail" },
		func(r *ringi.TaskRow) { r.Activity = "mail.send" },
	} {
		s.run().schedule(change)
	}
	s.runOf(2).schedule(nil)
	got := s.claim(store.Claim{Tenant: tenant, Queue: "default", Activities: []string{"a", "inventory.reserve"}, Worker: "w1", Max: 9, Now: at(49), Handover: handover})
	if len(got) != 0 {
		s.Errorf("claimed %+v, want nothing", got)
	}
	if got := s.take(at(50), 9); len(got) != 3 {
		s.Errorf("claimed %d tasks, want the one that became ready, the other activity's and the other tenant's", len(got))
	}
}

func claimInTurn(s *subject) {
	for i := range 6 {
		s.runOf(1).schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(float64(i)) })
	}
	for _, other := range []ringi.Tenant{2, 7} {
		for range 2 {
			s.runOf(other).schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(20) })
		}
	}
	counts := func(limit int) map[ringi.Tenant]int {
		n := map[ringi.Tenant]int{}
		for _, c := range s.take(at(30), limit) {
			n[c.Key.Tenant]++
		}
		return n
	}
	if got := counts(3); got[1] != 1 || got[2] != 1 || got[7] != 1 {
		s.Errorf("a claim of 3 took %v, want one of each tenant", got)
	}
	one, two, three := counts(1), counts(1), counts(1)
	if one[1]+two[1]+three[1] != 1 {
		s.Errorf("three claims of 1 took %v, %v, %v, want one of each tenant", one, two, three)
	}
	if got := counts(9); got[1] != 4 {
		s.Errorf("the rest is %v, want 4 of tenant 1", got)
	}
}

func claimTokens(s *subject) {
	l := s.run()
	row := l.schedule(func(r *ringi.TaskRow) { r.GiveUpAt = at(900) })
	now := 0.0
	for n := 1; n <= 4; n++ {
		c := s.take(at(now), 1)
		if len(c) != 1 || c[0].Token != row.Token(n) {
			s.Fatalf("hand-out %d: %+v, want token %d", n, c, row.Token(n))
		}
		s.lapse(l, c[0].Token, at(now+5), at(now+6))
		if lease := s.lease(l); lease.Lapsed != n || lease.Leased || lease.Worker != "" {
			s.Errorf("after lapse %d: %+v", n, lease)
		}
		now += 6
	}
}

func (s *subject) lapse(l *line, token int64, end, ready time.Time) {
	s.Helper()
	s.must(s.h.Store.Settle(s.ctx, store.Settlement{Lapses: []store.Lapse{{Key: l.Key, Token: token, LeaseEnd: end, ReadyAt: ready}}}))
}

func claimLapsed(s *subject) {
	l := s.run()
	row := l.schedule(func(r *ringi.TaskRow) { r.GiveUpAt = at(300) })
	s.take(at(0), 1)
	for _, wrong := range []store.Lapse{
		{Key: l.Key, Token: row.Token(1), LeaseEnd: at(4), ReadyAt: at(5)},
		{Key: l.Key, Token: row.Token(2), LeaseEnd: at(5), ReadyAt: at(5)},
		{Key: l.Key, Lane: 1, Token: row.Token(1), LeaseEnd: at(5), ReadyAt: at(5)},
	} {
		s.must(s.h.Store.Settle(s.ctx, store.Settlement{Lapses: []store.Lapse{wrong}}))
		if lease := s.lease(l); !lease.Leased {
			s.Fatalf("lapse %+v was applied", wrong)
		}
	}
	s.lapse(l, row.Token(1), at(5), at(8))
	if got := s.take(at(7), 1); len(got) != 0 {
		s.Errorf("handed out before it was ready again: %+v", got)
	}
	if got := s.take(at(8), 1); len(got) != 1 || got[0].Token != row.Token(2) || !got[0].Row.ReadyAt.Equal(at(8)) {
		s.Errorf("handed out %+v, want token %d", got, row.Token(2))
	}
	// A confirmed lease never lapses: its end is a command.
	s.beat(l, row, row.Token(2), at(9))
	s.lapse(l, row.Token(2), s.lease(l).LeaseEnd, at(40))
	if lease := s.lease(l); !lease.Leased {
		s.Error("a confirmed lease lapsed")
	}
}

// A hand-out that reached nobody never was one: not for the token, nor for the
// lapses in a row.
func claimUnsent(s *subject) {
	l := s.run()
	row := l.schedule(func(r *ringi.TaskRow) { r.GiveUpAt = at(300) })
	s.take(at(0), 1)
	give := func(token int64, end, ready float64) {
		s.Helper()
		s.must(s.h.Store.Settle(s.ctx, store.Settlement{Lapses: []store.Lapse{{Key: l.Key, Token: token, LeaseEnd: at(end), ReadyAt: at(ready), Unsent: true}}}))
	}
	give(row.Token(1), 5, 3)
	if lease := s.lease(l); lease.Leased || lease.Lapsed != 0 || lease.Token != row.Token(0) {
		s.Errorf("after a hand-out to nobody: %+v", lease)
	}
	if got := s.take(at(2), 1); len(got) != 0 {
		s.Errorf("handed out before it was ready again: %+v", got)
	}
	if got := s.take(at(3), 1); len(got) != 1 || got[0].Token != row.Token(1) {
		s.Errorf("handed out %+v, want token %d", got, row.Token(1))
	}
	give(row.Token(1), 5, 4) // the same word again, late: it is of another lease
	if got := s.take(at(4), 1); len(got) != 0 {
		s.Errorf("a later hand-out was taken back: %+v", got)
	}
	s.lapse(l, row.Token(1), at(8), at(9))
	s.take(at(9), 1)
	give(row.Token(2), 14, 10)
	if lease := s.lease(l); lease.Leased || lease.Lapsed != 1 || lease.Token != row.Token(1) {
		s.Errorf("after a lapse and a hand-out to nobody: %+v", lease)
	}
}

func claimAwaited(s *subject) {
	l := s.run()
	row := l.schedule(nil)
	s.take(at(0), 1)
	row.Held, row.Awaited = true, true
	w := l.next(1)
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row}}
	l.do(w)
	s.lapse(l, row.Token(1), at(5), at(5))
	if lease := s.lease(l); !lease.Leased {
		s.Error("an awaited task was given back; nobody would ever look at it again")
	}
}

func claimBornLeased(s *subject) {
	l := s.run()
	row := l.task(0, at(0))
	row.TotalAt = at(12)
	w := l.start("")
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true, Lease: &store.Lease{Worker: "w9", At: at(0), Until: at(5)}}}
	l.do(w)
	if got := s.take(at(3), 1); len(got) != 0 {
		s.Errorf("a leased task was handed out: %+v", got)
	}
	want := store.TaskLease{Token: row.Token(1), Leased: true, Worker: "w9", LeaseEnd: at(5), AttemptEnd: at(12)}
	if lease := s.lease(l); lease != want {
		s.Errorf("lease %+v, want %+v", lease, want)
	}
}

func claimFresh(s *subject) {
	l := s.run()
	row := l.schedule(nil)
	s.take(at(0), 1)
	leased := s.lease(l)
	w := l.next(1)
	row.GiveUpAt = at(500)
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row}}
	l.do(w)
	if got := s.lease(l); got != leased {
		s.Errorf("a change of the row made the lease %+v, want %+v", got, leased)
	}
	next := l.task(0, at(1))
	next.Attempt = 2
	w = l.next(1)
	w.Needs = []ringi.Need{{Token: row.Token(1)}}
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &next, Fresh: true}}
	l.do(w)
	if got := s.take(at(1), 1); len(got) != 1 || got[0].Token != next.Token(1) || got[0].Row != next {
		s.Errorf("handed out %+v, want %+v with token %d", got, next, next.Token(1))
	}
}

func claimHeld(s *subject) {
	l := s.run()
	row := l.schedule(nil)
	hold := func(held bool) {
		row.Held = held
		w := l.next(1)
		w.Tasks = []store.TaskChange{{Lane: 0, Row: &row}}
		l.do(w)
	}
	hold(true)
	if got := s.take(at(1), 1); len(got) != 0 {
		s.Errorf("a held task was handed out: %+v", got)
	}
	hold(false)
	if got := s.take(at(1), 1); len(got) != 1 {
		s.Errorf("handed out %d tasks, want 1", len(got))
	}
	hold(true)
	if got := s.beat(l, row, row.Token(1), at(2)); !got.OK || !got.Held {
		s.Errorf("beat %+v, want OK and held", got)
	}
}
