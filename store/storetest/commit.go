package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

func commitTests() []suiteTest {
	return []suiteTest{
		{"without writes answers clock and incarnation", func(s *subject) {
			a, b := s.commit(), s.commit()
			if a.Now.IsZero() || a.Now.Location().String() != "UTC" || a.Now.Nanosecond()%1000 != 0 {
				s.Errorf("now %v, want UTC in whole microseconds", a.Now)
			}
			if a.Incarnation == "" || a.Incarnation != b.Incarnation {
				s.Errorf("incarnations %q and %q, want one that stays", a.Incarnation, b.Incarnation)
			}
		}},
		{"a start is applied with a row of every kind", func(s *subject) {
			l := s.run()
			l.do(l.full())
			want := rows{log: 1, tasks: 1, timers: 1, waits: 1, approvals: 1, incidents: 1, messages: 1, audit: 1, snapshot: true, listed: true}
			if got := s.count(l.Key); got != want {
				s.Errorf("stands %+v, want %+v", got, want)
			}
		}},
		{"the list row changes in the transaction of the log", listRowMoves},
		{"rows are put and deleted", rowsAreDeleted},
		{"of two writes of one sequence the second loses and leaves nothing", secondWriteLoses},
		{"a write on another history of the same length loses", func(s *subject) { // W6
			l := s.started()
			w := l.next(1)
			w.Prev = store.Chain(nil, []byte("another history"))
			if lost := s.lose(w); lost.What != store.CondSequence {
				s.Errorf("lost on %s, want %s", lost.What, store.CondSequence)
			}
		}},
		{"a write that would leave a gap loses", func(s *subject) {
			l := s.started()
			l.seq++
			if lost := s.lose(l.next(1)); lost.What != store.CondSequence {
				s.Errorf("lost on %s, want %s", lost.What, store.CondSequence)
			}
		}},
		{"a write into the middle of a transition loses", func(s *subject) {
			l := s.started()
			before := *l
			l.do(l.next(3))
			before.seq++
			if lost := s.lose(before.next(1)); lost.What != store.CondSequence {
				s.Errorf("lost on %s, want %s", lost.What, store.CondSequence)
			}
		}},
		{"a start of a run that exists loses", func(s *subject) {
			l := s.started()
			again := line{Key: l.Key, s: s}
			if lost := s.lose(again.start("")); lost.What != store.CondSequence {
				s.Errorf("lost on %s, want %s", lost.What, store.CondSequence)
			}
		}},
		{"a claim holds where the run stands and writes nothing", claimHolds},
		{"losers are reported alone and winners applied", losersAlone},
		{"messages come out of the outbox numbered in the order of commits", messagesInOrder}, // O8
		{"after Close everything is unavailable", closed},
	}
}

func listRowMoves(s *subject) {
	l := s.started()
	w := l.next(2)
	w.Run = &ringi.RunRow{Status: ringi.Waiting, WaitsFor: "approval", WaitsStep: "approve"}
	l.do(w)
	rec, err := s.h.Records.Run(s.ctx, l.Key)
	s.must(err)
	if rec.RunRow != *w.Run {
		s.Errorf("list row %+v, want %+v", rec.RunRow, *w.Run)
	}
	if rec.Definition != "order" || rec.Version != 3 || rec.Title != "Order 7" || rec.Labels["region"] != "kanto" || !rec.StartedAt.Equal(at(0)) {
		s.Errorf("list row %+v lost what the start wrote", rec.StartRow)
	}
	end := l.next(1)
	end.Run = &ringi.RunRow{Status: ringi.Completed, EndedAt: at(9)}
	stale := l.next(1)
	stale.Run = &ringi.RunRow{Status: ringi.Failed, EndedAt: at(9)}
	l.do(end)
	s.lose(stale)
	rec, err = s.h.Records.Run(s.ctx, l.Key)
	s.must(err)
	if rec.Status != ringi.Completed || !rec.EndedAt.Equal(at(9)) || rec.WaitsFor != "" {
		s.Errorf("list row %+v, want the winner's", rec.RunRow)
	}
}

func rowsAreDeleted(s *subject) {
	l := s.run()
	l.do(l.full())
	w := l.next(1)
	w.Tasks = []store.TaskChange{{Lane: 0}}
	w.Timers = []store.TimerChange{{ID: "deadline"}}
	w.Waits = []store.WaitChange{{Step: "paid"}}
	w.Approvals = []store.ApprovalChange{{Step: "approve"}}
	w.Incidents = []store.IncidentChange{{ID: 2}}
	l.do(w)
	want := rows{log: 2, messages: 1, audit: 1, snapshot: true, listed: true}
	if got := s.count(l.Key); got != want {
		s.Errorf("stands %+v, want %+v", got, want)
	}
}

