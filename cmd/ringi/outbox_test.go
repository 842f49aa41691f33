package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
	"github.com/ringiflow/ringi/relay"
)

// listed are the messages that outbox list prints.
func (w *desk) listed(args ...string) (list []relay.MessageView, next string) {
	w.t.Helper()
	var got struct {
		Messages []relay.MessageView `json:"messages"`
		Next     string              `json:"next"`
	}
	w.ok(&got, append([]string{"outbox", "list"}, args...)...)
	return got.Messages, got.Next
}

// changed is what a verb of outbox printed.
type changed struct {
	Verb     string `json:"verb"`
	Messages int    `json:"messages"`
	Reason   string `json:"reason"`
}

func TestTheOutboxIsCountedAndListed(t *testing.T) { // O-22, O-26
	w := newDesk(t)
	db := w.shop()
	audited := placed("B", 2)
	audited.Destination, audited.Payload, audited.ContentType = "audit", []byte("no JSON"), "text/plain"
	if err := announced(t.Context(), db, placed("A", 1), placed("A", 2), audited); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`update outbox set state = 3, last_error = 'the broker
		said no' where destination = 'audit'`); err != nil {
		t.Fatal(err)
	}
	var status struct {
		Destinations []relay.DepthView `json:"destinations"`
	}
	w.ok(&status, "outbox", "status")
	if d := status.Destinations; len(d) != 2 || d[0].Pending != 2 || d[0].OldestAt.IsZero() || d[1].Destination != "audit" || d[1].Dead != 1 {
		t.Errorf("the status is %+v", d)
	}
	if got := w.run("outbox", "status"); got.code != cli.ExitOK || !strings.Contains(got.out, "DESTINATION") || strings.Count(got.out, "\n") != 3 {
		t.Errorf("the table is %+v", got)
	}
	list, next := w.listed("--limit", "2")
	if len(list) != 2 || next != list[1].ID || list[0].Payload != nil {
		t.Fatalf("the first page is %+v, %q", list, next)
	}
	if got := w.run("outbox", "list", "--after", "zzz"); got.code != cli.ExitUsage || !strings.Contains(got.err, "zzz") {
		t.Errorf("--after zzz: %+v", got)
	}
	if got := w.run("relay", "--outbox", "stdout", "--outbox-lease", "1ms"); got.code != cli.ExitUsage || !strings.Contains(got.err, "too short") {
		t.Errorf("a lease of 1ms: %+v", got)
	}
	if rest, next := w.listed("--limit", "2", "--after", next); len(rest) != 1 || next != "" {
		t.Errorf("the second page is %+v, %q", rest, next)
	}
	dead, _ := w.listed("--state", "dead,parked", "--payload")
	if len(dead) != 1 || string(dead[0].PayloadBase64) != "no JSON" || !strings.Contains(dead[0].LastError, "said no") || dead[0].State != "dead" {
		t.Errorf("the dead are %+v", dead)
	}
	if one, _ := w.listed(dead[0].ID); len(one) != 1 {
		t.Errorf("by its id: %+v", one)
	}
	if some, _ := w.listed("--aggregate", "Order/A", "--type", "order.placed", "--tenant", "0", "--payload"); len(some) != 2 || !strings.HasPrefix(string(some[0].Payload), `{"n":`) {
		t.Errorf("of one order: %+v", some)
	}
	if got := w.run("outbox", "list", "--state", "dead"); got.code != cli.ExitOK || strings.Count(got.out, "\n") != 2 || !strings.Contains(got.out, "the broker") {
		t.Errorf("the table is %+v", got)
	}
}

