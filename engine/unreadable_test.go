package engine_test

import (
	"database/sql"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store/sqlite"
)

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

// A bench is an engine on a database file that the test edits by hand.
type bench struct {
	*world
	path string
	db   *sqlite.Store
	hand *sql.DB
	said journal      // what the engine logged
	told atomic.Int64 // runs that the observer was told of
}

// A journal keeps what is written. Safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{world: &world{t: t}, path: filepath.Join(t.TempDir(), "ringi.db")}
	hand, err := sql.Open("sqlite", "file:"+b.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	b.hand = hand
	b.open()
	t.Cleanup(func() { b.close(); _ = hand.Close() })
	return b
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.db, err = sqlite.Open(b.t.Context(), sqlite.Config{Path: b.path}); err != nil {
		b.t.Fatal(err)
	}
	b.conf = engine.Config{
		Store: b.db, Records: b.db, Catalog: b.db, Events: b.db, Log: slog.New(slog.NewTextHandler(&b.said, nil)),
		Observer: engine.Observer{Quarantined: func(ringi.Tenant, ringi.RunID, error) { b.told.Add(1) }},
	}
	b.start()
}

func (b *bench) close() {
	b.t.Helper()
	if err := b.eng.Close(); err != nil {
		b.t.Error(err)
	}
	if err := b.db.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) edit(statement string, args ...any) {
	b.t.Helper()
	res, err := b.hand.ExecContext(b.t.Context(), statement, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
	if strings.HasPrefix(statement, "create") {
		return
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		b.t.Fatalf("%s changes nothing: %v", statement, err)
	}
}

// of is the condition that finds a run's rows.
func of(run ringi.RunID) string { return " = x'" + strings.ReplaceAll(string(run), "-", "") + "'" }

func (b *bench) list(q ringi.Query) ringi.Page {
	b.t.Helper()
	page, err := b.eng.List(b.t.Context(), q)
	if err != nil {
		b.t.Fatalf("%T: %v", q, err)
	}
	if err := b.eng.Ready(); err != nil {
		b.t.Fatalf("not ready because of a row: %v", err)
	}
	return page
}

// corrupt is what the incident of a run that cannot be read says; "" without one.
func corrupt(list []ringi.Incident) string {
	for _, in := range list {
		if in.Kind == ringi.IncidentCorrupt {
			return in.Message
		}
	}
	return ""
}

func (b *bench) incidents(q ringi.IncidentQuery, run ringi.RunID) string {
	b.t.Helper()
	var list []ringi.Incident
	for _, v := range b.list(q).Incidents {
		if v.Run == run {
			list = append(list, v.Incident)
		}
	}
	return corrupt(list)
}

// TC-80: one cell that nobody can read hides nothing else, takes no node out of
// service, and is told of once and by name.
func TestARowThatCannotBeReadHidesNoOther(t *testing.T) {
	b := newBench(t)
	b.publish(strings.TrimPrefix(strings.TrimSpace(everyRow), "ringi: v1\n"))
	sound, bad := b.begin("everything", "", `{}`), b.begin("everything", "", `{}`)
	b.edit("update approval set body = 'x' where run" + of(bad))
	b.edit("update incident set body = 'x' where run" + of(bad))
	b.edit("update run set labels = 'x' where id" + of(bad))
	for range 3 {
		if list := b.list(ringi.RunQuery{}).Runs; len(list) != 2 {
			t.Errorf("%d runs, want both", len(list))
		}
		if list := b.list(ringi.ApprovalQuery{}).Approvals; len(list) != 1 || list[0].Run != sound {
			t.Errorf("approvals %+v, want that of the sound run", list)
		}
		if list := b.list(ringi.IncidentQuery{}).Incidents; !slices.ContainsFunc(list, func(v ringi.IncidentView) bool { return v.Run == sound }) {
			t.Errorf("incidents %+v, want that of the sound run too", list)
		}
		if why := b.incidents(ringi.IncidentQuery{}, bad); !strings.Contains(why, "cannot be read") {
			t.Errorf("the incident says %q", why)
		}
		if v := b.view(bad); corrupt(v.Incidents) == "" || v.Seq == 0 {
			t.Errorf("the run is shown as %+v, want all of it and an incident", v)
		}
		if v := b.view(sound); corrupt(v.Incidents) != "" {
			t.Errorf("the sound run has %q", corrupt(v.Incidents))
		}
	}
	if said := strings.Count(b.said.String(), "a row cannot be read"); said != 3 || b.told.Load() != 3 {
		t.Errorf("three rows cannot be read, told of %d and logged %d:\n%s", b.told.Load(), said, b.said.String())
	}
	// The log is sound: the run goes on, and mended rows are seen to be.
	if r := b.do(alice, bad, ringi.Pause{Reason: "x"}); r.Err != nil {
		t.Errorf("pause: %v", r.Err)
	}
	if list := b.list(ringi.ApprovalQuery{}).Approvals; len(list) != 1 || corrupt(b.view(bad).Incidents) == "" {
		t.Errorf("approvals %+v, want the row to be found again", list)
	}
	b.edit("delete from approval where run" + of(bad))
	b.edit("delete from incident where run" + of(bad))
	b.edit("update run set labels = null where id" + of(bad))
	if v := b.view(bad); corrupt(v.Incidents) != "" {
		t.Errorf("mended, the run still has %q", corrupt(v.Incidents))
	}
}

// TC-38, TC-80: after a restart a run that cannot be read is shown as what it is.
func TestARunThatCannotBeReadIsShownAfterARestart(t *testing.T) {
	b := newBench(t)
	b.publish(strings.TrimPrefix(strings.TrimSpace(everyRow), "ringi: v1\n"))
	run, other := b.begin("everything", "", `{}`), b.begin("everything", "", `{}`)
	b.close()
	b.edit("create table was as select * from log")
	b.edit("update log set body = cast('x' as blob) where run" + of(run))
	b.open()
	if why := b.incidents(ringi.IncidentQuery{Run: run}, run); !strings.Contains(why, "log row 1 cannot be read") {
		t.Errorf("incidents of the run say %q", why)
	}
	b.close()
	b.open()
	v := b.view(run)
	if v.Status != ringi.InIncident || !strings.Contains(corrupt(v.Incidents), "log row 1 cannot be read") || v.Definition != "everything" {
		t.Errorf("the run is shown as %+v, want its list row and the reason", v)
	}
	if why := b.incidents(ringi.IncidentQuery{}, run); why == "" {
		t.Error("the list of incidents does not have it, although it was seen")
	}
	r := b.do(alice, run, ringi.Cancel{Reason: "x"})
	if ringi.ErrorCode(r.Err) != ringi.CodeInternal || !strings.Contains(r.Err.Error(), "log row 1") || !strings.Contains(r.Err.Error(), "ringi replay") {
		t.Errorf("cancel: %v, want what is wrong and what to do", r.Err)
	}
	if _, err := b.eng.History(t.Context(), ringi.HistoryQuery{Run: run}); !strings.Contains(err.Error(), "log row 1") {
		t.Errorf("history: %v", err)
	}
	if v := b.view(other); corrupt(v.Incidents) != "" {
		t.Errorf("the other run has %q", corrupt(v.Incidents))
	}
	b.edit("update log set body = (select body from was where was.run = log.run and was.seq = log.seq)")
	if v := b.view(run); corrupt(v.Incidents) != "" || v.Seq == 0 {
		t.Errorf("mended, the run is shown as %+v", v)
	}
	if r := b.do(alice, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
		t.Errorf("mended, cancel: %v", r.Err)
	}
}

func TestARunWhoseListRowIsGoneIsShown(t *testing.T) { // W5, TC-80
	b := newBench(t)
	b.publish("name: nap\nsteps:\n  - { id: w, wait: { for: 1h } }\n")
	run := b.begin("nap", "", "null")
	b.edit("delete from run where id" + of(run))
	if v := b.view(run); v.Status != ringi.Waiting || !strings.Contains(corrupt(v.Incidents), "list") {
		t.Errorf("the run is shown as %+v, want what its log says and the incident", v)
	}
}

// W2: what stands in the catalog under a digest is what was published under it.
func TestADefinitionThatWasChangedByHandIsRefused(t *testing.T) {
	b := newBench(t)
	b.publish("name: one\nsteps:\n  - { id: a, activity: work.a, effect: pure }\n")
	run := b.begin("one", "", "null")
	b.close()
	b.edit("update definition set source = cast(replace(cast(source as text), 'work.a', 'work.b') as blob)")
	b.open()
	r := b.do(operator, "", ringi.Start{Definition: "one", Input: json.RawMessage("null")})
	if ringi.ErrorCode(r.Err) != ringi.CodeInternal || !strings.Contains(r.Err.Error(), "version 1 of definition one is corrupt: its source has the digest") {
		t.Errorf("start: %v, want a refusal that says what is wrong", r.Err)
	}
	if v := b.view(run); !strings.Contains(corrupt(v.Incidents), "digest") || len(v.Steps) != 1 {
		t.Errorf("the run that began with it is shown as %+v", v)
	}
	if tasks := b.poll("w", 1, 0); len(tasks) == 1 {
		if r := b.complete(tasks[0], "1"); ringi.ErrorCode(r.Err) != ringi.CodeInternal {
			t.Errorf("it goes on: %+v", r)
		}
	}
}
