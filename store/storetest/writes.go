package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

// tenant is the tenant of everything that does not say otherwise.
const tenant = ringi.DefaultTenant

// at is a moment, counted in seconds from the beginning of the suite's time.
func at(seconds float64) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// uuid draws ids that grow, as version 7 does.
func (s *subject) uuid() string {
	s.drawn++
	return fmt.Sprintf("0197e000-0000-7000-8000-%012x", s.drawn)
}

func (s *subject) commitID() store.CommitID {
	s.drawn++
	return store.CommitID{1, byte(s.drawn >> 16), byte(s.drawn >> 8), byte(s.drawn)}
}

// line is a run and where it stands.
type line struct {
	store.Key
	s    *subject
	seq  int64
	head []byte
}

// run draws a run that has not started.
func (s *subject) run() *line { return s.runOf(tenant) }

func (s *subject) runOf(tenant ringi.Tenant) *line {
	return &line{Key: store.Key{Tenant: tenant, Run: ringi.RunID(s.uuid())}, s: s}
}

// started draws a run and starts it.
func (s *subject) started() *line {
	s.Helper()
	l := s.run()
	l.do(l.start(""))
	return l
}

// body is a log row of so many events. Its bytes are different at each call.
func (s *subject) body(first int64, events int) []byte {
	s.Helper()
	list := make([]ringi.Event, events)
	for i := range list {
		s.drawn++
		list[i] = ringi.Event{Seq: first + int64(i), At: at(0), Fact: ringi.StepOpened{Step: fmt.Sprint("step", s.drawn)}}
	}
	body, err := ringi.EncodeEvents(list)
	s.must(err)
	return body
}

// start is the write that starts the run.
func (l *line) start(key string) store.Write {
	w := l.next(1)
	w.Start = &store.StartRow{
		Definition: "order", Version: 3, Digest: "d3", StartKey: key, InputDigest: "input-" + key,
		Requester: "carol", Title: "Order 7", Labels: map[string]string{"region": "kanto"}, StartedAt: at(0),
		RunRow: ringi.RunRow{Status: ringi.Running},
	}
	return w
}

// next is a write of so many events behind where the run stands. It does not
// move the run; did does.
func (l *line) next(events int) store.Write {
	first := l.seq + 1
	body := l.s.body(first, events)
	return store.Write{
		Key: l.Key, Commit: l.s.commitID(), First: first, Last: l.seq + int64(events),
		Prev: l.head, Head: store.Chain(l.head, body), Body: body,
	}
}

// claim is a write without events: that the run still stands where it was read.
func (l *line) claim() store.Write {
	return store.Write{Key: l.Key, Commit: l.s.commitID(), First: l.seq + 1, Prev: l.head}
}

// did moves the run behind a write that was applied.
func (l *line) did(w store.Write) { l.seq, l.head = w.Last, w.Head }

// do applies a write and moves the run.
func (l *line) do(w store.Write) {
	l.s.Helper()
	l.s.apply(w)
	l.did(w)
}

// task is a task row that the write's first event scheduled.
func (l *line) task(lane int, readyAt time.Time) ringi.TaskRow {
	return ringi.TaskRow{
		Lane: lane, Step: fmt.Sprint("reserve", lane), Attempt: 1, Seq: l.seq + 1, InputSeq: l.seq + 1,
		Activity: "inventory.reserve", Queue: "default", ReadyAt: readyAt,
		Timeout: 30 * time.Second, Heartbeat: 20 * time.Second,
	}
}

// schedule starts the run with one ready task on lane 0, changed by change.
func (l *line) schedule(change func(*ringi.TaskRow)) ringi.TaskRow {
	l.s.Helper()
	row := l.task(0, at(0))
	if change != nil {
		change(&row)
	}
	w := l.start("")
	w.Tasks = []store.TaskChange{{Lane: row.Lane, Row: &row, Fresh: true}}
	l.do(w)
	return row
}

