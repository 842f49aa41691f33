package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

func startKeyTests() []suiteTest {
	return []suiteTest{
		{"a taken key loses and names its holder", func(s *subject) {
			holder, other := s.run(), s.run()
			holder.do(holder.start("o-1"))
			w := other.start("o-1")
			lost := s.lose(w)
			s.wantHolder(lost, ringi.Holder{Run: holder.Key.Run, Seq: 1, Version: 3, Status: ringi.Running, InputDigest: "input-o-1"})
			if got := s.count(other.Key); got != (rows{}) {
				s.Errorf("the loser left %+v", got)
			}
		}},
		{"the holder's status is the one that stands", func(s *subject) {
			holder, other := s.run(), s.run()
			holder.do(holder.start("o-1"))
			w := holder.next(1)
			w.Run = &ringi.RunRow{Status: ringi.Completed, EndedAt: at(4)}
			holder.do(w)
			s.wantHolder(s.lose(other.start("o-1")), ringi.Holder{Run: holder.Key.Run, Seq: 2, Version: 3, Status: ringi.Completed, InputDigest: "input-o-1"})
		}},
		{"two starts of one batch see each other", func(s *subject) {
			first, second := s.run(), s.run()
			lost := s.lose(first.start("o-1"), second.start("o-1"))
			if lost.Index != 1 {
				s.Errorf("write %d lost, want 1", lost.Index)
			}
			s.wantHolder(lost, ringi.Holder{Run: first.Key.Run, Seq: 1, Version: 3, Status: ringi.Running, InputDigest: "input-o-1"})
		}},
		{"a key of a write that lost is free", func(s *subject) {
			l := s.started()
			lost := line{Key: l.Key, s: s}
			winner := s.run()
			if got := s.lose(lost.start("o-1"), winner.start("o-1")); got.Index != 0 || got.What != store.CondSequence {
				s.Errorf("lost %+v, want write 0 on %s", got, store.CondSequence)
			}
		}},
		{"the key belongs to tenant and definition", func(s *subject) {
			a, b, c := s.run(), s.runOf(2), s.run()
			other := c.start("o-1")
			other.Start.Definition = "refund"
			s.apply(a.start("o-1"), b.start("o-1"), other)
		}},
		{"an empty key holds nothing", func(s *subject) {
			a, b := s.run(), s.run()
			s.apply(a.start(""), b.start(""))
		}},
	}
}

func (s *subject) wantHolder(lost store.LostWrite, want ringi.Holder) {
	s.Helper()
	if lost.What != store.CondStartKey || lost.Lost.Holder == nil || *lost.Lost.Holder != want {
		s.Errorf("lost on %s with holder %+v, want %s with %+v", lost.What, lost.Lost.Holder, store.CondStartKey, want)
	}
}

// taskStates brings the task of a fresh run into each state that needs tell apart.
func taskStates() map[string]func(*line) {
	born := func(l *line, lease *store.Lease) {
		row := l.task(0, at(0))
		w := l.start("")
		w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true, Lease: lease}}
		l.do(w)
	}
	lease := &store.Lease{Worker: "w1", At: at(0), Until: at(5)}
	return map[string]func(*line){
		"ready":  func(l *line) { born(l, nil) },
		"leased": func(l *line) { born(l, lease) },
		"lapsed": func(l *line) {
			born(l, lease)
			l.s.must(l.s.h.Store.Settle(l.s.ctx, store.Settlement{Lapses: []store.Lapse{
				{Key: l.Key, Token: 1<<16 + 1, LeaseEnd: at(5), ReadyAt: at(6)},
			}}))
		},
		"gone": func(l *line) { l.do(l.start("")) },
	}
}

