package rows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/rows"
	"github.com/ringiflow/ringi/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRowsThatDifferComeInOrder(t *testing.T) {
	timer := func(id string, generation int) ringi.TimerRow {
		return ringi.TimerRow{ID: id, Generation: generation, FireAt: noon}
	}
	before := []ringi.TimerRow{timer("a", 1), timer("b", 1), timer("c", 1)}
	after := []ringi.TimerRow{timer("b", 2), timer("c", 1), timer("d", 1)}
	var got []string
	for _, d := range rows.Differ(before, after, rows.TimerID, rows.SameTimer) {
		got = append(got, fmt.Sprintf("%s was %t is %t", d.Key, d.Was != nil, d.Row != nil))
	}
	if want := "[b was true is true d was false is true a was true is false]"; fmt.Sprint(got) != want {
		t.Errorf("differ %v, want %s: what stays or comes, then what goes", got, want)
	}
}

// The same instant in another zone is the same row.
func TestInstantsAreComparedAsSuch(t *testing.T) {
	there := noon.In(time.FixedZone("there", 9*3600))
	if !rows.SameTimer(&ringi.TimerRow{FireAt: noon}, &ringi.TimerRow{FireAt: there}) ||
		!rows.SameTask(&ringi.TaskRow{ReadyAt: noon, TotalAt: noon}, &ringi.TaskRow{ReadyAt: there, TotalAt: there}) ||
		!rows.SameWait(&ringi.WaitRow{OpenedAt: noon}, &ringi.WaitRow{OpenedAt: there}) ||
		!rows.SameRun(ringi.RunRow{EndedAt: noon}, ringi.RunRow{EndedAt: there}) {
		t.Error("the zone makes another row")
	}
}

// The lease of an attempt that may begin runs from the moment it was permitted;
// a new attempt begins with none.
func TestAChangeSaysWhatItMeansForLeases(t *testing.T) {
	before := ringi.TaskRow{Seq: 2, Heartbeat: time.Minute}
	begun, next := before, ringi.TaskRow{Seq: 5, Heartbeat: time.Minute}
	begun.Begun = before.Token(1)
	s := &ringi.State{At: noon}
	for what, c := range map[string]struct {
		after *ringi.TaskRow
		want  store.TaskChange
	}{
		"begun":        {&begun, store.TaskChange{Begun: noon.Add(time.Minute)}},
		"next attempt": {&next, store.TaskChange{Fresh: true}},
		"gone":         {nil, store.TaskChange{}},
	} {
		var after ringi.Rows
		if c.after != nil {
			after.Tasks = []ringi.TaskRow{*c.after}
		}
		w := store.Write{First: 9}
		rows.Change(&w, ringi.Rows{Tasks: []ringi.TaskRow{before}}, after, s)
		if len(w.Tasks) != 1 || w.Tasks[0].Fresh != c.want.Fresh || !w.Tasks[0].Begun.Equal(c.want.Begun) || (w.Tasks[0].Row == nil) != (c.after == nil) {
			t.Errorf("%s: %+v, want %+v", what, w.Tasks, c.want)
		}
	}
}
