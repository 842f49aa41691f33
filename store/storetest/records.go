package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func recordTests() []suiteTest {
	return []suiteTest{
		{"a run that does not exist is not found", func(s *subject) {
			key := s.run().Key
			_, run := s.h.Records.Run(s.ctx, key)
			_, standing := s.h.Records.Standing(s.ctx, key)
			_, odd := s.h.Records.Run(s.ctx, store.Key{Tenant: tenant, Run: "no such id"})
			for name, err := range map[string]error{"Run": run, "Standing": standing, "Run of an odd id": odd} {
				if !errors.Is(err, store.ErrNotFound) {
					s.Errorf("%s: %v, want ErrNotFound", name, err)
				}
			}
			log, err := s.h.Records.Log(s.ctx, key, 0, 100)
			s.must(err)
			if len(log) != 0 {
				s.Errorf("%d log rows of a run that does not exist", len(log))
			}
		}},
		{"another tenant's run is not found", func(s *subject) {
			l := s.started()
			if _, err := s.h.Records.Run(s.ctx, store.Key{Tenant: 2, Run: l.Key.Run}); !errors.Is(err, store.ErrNotFound) {
				s.Errorf("answer %v, want ErrNotFound", err)
			}
		}},
		{"standing rows come back as they were written, in order", standingRows}, // W8
		{"the list row is given back whole", func(s *subject) {
			of := s.started()
			l := s.run()
			w := l.start("o-1")
			w.Start.RepairOf = of.Key.Run
			w.Start.RunRow = ringi.RunRow{Status: ringi.Waiting, WaitsFor: "event", WaitsStep: "paid"}
			a, b := l.task(0, at(0)), l.task(1, at(0))
			w.Tasks = []store.TaskChange{{Lane: 0, Row: &a, Fresh: true}, {Lane: 1, Row: &b, Fresh: true, Lease: &store.Lease{Worker: "w", At: at(0), Until: at(5)}}}
			l.do(w)
			got, err := s.h.Records.Run(s.ctx, l.Key)
			s.must(err)
			text := fmt.Sprintf("%+v", store.RunRecord{Key: l.Key, StartRow: *w.Start, TasksReady: 1, TasksLeased: 1})
			if fmt.Sprintf("%+v", got) != text {
				s.Errorf("record %+v, want %s", got, text)
			}
		}},
		{"the log is read in pieces of bytes, at least one row each", logInPieces},
		{"audit records come in the order of writing", auditInOrder}, // W23
		{"queues show depth, age and lapses", queueDepth},            // W27
	}
}

func standingRows(s *subject) {
	l := s.run()
	w := l.full()
	second := l.task(1, at(7))
	second.Direction, second.Begin, second.Held, second.Awaited, second.GiveUpAt, second.TotalAt = ringi.Probe, true, true, true, at(70), at(80)
	w.Tasks = append([]store.TaskChange{{Lane: 1, Row: &second, Fresh: true}}, w.Tasks...)
	w.Timers = append([]store.TimerChange{timer("zeit", 4, 9)}, w.Timers...)
	vote := s.approval("again", at(3))
	vote.Approval.Subject = json.RawMessage(`{"text":"\u003cb\u003e 10.50"}`)
	vote.Approval.Votes = []ringi.Vote{{Person: "bob", Approve: true, Lanes: []int{0}, At: at(4)}}
	w.Approvals = append(w.Approvals, store.ApprovalChange{Step: "again", Row: vote})
	w.Incidents = append(w.Incidents, store.IncidentChange{ID: 1, Row: s.incident(1, at(2))})
	l.do(w)
	got, err := s.h.Records.Standing(s.ctx, l.Key)
	s.must(err)
	want := ringi.Rows{
		Run: w.Start.RunRow, Tasks: []ringi.TaskRow{*w.Tasks[1].Row, second},
		Timers:    []ringi.TimerRow{*w.Timers[1].Row, *w.Timers[0].Row},
		Waits:     []ringi.WaitRow{*w.Waits[0].Row},
		Approvals: []ringi.ApprovalRow{*vote, *w.Approvals[0].Row},
		Incidents: []ringi.Incident{*w.Incidents[1].Row, *w.Incidents[0].Row},
	}
	gotText, wantText := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)
	if gotText != wantText {
		s.Errorf("standing\n%s\nwant\n%s", gotText, wantText)
	}
}

