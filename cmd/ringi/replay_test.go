package main

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
	"github.com/ringiflow/ringi/engine/replay"
)

const everythingDefinition = `ringi: v1
name: everything
deadline: { after: 30d, then: compensate }
steps:
  - id: all
    parallel:
      branches:
        ask:
          - id: ask
            approval: { title: "May I?", subject: { a: 1 }, consequence: "It happens.", ask: [ { name: Finance, from: ["group:finance"], quorum: 1 } ] }
        call:
          - id: call
            activity: shop.call
            effect: pure
        wait:
          - id: paid
            wait: { event: order.paid, key: "A" }
        share:
          - id: divide
            set: { each: "${ 1 / (size(run.key) - 1) }" }
`

// alter changes a database by hand, as nobody should.
func alter(t *testing.T, w *desk, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "ringi.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	res, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changes nothing: %v", statement, err)
	}
}

// W8: replay is clean beside a running server, and finds what was edited by
// hand, each by name.
func TestReplayFindsWhatWasChangedByHand(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve")
	if got := w.runWith(everythingDefinition, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	run := w.begin("everything", "--key", "K")
	var got replay.Report
	w.ok(&got, "replay", "--all")
	if got.Runs != 1 || got.Events == 0 || got.Mismatches == nil || len(got.Mismatches) != 0 {
		t.Fatalf("untouched: %+v", got)
	}
	w.ok(&got, "replay", string(run.Run)[client.IDLength-8:])
	w.exits(cli.ExitNotFound, nil, "replay", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1")
	r.end()
	for _, c := range []struct{ what, statement string }{
		{"list", "update run set title = 'another'"},
		{"list", "update run set labels = 'no JSON'"},
		{"task", "update task set ready_at = ready_at + 1000000"},
		{"task", "update task set check_at = check_at + 31536000000000"},
		{"task", "update task set queue = 'another'"},
		{"timer", "update timer set due_at = due_at + 31536000000000"},
		{"timer", "update timer set fire_at = fire_at + 1000000"},
		{"wait", "update wait set key = 'B'"},
		{"approval", "update approval set body = 'no JSON'"},
		{"approval", "delete from approval"},
		{"incident", "update incident set since = since + 1"},
		{"incident", "update incident set id = id + 100"},
		{"incident", "update incident set body = 'no JSON'"},
		{"incident", "delete from incident"},
		{"log", "update log set last = last + 100 where seq = 1"},
		{"log", "update log set commit_id = x''"},
		{"snapshot", "insert into snapshot (tenant, run, seq, format, body) select tenant, id, 1, 1, x'7b7d' from run"},
		{"chain", "update log set head = x'00'"},
		{"snapshot", "update snapshot set format = 99"},
		{"list", "delete from run"},
	} {
		before := named(got.Mismatches, c.what, run.Run)
		alter(t, w, c.statement)
		w.exits(cli.ExitFailed, &got, "replay", "--all")
		if after := named(got.Mismatches, c.what, run.Run); after == "" || after == before {
			t.Errorf("after %q replay says nothing new of %s: %s", c.statement, c.what, after)
		}
	}
	const ghost = "0197e000000070008000000000000001"
	for _, c := range []struct{ what, statement string }{
		{"timer", "insert into timer select tenant, x'" + ghost + "', id, generation, fire_at, due_at from timer limit 1"},
		{"wait", "insert into wait select tenant, x'" + ghost + "', step, name, key, generation, opened_at, not_event from wait limit 1"},
		{"snapshot", "update snapshot set run = x'00'"},
		{"definition", "update definition set source = cast(replace(cast(source as text), 'shop.call', 'shop.fall') as blob)"},
	} {
		alter(t, w, c.statement)
		w.exits(cli.ExitFailed, &got, "replay", "--all")
		if !slices.ContainsFunc(got.Mismatches, func(m replay.Mismatch) bool { return m.What == c.what && m.Run != run.Run && m.Detail != "" }) {
			t.Errorf("after %q replay does not name %s: %+v", c.statement, c.what, got.Mismatches)
		}
	}
	if said := w.run("replay", "--all"); said.code != cli.ExitFailed || !strings.Contains(said.out, "chain") || !strings.Contains(said.err, "does not follow") {
		t.Errorf("%+v", said)
	}
}

// named is what replay says of a run's rows of a kind.
func named(list []replay.Mismatch, what string, run ringi.RunID) (said string) {
	for _, m := range list {
		if m.What == what && m.Run == run {
			said += m.Detail + "; "
		}
	}
	return said
}

func TestReplayNeedsADatabaseThatIsThere(t *testing.T) {
	w := newDesk(t)
	if got := w.run("replay", "--all"); got.code != cli.ExitNotFound || !strings.Contains(got.err, "ringi.db") {
		t.Errorf("%+v", got)
	}
}