func secondWriteLoses(s *subject) { // W6
	l := s.started()
	first, second := l.next(1), l.full()
	l.do(first)
	before := s.count(l.Key)
	lost := s.lose(second)
	if lost.What != store.CondSequence || lost.Index != 0 {
		s.Errorf("lost %+v, want write 0 on %s", lost, store.CondSequence)
	}
	if got := s.count(l.Key); got != before {
		s.Errorf("the loser left rows: %+v, want %+v", got, before)
	}
}

func claimHolds(s *subject) {
	l := s.started()
	s.apply(l.claim())
	stale := l.claim()
	l.do(l.next(1))
	if lost := s.lose(stale); lost.What != store.CondSequence {
		s.Errorf("lost on %s, want %s", lost.What, store.CondSequence)
	}
	none := s.run()
	s.apply(none.claim())
	if got := s.count(none.Key); got.listed || got.log != 0 {
		s.Errorf("a claim made rows: %+v", got)
	}
	// What a person was told about a run that did not move is audited.
	w := l.claim()
	w.Audit = []store.AuditRecord{s.audit(l.Key.Run, "decide_approval")}
	s.apply(w)
	if got := s.count(l.Key); got.audit != 1 || got.log != 2 {
		s.Errorf("stands %+v, want 2 log rows and 1 audit record", got)
	}
}

func losersAlone(s *subject) {
	a, b, c := s.started(), s.started(), s.started()
	stale := b.full()
	b.do(b.next(1))
	wa, wc := a.next(1), c.next(1)
	lost := s.lose(wa, stale, wc)
	if lost.Index != 1 {
		s.Errorf("write %d lost, want 1", lost.Index)
	}
	for name, l := range map[string]*line{"before": a, "after": c} {
		if got := s.count(l.Key); got.log != 2 {
			s.Errorf("the write %s the loser left %d log rows, want 2", name, got.log)
		}
	}
	if got := s.count(b.Key); got != (rows{log: 2, listed: true}) {
		s.Errorf("the loser left %+v", got)
	}
}

