package storetest

import (
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func inspectTests() []suiteTest {
	return []suiteTest{
		{"every run leaves a trace, of all tenants, in pages", func(s *subject) { // W8
			var want []store.Key
			for _, t := range []ringi.Tenant{1, 1, 1, 2, 3} {
				l := s.runOf(t)
				l.do(l.full())
				want = append(want, l.Key)
			}
			var got []store.Key
			for after := (store.Key{}); ; after = got[len(got)-1] {
				page, err := s.h.Inspector.Traces(s.ctx, after, 2)
				s.must(err)
				if got = append(got, page...); len(page) < 2 {
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				s.Errorf("traces of %v, want %v", got, want)
			}
			strays, err := s.h.Inspector.Strays(s.ctx, 9)
			s.must(err)
			if len(strays) != 0 {
				s.Errorf("rows of no run: %v", strays)
			}
		}},
		{"of a run that does not exist nothing stands", func(s *subject) {
			for _, key := range []store.Key{s.run().Key, {Tenant: tenant, Run: "no such id"}} {
				got, err := s.h.Inspector.Inspect(s.ctx, key)
				s.must(err)
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", store.Inspected{}) {
					s.Errorf("run %s has %+v, want nothing", key.Run, got)
				}
			}
		}},
		{"a run is read with everything that stands beside its log", inspectWhole},
		{"leases, check times and claims of timers are read as they stand", inspectTimes},
		{"a snapshot that is ahead of its log is seen", func(s *subject) {
			l := s.run()
			w := l.start("")
			w.Snapshot = &store.Snapshot{Seq: 7, Format: 9, Body: []byte("ahead")}
			l.do(w)
			got, err := s.h.Inspector.Inspect(s.ctx, l.Key)
			s.must(err)
			if x := got.Snapshot; x == nil || x.Seq != 7 || x.Format != 9 || string(x.Body) != "ahead" {
				s.Errorf("snapshot %+v, want the one at 7", x)
			}
		}},
	}
}

func inspectWhole(s *subject) {
	l := s.run()
	first := l.full()
	first.Start.StartKey = "o-1"
	l.do(first)
	w := l.next(2)
	w.Audit = []store.AuditRecord{s.audit(l.Key.Run, "pause"), s.audit(l.Key.Run, "resume")}
	w.Audit[1].Head = []byte{8}
	l.do(w)
	got, err := s.h.Inspector.Inspect(s.ctx, l.Key)
	s.must(err)
	record, err := s.h.Records.Run(s.ctx, l.Key)
	s.must(err)
	rows, err := s.h.Records.Standing(s.ctx, l.Key)
	s.must(err)
	if got.Run == nil || fmt.Sprintf("%+v", *got.Run) != fmt.Sprintf("%+v", record) {
		s.Errorf("list row %+v, want %+v", got.Run, record)
	}
	if got.Last != 2 || got.Snapshot == nil || got.Snapshot.Seq != 1 || fmt.Sprint(got.AuditHeads) != "[[7] [8]]" || len(got.Bad) != 0 {
		s.Errorf("last row at %d, snapshot %+v, heads %v, bad %v: want 2, one at 1, two heads and none", got.Last, got.Snapshot, got.AuditHeads, got.Bad)
	}
	have := ringi.Rows{Run: record.RunRow, Waits: got.Waits, Approvals: got.Approvals, Incidents: got.Incidents}
	for _, t := range got.Tasks {
		have.Tasks = append(have.Tasks, t.Row)
	}
	for _, t := range got.Timers {
		have.Timers = append(have.Timers, t.TimerRow)
	}
	if fmt.Sprintf("%+v", have) != fmt.Sprintf("%+v", rows) {
		s.Errorf("inspected %+v, want what stands: %+v", have, rows)
	}
}

func inspectTimes(s *subject) {
	l := s.run()
	row := l.task(0, at(0))
	row.GiveUpAt = at(60)
	w := l.start("")
	other := l.task(1, at(0))
	other.Queue = "other"
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &row, Fresh: true}, {Lane: 1, Row: &other, Fresh: true}}
	w.Timers = []store.TimerChange{timer("t", 1, 10), timer("u", 1, 20)}
	l.do(w)
	look := func(what string, wantTasks, wantTimers string) {
		s.Helper()
		x, err := s.h.Inspector.Inspect(s.ctx, l.Key)
		s.must(err)
		var tasks, timers []string
		second := func(t time.Time) string {
			if t.IsZero() {
				return "never"
			}
			return fmt.Sprint(t.Sub(at(0)).Seconds())
		}
		for _, t := range x.Tasks {
			tasks = append(tasks, fmt.Sprint(t.Lease.Token-t.Row.Token(0), t.Lease.Leased, " ", second(t.Check)))
		}
		for _, t := range x.Timers {
			timers = append(timers, fmt.Sprint(t.ID, second(t.Due)))
		}
		if fmt.Sprint(tasks) != wantTasks || fmt.Sprint(timers) != wantTimers {
			s.Errorf("%s: tasks %v and timers %v, want %s and %s", what, tasks, timers, wantTasks, wantTimers)
		}
	}
	look("new", "[0 false 60 0 false never]", "[t10 u20]")
	s.take(at(1), 1)
	_, err := s.h.Store.DueTimers(s.ctx, at(11), at(13), 9)
	s.must(err)
	look("handed out and claimed", fmt.Sprintf("[1 true %g 0 false never]", 1+handover.Seconds()), "[t13 u20]")
}