// full is a write with a row of every kind.
func (l *line) full() store.Write {
	w := l.next(2)
	if l.seq == 0 {
		w = l.start("")
	}
	task := l.task(0, at(5))
	w.Tasks = []store.TaskChange{{Lane: 0, Row: &task, Fresh: true}}
	w.Timers = []store.TimerChange{{ID: "deadline", Row: &ringi.TimerRow{ID: "deadline", Generation: 1, FireAt: at(60)}}}
	w.Waits = []store.WaitChange{{Step: "paid", Row: &ringi.WaitRow{Step: "paid", Event: "paid", Key: "o-1", Generation: 1, OpenedAt: at(0), NotEvent: "e-0"}}}
	w.Approvals = []store.ApprovalChange{{Step: "approve", Row: l.s.approval("approve", at(0))}}
	w.Incidents = []store.IncidentChange{{ID: 2, Row: l.s.incident(2, at(0))}}
	w.Messages = []outbox.Message{l.s.message("o-1")}
	w.Audit = []store.AuditRecord{l.s.audit(l.Key.Run, "start")}
	w.Snapshot = &store.Snapshot{Seq: w.Last, Format: ringi.Format, Body: []byte(`{"seq":1}`)}
	return w
}

func (s *subject) approval(step string, opened time.Time) *ringi.ApprovalRow {
	return &ringi.ApprovalRow{Step: step, Requester: "carol", OpenedAt: opened, Approval: ringi.Approval{
		Title: "Order 7", Risk: "high", Subject: json.RawMessage(`{"amount":120000}`), Digest: "s1",
		Lanes:     []ringi.Lane{{Name: "Finance", From: []string{"group:finance"}, Quorum: 2}},
		ExpiresAt: opened.Add(100 * 365 * 24 * time.Hour), OnReject: "fail",
	}}
}

func (s *subject) incident(id int64, since time.Time) *ringi.Incident {
	return &ringi.Incident{
		ID: id, Kind: ringi.IncidentUnknown, Step: "charge", Message: "nobody knows", Since: since,
		Allowed: []ringi.Resolution{ringi.ResolveDone, ringi.ResolveNotDone},
	}
}

func (s *subject) message(aggregate string) outbox.Message {
	return outbox.Message{
		ID: s.uuid(), Tenant: int64(tenant), AggregateType: "Order", AggregateID: aggregate,
		Type: "order.fulfilled", Payload: []byte(`{"n":1}`), CreatedAt: at(0),
	}
}

func (s *subject) audit(run ringi.RunID, kind string) store.AuditRecord {
	return store.AuditRecord{At: at(1), Actor: "alice", Kind: kind, Run: run, Answer: "accepted", Data: []byte(`{"a":1}`), Head: []byte{7}}
}

// rows is what stands of a run, in numbers.
type rows struct {
	log, tasks, timers, waits, approvals, incidents, messages, audit int
	snapshot, listed                                                 bool
}

// count reads everything that stands of a run. Messages are those of its
// aggregate in the whole store, taken without being marked.
func (s *subject) count(key store.Key) rows {
	s.Helper()
	var r rows
	loaded, err := s.h.Store.Load(s.ctx, key)
	s.must(err)
	r.snapshot = loaded[0].Snapshot != nil
	list, err := s.h.Records.Log(s.ctx, key, 0, 1<<30)
	s.must(err)
	r.log = len(list)
	standing, err := s.h.Records.Standing(s.ctx, key)
	r.listed = err == nil
	r.tasks, r.timers, r.waits = len(standing.Tasks), len(standing.Timers), len(standing.Waits)
	r.approvals, r.incidents = len(standing.Approvals), len(standing.Incidents)
	records, err := s.h.Records.Audit(s.ctx, key, 100)
	s.must(err)
	r.audit = len(records)
	stats, err := s.h.Outbox.Stats(s.ctx)
	s.must(err)
	r.messages = int(stats.Pending)
	return r
}