func messagesInOrder(s *subject) {
	a, b := s.started(), s.started()
	var sent []string
	for i := range 3 {
		for _, l := range []*line{a, b} {
			w := l.next(1)
			w.Messages = []outbox.Message{s.message("o-1"), s.message(fmt.Sprint("other-", i))}
			sent = append(sent, w.Messages[0].ID)
			l.do(w)
		}
	}
	batch, err := s.h.Outbox.Claim(s.ctx, outbox.Claim{By: "test", Now: at(1), Lease: 1e9, Limit: 100})
	s.must(err)
	var got []string
	for _, m := range batch.Messages {
		if m.AggregateID == "o-1" {
			got = append(got, m.ID)
			if m.Seq != int64(len(got)) {
				s.Errorf("message %d of the aggregate has number %d", len(got), m.Seq)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(sent) {
		s.Errorf("messages %v, want %v", got, sent)
	}
}

func closed(s *subject) {
	l := s.started()
	s.must(s.h.Store.Close())
	s.must(s.h.Store.Close())
	_, commit := s.h.Store.Commit(s.ctx, l.next(1))
	_, load := s.h.Store.Load(s.ctx, l.Key)
	_, run := s.h.Records.Run(s.ctx, l.Key)
	_, _, put := s.h.Catalog.PutDefinition(s.ctx, store.Definition{Tenant: tenant, Name: "a", Digest: "d"}, store.AuditRecord{})
	_, pairs := s.h.Events.Pairs(s.ctx, store.PairQuery{Limit: 1})
	for name, err := range map[string]error{"Commit": commit, "Load": load, "Run": run, "PutDefinition": put, "Pairs": pairs} {
		if !errors.Is(err, store.ErrUnavailable) {
			s.Errorf("%s after Close: %v, want ErrUnavailable", name, err)
		}
	}
}

func loadTests() []suiteTest {
	return []suiteTest{
		{"answers every key in order, also of runs that do not exist", func(s *subject) {
			a, none, b := s.started(), s.run(), s.started()
			loaded, err := s.h.Store.Load(s.ctx, b.Key, none.Key, a.Key)
			s.must(err)
			if len(loaded) != 3 {
				s.Fatalf("%d answers, want 3", len(loaded))
			}
			for i, want := range []struct {
				l    *line
				rows int
			}{{b, 1}, {none, 0}, {a, 1}} {
				if got := loaded[i]; got.Key != want.l.Key || len(got.Rows) != want.rows || got.Err != nil || !bytes.Equal(got.Head, want.l.head) {
					s.Errorf("answer %d: run %s with %d rows, head %x, %v", i, got.Key.Run, len(got.Rows), got.Head, got.Err)
				}
			}
		}},
		{"gives log rows back as they were written and chained", loadChained}, // W5, W8
		{"gives the snapshot and the rows behind it", loadSnapshot},
		{"keeps the chain head when the snapshot is at the end", func(s *subject) {
			l := s.started()
			w := l.next(2)
			w.Snapshot = &store.Snapshot{Seq: w.Last, Format: 1, Body: []byte("s")}
			l.do(w)
			loaded, err := s.h.Store.Load(s.ctx, l.Key)
			s.must(err)
			if got := loaded[0]; len(got.Rows) != 0 || got.Snapshot == nil || !bytes.Equal(got.Head, l.head) {
				s.Errorf("loaded %+v, want the snapshot, no rows and head %x", got, l.head)
			}
		}},
		{"a snapshot that is ahead of its log is left out", func(s *subject) { // W5
			l := s.started()
			w := l.next(2)
			w.Snapshot = &store.Snapshot{Seq: w.Last + 1, Format: 1, Body: []byte("ahead")}
			l.do(w)
			loaded, err := s.h.Store.Load(s.ctx, l.Key)
			s.must(err)
			if got := loaded[0]; len(got.Rows) != 2 || got.Snapshot != nil || !bytes.Equal(got.Head, l.head) {
				s.Errorf("loaded %+v, want both rows and no snapshot", got)
			}
		}},
		{"an older snapshot never replaces a newer one", func(s *subject) {
			l := s.started()
			w := l.next(4)
			w.Snapshot = &store.Snapshot{Seq: 5, Format: 1, Body: []byte("new")}
			l.do(w)
			w = l.claim()
			w.Snapshot = &store.Snapshot{Seq: 1, Format: 1, Body: []byte("old")}
			s.apply(w)
			loaded, err := s.h.Store.Load(s.ctx, l.Key)
			s.must(err)
			if got := loaded[0].Snapshot; got == nil || got.Seq != 5 || string(got.Body) != "new" {
				s.Errorf("snapshot %+v, want the one at 5", got)
			}
		}},
	}
}

func loadChained(s *subject) {
	l := s.started()
	var bodies [][]byte
	for i := range 5 {
		w := l.next(i%3 + 1)
		bodies = append(bodies, w.Body)
		l.do(w)
	}
	loaded, err := s.h.Store.Load(s.ctx, l.Key)
	s.must(err)
	var head []byte
	next := int64(1)
	for i, row := range loaded[0].Rows {
		head = store.Chain(head, row.Body)
		if !bytes.Equal(head, row.Head) {
			s.Errorf("row %d: the chain does not verify", row.First)
		}
		if i > 0 && !bytes.Equal(row.Body, bodies[i-1]) {
			s.Errorf("row %d: body %s, want %s", row.First, row.Body, bodies[i-1])
		}
		if row.First != next {
			s.Errorf("row begins at %d, want %d", row.First, next)
		}
		events, err := ringi.DecodeEvents(row.First, row.Body)
		s.must(err)
		next += int64(len(events))
		if row.Last != next-1 || row.Commit == (store.CommitID{}) {
			s.Errorf("row %d says it ends at %d and has commit id %x, want %d and one", row.First, row.Last, row.Commit, next-1)
		}
	}
	if !bytes.Equal(head, l.head) || next != l.seq+1 {
		s.Errorf("chain ends at %d with %x, want %d with %x", next-1, head, l.seq, l.head)
	}
}

func loadSnapshot(s *subject) {
	l := s.started()
	l.do(l.next(1))
	w := l.next(2)
	w.Snapshot = &store.Snapshot{Seq: w.Last, Format: 1, Body: []byte("snap")}
	l.do(w)
	l.do(l.next(1))
	l.do(l.next(2))
	loaded, err := s.h.Store.Load(s.ctx, l.Key)
	s.must(err)
	got := loaded[0]
	if got.Snapshot == nil || got.Snapshot.Seq != 4 || got.Snapshot.Format != 1 || string(got.Snapshot.Body) != "snap" {
		s.Fatalf("snapshot %+v, want the one at 4", got.Snapshot)
	}
	if len(got.Rows) != 2 || got.Rows[0].First != 5 || got.Rows[1].First != 6 {
		s.Errorf("rows %+v, want those at 5 and 6", got.Rows)
	}
}