func logInPieces(s *subject) {
	l := s.started()
	for range 4 {
		l.do(l.next(2))
	}
	size := len(l.next(2).Body)
	var firsts []int64
	after := int64(0)
	for {
		list, err := s.h.Records.Log(s.ctx, l.Key, after, 2*size+size/2)
		s.must(err)
		if len(list) == 0 {
			break
		}
		if len(list) > 3 {
			s.Errorf("%d rows of about %d bytes within %d", len(list), size, 2*size+size/2)
		}
		for _, row := range list {
			firsts = append(firsts, row.First)
		}
		last := list[len(list)-1]
		events, err := ringi.DecodeEvents(last.First, last.Body)
		s.must(err)
		after = last.First + int64(len(events)) - 1
	}
	if want := "[1 2 4 6 8]"; fmt.Sprint(firsts) != want {
		s.Errorf("rows at %v, want %s", firsts, want)
	}
	one, err := s.h.Records.Log(s.ctx, l.Key, 0, 1)
	s.must(err)
	if len(one) != 1 {
		s.Errorf("%d rows within 1 byte, want 1", len(one))
	}
	// A row whose last event is behind the sequence is read, also when it began before.
	middle, err := s.h.Records.Log(s.ctx, l.Key, 2, 1)
	s.must(err)
	if len(middle) != 1 || middle[0].First != 2 || len(middle[0].Head) == 0 || middle[0].Commit == (store.CommitID{}) {
		s.Errorf("rows after 2: %+v, want the one at 2", middle)
	}
}

func auditInOrder(s *subject) {
	a, b := s.started(), s.started()
	for i, l := range []*line{a, b, a} {
		w := l.next(1)
		w.Audit = []store.AuditRecord{s.audit(l.Key.Run, fmt.Sprint("kind", i))}
		l.do(w)
	}
	w := a.claim()
	refused := s.audit("", "publish")
	refused.Answer = "forbidden"
	w.Audit = []store.AuditRecord{refused}
	s.apply(w)
	read := func(key store.Key, limit int) (kinds []string) {
		list, err := s.h.Records.Audit(s.ctx, key, limit)
		s.must(err)
		for _, r := range list {
			kinds = append(kinds, r.Kind)
		}
		return kinds
	}
	if got := fmt.Sprint(read(a.Key, 10)); got != "[kind0 kind2]" {
		s.Errorf("records of the run %s", got)
	}
	if got := fmt.Sprint(read(store.Key{Tenant: tenant}, 10)); got != "[kind0 kind1 kind2 publish]" {
		s.Errorf("records of the tenant %s", got)
	}
	if got := fmt.Sprint(read(store.Key{Tenant: tenant}, 2)); got != "[kind0 kind1]" {
		s.Errorf("records within a limit %s", got)
	}
	if got := read(store.Key{Tenant: 2}, 10); len(got) != 0 {
		s.Errorf("another tenant sees %v", got)
	}
	list, err := s.h.Records.Audit(s.ctx, a.Key, 1)
	s.must(err)
	want := s.audit(a.Key.Run, "kind0")
	if got := list[0]; !got.At.Equal(want.At) || got.Actor != want.Actor || got.Run != want.Run || got.Answer != want.Answer || !bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Head, want.Head) {
		s.Errorf("record %+v, want %+v", got, want)
	}
}

func queueDepth(s *subject) {
	s.run().schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(1) })
	s.run().schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(3) })
	s.run().schedule(func(r *ringi.TaskRow) { r.ReadyAt = at(90) })
	s.run().schedule(func(r *ringi.TaskRow) { r.Held = true })
	leased := s.run()
	row := leased.schedule(func(r *ringi.TaskRow) { r.Queue = "mail" })
	for n := 1; n <= store.LapsedOften; n++ {
		s.claim(store.Claim{Queue: "mail", Worker: "w", Max: 1, Now: at(float64(n)), Handover: handover})
		s.lapse(leased, row.Token(n), at(float64(n)+5), at(float64(n)))
	}
	s.claim(store.Claim{Queue: "mail", Worker: "w", Max: 1, Now: at(9), Handover: handover})
	s.runOf(2).schedule(nil)
	got, err := s.h.Records.Queues(s.ctx, tenant, at(11))
	s.must(err)
	if len(got) != 2 {
		s.Fatalf("queues %+v, want 2", got)
	}
	if q := got[0]; q.Queue != "default" || q.Ready != 2 || q.Leased != 0 || q.OldestMS != 10_000 || q.Lapsed != 0 {
		s.Errorf("queue %+v, want default with 2 ready, the oldest 10 s old", q)
	}
	if q := got[1]; q.Queue != "mail" || q.Ready != 0 || q.Leased != 1 || q.Lapsed != 1 {
		s.Errorf("queue %+v, want mail with 1 leased and 1 lapsed", q)
	}
}
