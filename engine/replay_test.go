package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
)

// A forger gives rows back as somebody edited them by hand.
type forger struct {
	*store.Memory
	loaded func(*store.Loaded)
	row    func(*store.RunRecord)
	log    func([]store.LogRow)
	rows   func(*ringi.Rows)
}

func (f forger) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	l, err := f.Memory.Load(ctx, keys...)
	for i := range l {
		if f.loaded != nil {
			f.loaded(&l[i])
		}
	}
	return l, err
}

func (f forger) Run(ctx context.Context, key store.Key) (store.RunRecord, error) {
	r, err := f.Memory.Run(ctx, key)
	if f.row != nil {
		f.row(&r)
	}
	return r, err
}

func (f forger) Log(ctx context.Context, key store.Key, after int64, most int) ([]store.LogRow, error) {
	rows, err := f.Memory.Log(ctx, key, after, most)
	rows = slices.Clone(rows)
	if f.log != nil {
		f.log(rows)
	}
	return rows, err
}

func (f forger) Standing(ctx context.Context, key store.Key) (ringi.Rows, error) {
	r, err := f.Memory.Standing(ctx, key)
	if f.rows != nil {
		f.rows(&r)
	}
	return r, err
}

const everyRow = `
ringi: v1
name: everything
deadline: { after: 30d, then: compensate }
steps:
  - id: all
    parallel:
      branches:
        work: [ { id: a, activity: work.a, effect: pure } ]
        wait: [ { id: w, wait: { event: paid, key: k } } ]
        ask: [ { id: v, approval: { title: V, subject: { x: 1 }, ask: [ { name: T, from: [group:team], quorum: 2 } ] } } ]
        stuck: [ { id: s, set: { x: "${ input.missing.deeper }" } } ]
`

func TestReplayFindsWhatWasEditedByHand(t *testing.T) { // W8
	bubble(t, func(t *testing.T, w *world) {
		if p, err := w.eng.Publish(t.Context(), ringi.Publication{Source: []byte(everyRow)}); err != nil || p.Version != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		run := w.begin("everything", "", `{}`)
		for range 100 { // enough for a snapshot
			w.do(alice, run, ringi.Pause{})
			w.do(alice, run, ringi.Resume{})
		}
		w.clean()
		have, err := w.mem.Standing(t.Context(), store.Key{Tenant: 1, Run: run})
		if err != nil || len(have.Tasks) != 1 || len(have.Timers) != 2 || len(have.Waits) != 1 || len(have.Approvals) != 1 || len(have.Incidents) != 1 {
			t.Fatalf("rows %+v, %v: want some of each kind", have, err)
		}
		for name, c := range map[string]struct {
			f    forger
			what string
		}{
			"task moved":        {forger{rows: func(r *ringi.Rows) { r.Tasks[0].Attempt++ }}, "task"},
			"task gone":         {forger{rows: func(r *ringi.Rows) { r.Tasks = nil }}, "task"},
			"task doubled":      {forger{rows: func(r *ringi.Rows) { x := r.Tasks[0]; x.Lane = 7; r.Tasks = append(r.Tasks, x) }}, "task"},
			"timer moved":       {forger{rows: func(r *ringi.Rows) { r.Timers[0].FireAt = r.Timers[0].FireAt.Add(time.Hour) }}, "timer"},
			"timer gone":        {forger{rows: func(r *ringi.Rows) { r.Timers = r.Timers[1:] }}, "timer"},
			"wait moved":        {forger{rows: func(r *ringi.Rows) { r.Waits[0].Key = "other" }}, "wait"},
			"vote slipped in":   {forger{rows: func(r *ringi.Rows) { r.Approvals[0].Approval.Votes = []ringi.Vote{{Person: "eve", Approve: true}} }}, "approval"},
			"incident hidden":   {forger{rows: func(r *ringi.Rows) { r.Incidents = nil }}, "incident"},
			"status in list":    {forger{row: func(r *store.RunRecord) { r.Status = ringi.Completed }}, "list"},
			"requester in list": {forger{row: func(r *store.RunRecord) { r.Requester = "eve" }}, "list"},
			"snapshot":          {forger{loaded: forgeSnapshot}, "snapshot"},
			"snapshot too far":  {forger{loaded: func(l *store.Loaded) { s := *l.Snapshot; s.Seq += 1000; l.Snapshot = &s }}, "snapshot"},
			"event":             {forger{log: forgeEvent}, "chain"},
			"head":              {forger{log: func(r []store.LogRow) { forgeHead(r) }}, "chain"},
			"row missing":       {forger{log: func(r []store.LogRow) { skipRow(r) }}, "log"},
		} {
			c.f.Memory = w.mem
			r, err := engine.Replay(t.Context(), c.f, c.f, engine.ReplayQuery{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Mismatches, func(m engine.Mismatch) bool { return m.What == c.what && m.Run == run && m.Seq > 0 }) {
				t.Errorf("%s: mismatches %v, want one of %s", name, r.Mismatches, c.what)
			}
		}
	})
}

func forgeSnapshot(l *store.Loaded) {
	s := *l.Snapshot
	s.Body = json.RawMessage(strings.Replace(string(s.Body), `"requester":"op"`, `"requester":"eve"`, 1))
	l.Snapshot = &s
}

func forgeEvent(rows []store.LogRow) {
	if len(rows) > 0 && rows[0].First == 1 {
		rows[0].Body = []byte(strings.Replace(string(rows[0].Body), `"actor":"op"`, `"actor":"eve"`, 1))
	}
}

func forgeHead(rows []store.LogRow) {
	if len(rows) > 2 {
		rows[2].Head = store.Chain(nil, rows[2].Body)
	}
}

func skipRow(rows []store.LogRow) {
	if len(rows) > 3 {
		copy(rows[1:], rows[2:])
	}
}

func TestReplayOfARunThatDoesNotExist(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := engine.Replay(t.Context(), w.mem, w.mem, engine.ReplayQuery{Run: "00000000-0000-7000-8000-000000000000"})
		if ringi.ErrorCode(err) != ringi.CodeNotFound {
			t.Errorf("%v, want not_found", err)
		}
	})
}

func TestHistoryIsReadInPages(t *testing.T) { // TC-79
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		for range 20 {
			w.do(alice, run, ringi.Pause{})
			w.do(alice, run, ringi.Resume{})
		}
		all := w.kinds(run)
		var got []string
		after := int64(0)
		for pages := 0; ; pages++ {
			page, err := w.eng.History(t.Context(), ringi.HistoryQuery{Run: run, After: after, Limit: 7})
			if err != nil || len(page.Events) > 7 || pages > len(all) {
				t.Fatalf("page %d: %d events, %v", pages, len(page.Events), err)
			}
			for _, e := range page.Events {
				got = append(got, e.Kind)
			}
			if page.Next == 0 {
				break
			}
			after = page.Next
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages together are %v, want %v", got, all)
		}
		if _, err := w.eng.History(t.Context(), ringi.HistoryQuery{Run: "00000000-0000-7000-8000-000000000000"}); ringi.ErrorCode(err) != ringi.CodeNotFound {
			t.Errorf("history of nobody: %v, want not_found", err)
		}
	})
}