func needTests() []suiteTest {
	const base, first = 1 << 16, 1<<16 + 1
	cases := []struct {
		state string
		need  ringi.Need
		holds bool
	}{
		{"ready", ringi.Need{Token: base, How: ringi.NeedToken}, true},
		{"ready", ringi.Need{Token: first, How: ringi.NeedToken}, false},
		{"leased", ringi.Need{Token: first, How: ringi.NeedToken}, true},
		{"leased", ringi.Need{Token: base, How: ringi.NeedToken}, false},
		{"leased", ringi.Need{Token: 9 << 16, How: ringi.NeedToken}, false},
		{"lapsed", ringi.Need{Token: first, How: ringi.NeedToken}, true},
		{"gone", ringi.Need{Token: first, How: ringi.NeedToken}, false},
		{"ready", ringi.Need{Token: base, How: ringi.NeedUntouched}, true},
		{"leased", ringi.Need{Token: base, How: ringi.NeedUntouched}, false},
		{"lapsed", ringi.Need{Token: base, How: ringi.NeedUntouched}, false},
		{"lapsed", ringi.Need{Token: first, How: ringi.NeedUntouched}, false},
		{"gone", ringi.Need{Token: base, How: ringi.NeedUntouched}, false},
		{"ready", ringi.Need{Token: base, How: ringi.NeedFree}, true},
		{"leased", ringi.Need{Token: first, How: ringi.NeedFree}, false},
		{"lapsed", ringi.Need{Token: first, How: ringi.NeedFree}, true},
		{"lapsed", ringi.Need{Token: base, How: ringi.NeedFree}, false},
		{"leased", ringi.Need{Token: first, How: ringi.NeedExpired, LeaseEnd: at(5)}, true},
		{"leased", ringi.Need{Token: first, How: ringi.NeedExpired, LeaseEnd: at(6)}, false},
		{"leased", ringi.Need{Token: base, How: ringi.NeedExpired, LeaseEnd: at(5)}, false},
		{"lapsed", ringi.Need{Token: first, How: ringi.NeedExpired, LeaseEnd: at(5)}, false},
	}
	how := map[ringi.NeedHow]string{ringi.NeedToken: "token", ringi.NeedUntouched: "untouched", ringi.NeedFree: "free", ringi.NeedExpired: "expired"}
	seen := map[string]ringi.Seen{"ready": {Token: base}, "leased": {Token: first, Leased: true}, "lapsed": {Token: first}, "gone": {}}
	var tests []suiteTest
	for _, c := range cases {
		name := fmt.Sprintf("%s of %#x holds on a %s task: %v", how[c.need.How], c.need.Token, c.state, c.holds)
		tests = append(tests, suiteTest{name, func(s *subject) { // W11, W12
			for _, form := range needForms() {
				l := s.run()
				taskStates()[c.state](l)
				before := s.count(l.Key)
				w := form.write(l)
				w.Needs = []ringi.Need{c.need}
				if c.holds {
					s.apply(w)
					continue
				}
				lost := s.lose(w)
				if lost.What != store.CondTask || len(lost.Lost.Tasks) != 1 || lost.Lost.Tasks[0] != seen[c.state] {
					s.Errorf("%s: lost on %s, saw %v, want %s and %v", form.name, lost.What, lost.Lost.Tasks, store.CondTask, seen[c.state])
				}
				if got := s.count(l.Key); got != before {
					s.Errorf("%s: the loser left %+v, want %+v", form.name, got, before)
				}
			}
		}})
	}
	return append(tests, suiteTest{"all needs of a write must hold, and the loss shows every lane", severalNeeds})
}

// needForms are the writes that rely on a task, since a driver may check the
// condition in the statement that changes the row.
func needForms() []struct {
	name  string
	write func(*line) store.Write
} {
	return []struct {
		name  string
		write func(*line) store.Write
	}{
		{"claim", (*line).claim},
		{"events only", func(l *line) store.Write { return l.next(1) }},
		{"next task in place", func(l *line) store.Write {
			row := l.task(0, at(1))
			w := l.next(1)
			w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true, Lease: &store.Lease{Worker: "w2", At: at(1), Until: at(6)}}}
			return w
		}},
		{"task changed", func(l *line) store.Write {
			row := l.task(0, at(0))
			row.Seq = 1
			w := l.next(1)
			w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Begun: at(20)}}
			return w
		}},
		{"task deleted", func(l *line) store.Write {
			w := l.next(1)
			w.Tasks = []store.TaskChange{{Lane: 0}}
			return w
		}},
	}
}

