package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store"
)

// A forger gives rows back as somebody edited them by hand.
type forger struct {
	*store.Memory
	log  func([]store.LogRow) []store.LogRow
	rows func(*store.Inspected)
	more []store.Key // that leave a trace too
	def  func(*store.Definition) bool
}

func (f forger) Log(ctx context.Context, key store.Key, after int64, most int) ([]store.LogRow, error) {
	rows, err := f.Memory.Log(ctx, key, after, most)
	rows = slices.Clone(rows)
	if f.log != nil {
		rows = f.log(rows)
	}
	return rows, err
}

func (f forger) Traces(ctx context.Context, after store.Key, limit int) ([]store.Key, error) {
	keys, err := f.Memory.Traces(ctx, after, limit)
	return append(keys, f.more...), err
}

func (f forger) Inspect(ctx context.Context, key store.Key) (store.Inspected, error) {
	x, err := f.Memory.Inspect(ctx, key)
	if f.rows != nil && (f.more == nil || key == f.more[0]) {
		f.rows(&x)
	}
	return x, err
}

func (f forger) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (store.Definition, error) {
	d, err := f.Memory.Definition(ctx, tenant, name, version)
	if f.def != nil && name == "everything" && !f.def(&d) {
		return store.Definition{}, store.ErrNotFound
	}
	return d, err
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

var alice = ringi.Actor{ID: "alice", Kind: ringi.Person}

// A world is an engine on a store in memory.
type world struct {
	t   *testing.T
	mem *store.Memory
	eng *engine.Engine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	mem := store.NewMemory(store.MemoryConfig{})
	eng, err := engine.New(engine.Config{Store: mem, Records: mem, Catalog: mem, Events: mem, SnapshotEvery: 5})
	if err != nil {
		t.Fatal(err)
	}
	eng.Start()
	t.Cleanup(func() { _ = eng.Close() })
	if p, err := eng.Publish(t.Context(), ringi.Publication{Source: []byte(everyRow)}); err != nil || p.Version != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	return &world{t, mem, eng}
}

func (w *world) do(run ringi.RunID, a ringi.Action) ringi.RunID {
	w.t.Helper()
	r := w.eng.Do(w.t.Context(), ringi.Command{Run: run, Actor: alice, Do: a})[0]
	if r.Err != nil {
		w.t.Fatal(r.Err)
	}
	return r.Run
}

func (w *world) begin() ringi.RunID {
	w.t.Helper()
	return w.do("", ringi.Start{Definition: "everything", Input: json.RawMessage(`{}`)})
}

func TestReplayFindsWhatWasEditedByHand(t *testing.T) { // W8
	w := newWorld(t)
	run := w.begin()
	for range 10 { // enough for a snapshot
		w.do(run, ringi.Pause{})
		w.do(run, ringi.Resume{})
	}
	if r, err := replay.Run(t.Context(), w.mem, replay.Query{}); err != nil || len(r.Mismatches) > 0 || r.Runs != 1 {
		t.Fatalf("untouched: %+v, %v", r, err)
	}
	x, err := w.mem.Inspect(t.Context(), store.Key{Tenant: 1, Run: run})
	if err != nil || len(x.Tasks) != 1 || len(x.Timers) != 2 || len(x.Waits) != 1 || len(x.Approvals) != 1 || len(x.Incidents) != 1 || x.Snapshot == nil {
		t.Fatalf("rows %+v, %v: want some of each kind", x, err)
	}
	for name, c := range forgeries() {
		c.f.Memory = w.mem
		r, err := replay.Run(t.Context(), c.f, replay.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		named := func(m replay.Mismatch) bool {
			return m.What == c.what && (m.Run == run && m.Seq > 0 || c.what == "definition") && strings.Contains(m.Detail, c.detail)
		}
		if len(r.Mismatches) == 0 || !slices.ContainsFunc(r.Mismatches, named) || len(r.Mismatches) > 1 && c.alone {
			t.Errorf("%s: mismatches %v, want one of %s that says %q", name, r.Mismatches, c.what, c.detail)
		}
	}
}

// A forgery is one edit by hand and what replay must say of it.
type forgery struct {
	f      forger
	what   string
	detail string
	alone  bool // and nothing else
}

func forgeries() map[string]forgery {
	rows := func(what, detail string, edit func(*store.Inspected)) forgery {
		return forgery{forger{rows: edit}, what, detail, true}
	}
	log := func(what, detail string, edit func([]store.LogRow) []store.LogRow) forgery {
		return forgery{f: forger{log: edit}, what: what, detail: detail}
	}
	year := 365 * 24 * time.Hour
	return map[string]forgery{
		"task moved":     rows("task", "task 3 is not what", func(x *store.Inspected) { x.Tasks[0].Row.Attempt++ }),
		"task gone":      rows("task", "task 3 is missing", func(x *store.Inspected) { x.Tasks = nil }),
		"task doubled":   rows("task", "task 7 is left over", func(x *store.Inspected) { d := x.Tasks[0]; d.Row.Lane = 7; x.Tasks = append(x.Tasks, d) }),
		"task later":     rows("task", "is ready at", func(x *store.Inspected) { x.Tasks[0].Row.ReadyAt = x.Tasks[0].Row.ReadyAt.Add(time.Second) }),
		"task looked at": rows("task", "too late", func(x *store.Inspected) { x.Tasks[0].Check = x.Tasks[0].Check.Add(year) }),
		"task forgotten": rows("task", "looked at never", func(x *store.Inspected) { x.Tasks[0].Check = time.Time{} }),
		"task fenced":    rows("task", "token of event", func(x *store.Inspected) { x.Tasks[0].Lease.Token += 1 << 16 }),
		"lapsed for years": rows("task", "is ready at", func(x *store.Inspected) {
			x.Tasks[0].Lease.Token++
			x.Tasks[0].Row.ReadyAt = x.Tasks[0].Row.ReadyAt.Add(year)
		}),
		"timer moved": rows("timer", "is not what", func(x *store.Inspected) {
			x.Timers[0].FireAt = x.Timers[0].FireAt.Add(-time.Hour)
			x.Timers[0].Due = x.Timers[0].FireAt
		}),
		"timer gone":       rows("timer", "is missing", func(x *store.Inspected) { x.Timers = x.Timers[1:] }),
		"timer put off":    rows("timer", "is found at", func(x *store.Inspected) { x.Timers[0].Due = x.Timers[0].Due.Add(year) }),
		"timer early":      rows("timer", "is found at", func(x *store.Inspected) { x.Timers[0].Due = x.Timers[0].Due.Add(-time.Second) }),
		"wait moved":       rows("wait", "wait w is not what", func(x *store.Inspected) { x.Waits[0].Key = "other" }),
		"vote slipped in":  rows("approval", "approval v is not what", func(x *store.Inspected) { x.Approvals[0].Approval.Votes = []ringi.Vote{{Person: "eve"}} }),
		"incident hidden":  rows("incident", "is missing", func(x *store.Inspected) { x.Incidents = nil }),
		"incident later":   rows("incident", "is not what", func(x *store.Inspected) { x.Incidents[0].Since = x.Incidents[0].Since.Add(1) }),
		"status in list":   rows("list", "is not what", func(x *store.Inspected) { x.Run.Status = ringi.Completed }),
		"requester":        rows("list", "is not what", func(x *store.Inspected) { x.Run.Requester = "eve" }),
		"list row gone":    rows("list", "is missing", func(x *store.Inspected) { x.Run = nil }),
		"snapshot":         rows("snapshot", "add up", func(x *store.Inspected) { forgeSnapshot(x) }),
		"snapshot format":  rows("snapshot", "no format 7", func(x *store.Inspected) { x.Snapshot.Format = 7 }),
		"snapshot too far": rows("snapshot", "the log ends at", func(x *store.Inspected) { x.Snapshot.Seq += 1000 }),
		"audited and gone": rows("log", "audit trail", func(x *store.Inspected) { x.AuditHeads = append(x.AuditHeads, []byte{1}) }),
		"unreadable row": rows("approval", "cannot be read: no JSON", func(x *store.Inspected) {
			x.Bad, x.Approvals = []store.BadRow{{Table: "approval", Row: "v", Err: errors.New("no JSON")}}, nil
		}),
		"event":       log("chain", "", forgeEvent),
		"head":        log("chain", "", forgeHead),
		"row missing": log("log", "is missing", func(r []store.LogRow) []store.LogRow { return slices.Delete(r, 1, 2) }),
		"tail missing": log("log", "cannot be reached", func(r []store.LogRow) []store.LogRow {
			return slices.DeleteFunc(r, func(row store.LogRow) bool { return row.First > 15 })
		}),
		"end of row":    log("log", "ends at event 99", func(r []store.LogRow) []store.LogRow { r[0].Last = 99; return r }),
		"no commit id":  log("log", "no commit id", func(r []store.LogRow) []store.LogRow { r[0].Commit = store.CommitID{}; return r }),
		"one commit id": log("log", "of another one", func(r []store.LogRow) []store.LogRow { r[1].Commit = r[0].Commit; return r }),
		"no JSON":       log("log", "cannot be read", func(r []store.LogRow) []store.LogRow { r[1].Body = []byte("x"); return r }),
		"source":        {forger{def: forgeSource}, "definition", "everything version 1: its source has the digest", true},
		"digest":        {forger{def: func(d *store.Definition) bool { d.Digest = "other"; return true }}, "definition", "the run began with", false},
		"no definition": {forger{def: func(*store.Definition) bool { return false }}, "definition", "version 1 is missing", true},
	}
}

func forgeSource(d *store.Definition) bool {
	d.Source = []byte(strings.Replace(string(d.Source), `"work.a"`, `"work.b"`, 1))
	return true
}

func forgeSnapshot(x *store.Inspected) {
	x.Snapshot.Body = []byte(strings.Replace(string(x.Snapshot.Body), `"requester":"alice"`, `"requester":"eve"`, 1))
}

func forgeEvent(rows []store.LogRow) []store.LogRow {
	if len(rows) > 0 && rows[0].First == 1 {
		rows[0].Body = []byte(strings.Replace(string(rows[0].Body), `"actor":"alice"`, `"actor":"eve"`, 1))
	}
	return rows
}

func forgeHead(rows []store.LogRow) []store.LogRow {
	rows[2].Head = store.Chain(nil, rows[2].Body)
	return rows
}

// W8: rows of a run that has no log are left over, whatever table they are in.
func TestReplayFindsRowsOfRunsThatDoNotExist(t *testing.T) {
	w := newWorld(t)
	w.begin()
	ghost := store.Key{Tenant: 7, Run: "0197e000-0000-7000-8000-000000000001"}
	for what, edit := range map[string]func(*store.Inspected){
		"log":      func(x *store.Inspected) { x.Run = &store.RunRecord{Key: ghost} },
		"snapshot": func(x *store.Inspected) { x.Snapshot = &store.Snapshot{Seq: 1, Format: 1} },
		"task":     func(x *store.Inspected) { x.Tasks = []store.InspectedTask{{}} },
		"timer":    func(x *store.Inspected) { x.Timers = []store.InspectedTimer{{}} },
		"wait":     func(x *store.Inspected) { x.Waits = []ringi.WaitRow{{}} },
		"approval": func(x *store.Inspected) { x.Approvals = []ringi.ApprovalRow{{}} },
		"incident": func(x *store.Inspected) { x.Incidents = []ringi.Incident{{}} },
	} {
		f := forger{Memory: w.mem, rows: edit, more: []store.Key{ghost}}
		r, err := replay.Run(t.Context(), f, replay.Query{})
		if err != nil || len(r.Mismatches) != 1 || r.Mismatches[0].What != what || r.Mismatches[0].Run != ghost.Run || r.Runs != 2 {
			t.Errorf("a row of %s: %+v, %v, want it named and nothing else", what, r, err)
		}
	}
}

func TestReplayOfARunThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	for _, run := range []ringi.RunID{"00000000-0000-7000-8000-000000000000", "no run id"} {
		if _, err := replay.Run(t.Context(), w.mem, replay.Query{Run: run}); ringi.ErrorCode(err) != ringi.CodeNotFound {
			t.Errorf("%v, want not_found", err)
		}
	}
}

func TestReplayOfAStoreThatIsAway(t *testing.T) {
	w := newWorld(t)
	run := w.begin()
	if err := w.mem.Close(); err != nil {
		t.Fatal(err)
	}
	for _, q := range []replay.Query{{}, {Run: run}} {
		if _, err := replay.Run(t.Context(), w.mem, q); ringi.ErrorCode(err) != ringi.CodeUnavailable {
			t.Errorf("%v, want unavailable", err)
		}
	}
}
