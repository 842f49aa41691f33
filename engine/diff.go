package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// changeRows puts into a write what turns the rows of the state before it into
// those of the state after it. However many commands the write folds, only
// the two ends count.
func changeRows(w *store.Write, before, after ringi.Rows, s *ringi.State) {
	w.Tasks = taskChanges(before.Tasks, after.Tasks, s)
	for _, c := range changed(before.Timers, after.Timers, timerID, sameTimer) {
		w.Timers = append(w.Timers, store.TimerChange{ID: c.key, Row: c.row})
	}
	for _, c := range changed(before.Waits, after.Waits, waitStep, sameWait) {
		w.Waits = append(w.Waits, store.WaitChange{Step: c.key, Row: c.row})
	}
	for _, c := range changed(before.Approvals, after.Approvals, approvalStep, sameJSON) {
		w.Approvals = append(w.Approvals, store.ApprovalChange{Step: c.key, Row: c.row})
	}
	for _, c := range changed(before.Incidents, after.Incidents, incidentID, sameJSON) {
		w.Incidents = append(w.Incidents, store.IncidentChange{ID: c.key, Row: c.row})
	}
	if w.First == 1 {
		w.Start = startRow(s, after.Run)
	} else if !sameRun(before.Run, after.Run) {
		row := after.Run
		w.Run = &row
	}
}

func startRow(s *ringi.State, row ringi.RunRow) *store.StartRow {
	return &store.StartRow{
		Definition: s.Definition, Version: s.Version, Digest: s.Digest, StartKey: s.Key,
		InputDigest: s.InputDigest, Requester: s.Requester, Title: s.Title, Labels: s.Labels,
		StartedAt: s.StartedAt, RepairOf: s.RepairOf, RunRow: row,
	}
}

// taskChanges compares by lane. Another event behind the tokens is another
// attempt, whose hand-outs and leases begin anew; anything else keeps them.
func taskChanges(before, after []ringi.TaskRow, s *ringi.State) []store.TaskChange {
	var out []store.TaskChange
	for _, c := range changed(before, after, taskLane, sameTask) {
		t := store.TaskChange{Lane: c.key, Row: c.row}
		if c.row != nil {
			t.Fresh = c.was == nil || c.was.Seq != c.row.Seq
			if c.row.Begun != 0 && (t.Fresh || c.was.Begun != c.row.Begun) {
				t.Begun = s.At.Add(c.row.Heartbeat)
			}
		}
		out = append(out, t)
	}
	return out
}

// A change is one row that differs: was nil is an insert, row nil a delete.
type change[K comparable, R any] struct {
	key K
	was *R
	row *R
}

// changed lists the rows that differ between two lists: those that stay or
// come, in the order of after, then those that go, in the order of before.
func changed[K comparable, R any](before, after []R, key func(*R) K, same func(a, b *R) bool) []change[K, R] {
	var out []change[K, R]
	find := func(list []R, k K) *R {
		i := slices.IndexFunc(list, func(r R) bool { return key(&r) == k })
		if i < 0 {
			return nil
		}
		return &list[i]
	}
	for i := range after {
		k := key(&after[i])
		if was := find(before, k); was == nil || !same(was, &after[i]) {
			row := after[i]
			out = append(out, change[K, R]{key: k, was: was, row: &row})
		}
	}
	for i := range before {
		if k := key(&before[i]); find(after, k) == nil {
			out = append(out, change[K, R]{key: k, was: &before[i]})
		}
	}
	return out
}

func taskLane(r *ringi.TaskRow) int            { return r.Lane }
func timerID(r *ringi.TimerRow) string         { return r.ID }
func waitStep(r *ringi.WaitRow) string         { return r.Step }
func approvalStep(r *ringi.ApprovalRow) string { return r.Step }
func incidentID(r *ringi.Incident) int64       { return r.ID }

func sameRun(a, b ringi.RunRow) bool {
	return a.Status == b.Status && a.WaitsFor == b.WaitsFor && a.WaitsStep == b.WaitsStep && a.EndedAt.Equal(b.EndedAt)
}

func sameTask(a, b *ringi.TaskRow) bool {
	x, y := *a, *b
	times := x.ReadyAt.Equal(y.ReadyAt) && x.GiveUpAt.Equal(y.GiveUpAt) && x.TotalAt.Equal(y.TotalAt)
	x.ReadyAt, x.GiveUpAt, x.TotalAt = y.ReadyAt, y.GiveUpAt, y.TotalAt
	return times && x == y
}

func sameTimer(a, b *ringi.TimerRow) bool {
	return a.ID == b.ID && a.Generation == b.Generation && a.FireAt.Equal(b.FireAt)
}

func sameWait(a, b *ringi.WaitRow) bool {
	x, y := *a, *b
	times := x.OpenedAt.Equal(y.OpenedAt)
	x.OpenedAt = y.OpenedAt
	return times && x == y
}

// sameJSON compares rows that hold lists: approvals and incidents, which are
// rare enough to be written out for it.
func sameJSON[R any](a, b *R) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