func severalNeeds(s *subject) {
	l := s.run()
	a, b := l.task(0, at(0)), l.task(1, at(0))
	w := l.start("")
	w.Tasks = []store.TaskChange{
		{Lane: 0, Row: &a, Fresh: true, Lease: &store.Lease{Worker: "w1", At: at(0), Until: at(5)}},
		{Lane: 1, Row: &b, Fresh: true},
	}
	l.do(w)
	w = l.next(1)
	w.Tasks = []store.TaskChange{{Lane: 0}, {Lane: 1}}
	w.Needs = []ringi.Need{{Lane: 0, Token: a.Token(1)}, {Lane: 1, Token: b.Token(1)}}
	lost := s.lose(w)
	want := map[int]ringi.Seen{0: {Token: a.Token(1), Leased: true}, 1: {Token: b.Token(0)}}
	if fmt.Sprint(lost.Lost.Tasks) != fmt.Sprint(want) {
		s.Errorf("saw %v, want %v", lost.Lost.Tasks, want)
	}
	if got := s.count(l.Key); got.tasks != 2 {
		s.Errorf("%d tasks stand, want 2", got.tasks)
	}
	w.Needs = []ringi.Need{{Lane: 0, Token: a.Token(1)}, {Lane: 1, Token: b.Token(0), How: ringi.NeedUntouched}}
	s.apply(w)
}

func badWriteTests() []suiteTest {
	spoil := []struct {
		name  string
		spoil func(s *subject, w *store.Write)
	}{
		{"a run id that is no UUID", func(_ *subject, w *store.Write) { w.Key.Run = "run-1" }},
		{"events without a commit id", func(_ *subject, w *store.Write) { w.Commit = store.CommitID{} }},
		{"a sequence below 1", func(_ *subject, w *store.Write) { w.First = 0 }},
		{"a second write of the run", func(_ *subject, w *store.Write) { w.Key = store.Key{} }},
		{"a message without a type", func(s *subject, w *store.Write) {
			m := s.message("o-1")
			m.Type = ""
			w.Messages = []outbox.Message{m}
		}},
		{"a message whose id is in the outbox", func(s *subject, w *store.Write) {
			l := s.run()
			first := l.full()
			l.do(first)
			w.Messages = []outbox.Message{first.Messages[0]}
		}},
	}
	var tests []suiteTest
	for _, c := range spoil {
		tests = append(tests, suiteTest{c.name + " is named, and the batch is not applied", func(s *subject) {
			good, bad, other := s.started(), s.started(), s.started()
			w, g, o := bad.next(1), good.next(1), other.next(1)
			c.spoil(s, &w)
			if w.Key == (store.Key{}) {
				w.Key = good.Key
			}
			_, err := s.h.Store.Commit(s.ctx, g, w, o)
			var refused *store.BadWrite
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Err == nil {
				s.Fatalf("answer %v, want BadWrite 1", err)
			}
			for _, l := range []*line{good, bad, other} {
				if got := s.count(l.Key); got.log != 1 {
					s.Errorf("%d log rows, want 1", got.log)
				}
			}
			s.apply(g, o) // the rest of the batch goes on without it
		}})
	}
	return append(tests, suiteTest{"a context that has ended does nothing", func(s *subject) {
		l := s.started()
		ctx, cancel := contextEnding(s.ctx, 0)
		defer cancel()
		if _, err := s.h.Store.Commit(ctx, l.next(1)); !errors.Is(err, store.ErrUnavailable) {
			s.Errorf("answer %v, want ErrUnavailable", err)
		}
		if got := s.count(l.Key); got.log != 1 {
			s.Errorf("%d log rows, want 1", got.log)
		}
		l.do(l.next(1))
	}})
}

// handover is the length of the first lease in these tests.
const handover = 5 * time.Second