func TestDeadMessagesAreTriedAgainOrDeleted(t *testing.T) { // O-26
	w := newDesk(t)
	db := w.shop()
	if err := announced(t.Context(), db, placed("A", 1), placed("B", 1), placed("C", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`update outbox set state = 3, attempts = 10`); err != nil {
		t.Fatal(err)
	}
	list, _ := w.listed("--aggregate", "Order/A")
	var got changed
	w.ok(&got, "outbox", "retry", list[0].ID)
	if got != (changed{"retry", 1, ""}) {
		t.Errorf("retried %+v", got)
	}
	w.exits(cli.ExitNotFound, nil, "outbox", "retry", list[0].ID) // it waits already
	w.ok(&got, "outbox", "purge", "--aggregate", "Order/B", "--reason", "of a test order")
	if got != (changed{"purge", 1, "of a test order"}) {
		t.Errorf("purged %+v", got)
	}
	w.ok(&got, "outbox", "retry", "--all", "--reason", "the broker is mended")
	if got.Messages != 1 {
		t.Errorf("retried %+v", got)
	}
	list, _ = w.listed()
	if len(list) != 2 || list[0].State != "pending" || list[0].Attempts != 0 {
		t.Errorf("left: %+v", list)
	}
	w.exits(cli.ExitUsage, nil, "outbox", "purge", "--all")
	var kept struct {
		Changes []struct {
			At           time.Time
			Verb, Reason string
			Messages     []string
		}
	}
	w.ok(&kept, "outbox", "changes")
	if c := kept.Changes; len(c) != 3 || c[0].Reason != "the broker is mended" || c[1].Verb != "purge" || c[1].Reason != "of a test order" || len(c[2].Messages) != 1 {
		t.Errorf("what was done is %+v", kept)
	}
	if got := w.run("outbox", "changes", "--limit", "1"); got.code != cli.ExitOK || strings.Count(got.out, "\n") != 2 || !strings.Contains(got.out, "the broker is mended") {
		t.Errorf("the table is %+v", got)
	}
	w.exits(cli.ExitUsage, nil, "outbox", "changes", "--limit", "0")
}

func TestAnEmptyChoiceOfMessagesIsNotAll(t *testing.T) { // O-26
	w := newDesk(t)
	db := w.shop()
	hooked := placed("B", 1)
	hooked.Destination = "hooks"
	if err := announced(t.Context(), db, placed("A", 1), hooked); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`update outbox set state = 3, attempts = 10`); err != nil {
		t.Fatal(err)
	}
	for _, choice := range [][]string{
		{"--aggregate", "/"},
		{"--aggregate", "Order/"},
		{"--aggregate", ""},
		{"--aggregate", "", "--state", "dead"},
		{"--type", "", "--state", "dead"},
		{"--state", "", "--tenant", "0"},
	} {
		w.exits(cli.ExitUsage, nil, append([]string{"outbox", "purge", "--reason", "a test"}, choice...)...)
	}
	var got changed
	w.ok(&got, "outbox", "purge", "--destination", "", "--reason", "of the usual one")
	if list, _ := w.listed(); got.Messages != 1 || len(list) != 1 || list[0].Destination != "hooks" {
		t.Errorf("purged %+v and left %+v", got, list)
	}
	if both, _ := w.listed("--destination", ",hooks"); len(both) != 1 {
		t.Errorf("of both: %+v", both)
	}
}

func TestDeliveredMessagesAreSentOnceMoreWithAWarning(t *testing.T) { // O-13, O-37
	w := newDesk(t)
	db := w.shop()
	if err := announced(t.Context(), db, placed("A", 1), placed("B", 1)); err != nil {
		t.Fatal(err)
	}
	for order, age := range map[string]time.Duration{"A": time.Hour, "B": outbox.ResendWithin + time.Hour} {
		if _, err := db.Exec(`update outbox set state = 2, delivered_at = ? where aggregateid = ?`, ago(age), order); err != nil {
			t.Fatal(err)
		}
	}
	w.exits(cli.ExitUsage, nil, "outbox", "resend", "--all")
	w.exits(cli.ExitConflict, nil, "outbox", "resend", "--all", "--reason", "lost them")
	got := w.run("outbox", "resend", "--aggregate", "Order/A", "--reason", "lost it")
	if got.code != cli.ExitOK || !strings.Contains(got.err, "duplicate window") || !strings.Contains(got.err, "1h0m") {
		t.Errorf("a late one: %+v", got)
	}
	var done changed
	w.ok(&done, "outbox", "resend", "--all", "--old", "--reason", "lost it too")
	if done.Messages != 1 {
		t.Errorf("resent %+v", done)
	}
	if list, _ := w.listed("--state", "pending"); len(list) != 2 {
		t.Errorf("pending: %+v", list)
	}
}

func TestTheSchemaOfAnOutboxIsPrinted(t *testing.T) {
	w := newDesk(t)
	for dialect, want := range map[relay.Dialect]string{relay.SQLite: sqlite.Schema, relay.Postgres: postgres.Schema, relay.MySQL: mysql.Schema} {
		if got := w.run("outbox", "schema", "--dialect", string(dialect)); got.code != cli.ExitOK || strings.TrimSpace(got.out) != strings.TrimSpace(want) {
			t.Errorf("%s: %+v", dialect, got)
		}
	}
	var got struct{ Dialect, SQL string }
	w.ok(&got, "outbox", "schema", "--database", "postgres://somewhere/shop")
	if got.Dialect != "postgres" || got.SQL != postgres.Schema {
		t.Errorf("of the database: %+v", got)
	}
}
