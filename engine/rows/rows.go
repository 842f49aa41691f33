// Package rows compares what stands beside a log with what a state asks for.
// The engine writes the difference between two states, and replay looks for one
// between a state and its database, so that both mean the same by it. Its
// functions are pure.
package rows

import (
	"bytes"
	"encoding/json"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// Change puts into a write what turns the rows of the state before it into
// those of the state after it. However many commands the write folds, only
// the two ends count.
func Change(w *store.Write, before, after ringi.Rows, s *ringi.State) {
	w.Tasks = taskChanges(before.Tasks, after.Tasks, s)
	for _, c := range Differ(before.Timers, after.Timers, TimerID, SameTimer) {
		w.Timers = append(w.Timers, store.TimerChange{ID: c.Key, Row: c.Row})
	}
	for _, c := range Differ(before.Waits, after.Waits, WaitStep, SameWait) {
		w.Waits = append(w.Waits, store.WaitChange{Step: c.Key, Row: c.Row})
	}
	for _, c := range Differ(before.Approvals, after.Approvals, ApprovalStep, SameJSON) {
		w.Approvals = append(w.Approvals, store.ApprovalChange{Step: c.Key, Row: c.Row})
	}
	for _, c := range Differ(before.Incidents, after.Incidents, IncidentID, SameJSON) {
		w.Incidents = append(w.Incidents, store.IncidentChange{ID: c.Key, Row: c.Row})
	}
	if w.First == 1 {
		w.Start = Start(s, after.Run)
	} else if !SameRun(before.Run, after.Run) {
		row := after.Run
		w.Run = &row
	}
}

// Start is the list row of a run that stands in a state.
func Start(s *ringi.State, row ringi.RunRow) *store.StartRow {
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
	for _, c := range Differ(before, after, Lane, SameTask) {
		t := store.TaskChange{Lane: c.Key, Row: c.Row}
		if c.Row != nil {
			t.Fresh = c.Was == nil || c.Was.Seq != c.Row.Seq
			if c.Row.Begun != 0 && (t.Fresh || c.Was.Begun != c.Row.Begun) {
				t.Begun = s.At.Add(c.Row.Heartbeat)
			}
		}
		out = append(out, t)
	}
	return out
}

// A Diff is one row that differs.
type Diff[K comparable, R any] struct {
	Key K
	Was *R // nil: it comes
	Row *R // nil: it goes
}

// Differ lists the rows that differ between two lists: those that stay or
// come, in the order of after, then those that go, in the order of before.
func Differ[K comparable, R any](before, after []R, key func(*R) K, same func(a, b *R) bool) []Diff[K, R] {
	var out []Diff[K, R]
	at := 0
	for i := range after {
		k := key(&after[i])
		was := find(before, k, key, &at)
		if was == nil || !same(was, &after[i]) {
			row := after[i]
			out = append(out, Diff[K, R]{Key: k, Was: was, Row: &row})
		}
	}
	at = 0
	for i := range before {
		if k := key(&before[i]); find(after, k, key, &at) == nil {
			out = append(out, Diff[K, R]{Key: k, Was: &before[i]})
		}
	}
	return out
}

// find returns the row of a key; nil when there is none. It begins at a place and
// moves that behind what it found: two lists in the same order are gone through
// once.
func find[K comparable, R any](list []R, k K, key func(*R) K, at *int) *R {
	for n := range list {
		i := (*at + n) % len(list)
		if key(&list[i]) == k {
			*at = i + 1
			return &list[i]
		}
	}
	return nil
}

// Lane is the key of a task row.
func Lane(r *ringi.TaskRow) int { return r.Lane }

// TimerID is the key of a timer row.
func TimerID(r *ringi.TimerRow) string { return r.ID }

// WaitStep is the key of a wait row.
func WaitStep(r *ringi.WaitRow) string { return r.Step }

// ApprovalStep is the key of an approval row.
func ApprovalStep(r *ringi.ApprovalRow) string { return r.Step }

// IncidentID is the key of an incident row.
func IncidentID(r *ringi.Incident) int64 { return r.ID }

// SameRun compares what the state fixes of a list row. Instants are compared as such.
func SameRun(a, b ringi.RunRow) bool {
	return a.Status == b.Status && a.WaitsFor == b.WaitsFor && a.WaitsStep == b.WaitsStep && a.EndedAt.Equal(b.EndedAt)
}

// SameTask compares task rows.
func SameTask(a, b *ringi.TaskRow) bool {
	x, y := *a, *b
	times := x.ReadyAt.Equal(y.ReadyAt) && x.GiveUpAt.Equal(y.GiveUpAt) && x.TotalAt.Equal(y.TotalAt)
	x.ReadyAt, x.GiveUpAt, x.TotalAt = y.ReadyAt, y.GiveUpAt, y.TotalAt
	return times && x == y
}

// SameTimer compares timer rows.
func SameTimer(a, b *ringi.TimerRow) bool {
	return a.ID == b.ID && a.Generation == b.Generation && a.FireAt.Equal(b.FireAt)
}

// SameWait compares wait rows.
func SameWait(a, b *ringi.WaitRow) bool {
	x, y := *a, *b
	times := x.OpenedAt.Equal(y.OpenedAt)
	x.OpenedAt = y.OpenedAt
	return times && x == y
}

// SameJSON compares rows that hold lists: approvals and incidents, which are
// rare enough to be written out for it.
func SameJSON[R any](a, b *R) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
