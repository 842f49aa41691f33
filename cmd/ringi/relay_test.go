package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/relay"
)

// shop is a service with nothing of ringi but an outbox, shop.db in the desk's
// directory, made from what ringi outbox schema prints.
func (w *desk) shop() *sql.DB {
	w.t.Helper()
	path := filepath.Join(w.dir, "shop.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = db.Close() })
	schema := w.run("outbox", "schema", "--dialect", "sqlite")
	if schema.code != cli.ExitOK {
		w.t.Fatalf("schema: %+v", schema)
	}
	if _, err := db.Exec(schema.out); err != nil {
		w.t.Fatal(err)
	}
	w.env["RINGI_DATABASE"] = "sqlite:shop.db"
	return db
}

// placed is an event about an order; n only makes it different.
func placed(order string, n int) outbox.Message {
	return outbox.Message{AggregateType: "Order", AggregateID: order, Type: "order.placed", Payload: fmt.Appendf(nil, `{"n":%d}`, n), ContentType: "application/json"}
}

// announced commits messages in one transaction and returns them as written.
func announced(ctx context.Context, db *sql.DB, msgs ...outbox.Message) error {
	unit := outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: db, Insert: relay.SQLite.Insert}}
	return errors.Join(unit.Add(ctx, msgs...), unit.Do(ctx, func(context.Context, *sql.Tx) error { return nil }))
}

// aside starts a program that runs until it is ended.
func (w *desk) aside(args ...string) *running {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	r := &running{t: w.t, stop: stop, out: &safeBuffer{}, err: &safeBuffer{}, done: make(chan int, 1)}
	p := w.program(args...)
	p.Stdout, p.Stderr = r.out, r.err
	go func() { r.done <- p.Run(ctx, rootCommand) }()
	w.t.Cleanup(func() { r.end() })
	return r
}

// event is what a reader of a file of events sees.
type event struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Subject  string `json:"subject"`
	Sequence string `json:"sequence"`
}

// events reads a file of events; one that is not there has none.
func (w *desk) events(name string) (list []event) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return list // it is being written
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			w.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// stored are the ids in the outbox.
func stored(t *testing.T, db *sql.DB, where string) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `select id from outbox where `+where+` order by id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// O5, O8, O-13: a service that has nothing else of ringi.
func TestARelayDeliversWhatAServiceWrote(t *testing.T) {
	w := newDesk(t)
	db := w.shop()
	audited, lost := placed("A", 2), placed("A", 3)
	audited.Destination, lost.Destination = "audit", "nowhere"
	if err := announced(t.Context(), db, placed("A", 1), audited, lost); err != nil {
		t.Fatal(err)
	}
	r := w.aside("relay", "--outbox", "file:events", "--outbox", "audit=stdout", "--metrics", "127.0.0.1:0", "--log-format", "text")
	eventually(t, "the delivery", func() bool {
		return len(w.events("events")) == 1 && strings.Contains(r.out.String(), `"type":"order.placed"`)
	})
	eventually(t, "a word about each destination", func() bool {
		said := r.err.String()
		return strings.Count(said, "duplicate window") == 2 && strings.Contains(said, "destination=nowhere")
	})
	_, rest, _ := strings.Cut(r.err.String(), "msg=metrics url=")
	url, _, _ := strings.Cut(rest, "\n")
	eventually(t, "the metrics", func() bool { // they count what was marked, after it was delivered
		text := fetch(t, url)
		return strings.Contains(text, `ringi_outbox_done_total{destination="audit",what="delivered"} 1`) &&
			strings.Contains(text, `ringi_outbox_messages{destination="nowhere",state="pending",tenant="0"} 1`)
	})
	if code := r.end(); code != cli.ExitOK || !strings.Contains(r.err.String(), "draining") {
		t.Errorf("it exits with %d: %s", code, r.err)
	}
	if n := len(stored(t, db, "state = 2")); n != 2 {
		t.Errorf("%d are marked", n)
	}
}

// O7, O-11, O-14: kill -9 of a real relay, again and again, while a service writes.
func TestNothingIsLostWhenARelayIsKilled(t *testing.T) {
	w := newDesk(t)
	db := w.shop()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wrote atomic.Int64
	written := make(chan error, 1)
	go func() {
		var err error
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil && err == nil; n++ {
			<-tick.C
			waiting := 0
			if err = db.QueryRow(`select count(*) from outbox where state < 2`).Scan(&waiting); err != nil || waiting > 300 {
				continue // the relay is behind enough
			}
			if err = announced(context.WithoutCancel(ctx), db, placed(fmt.Sprint("o", n%7), n), placed(fmt.Sprint("o", (n+1)%7), n)); err == nil {
				wrote.Add(2)
			}
		}
		written <- err
	}()
	relay := func() process {
		return w.process("relay", "--outbox", "file:events", "--outbox-lease", "500ms", "--outbox-batch", "20", "--outbox-poll", "20ms")
	}
	for range 5 {
		before := len(w.events("events"))
		p := relay()
		eventually(t, "some deliveries", func() bool { return len(w.events("events")) > before+30 })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.exit()
	}
	stop()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	p := relay()
	eventually(t, "the end of the backlog", func() bool { return len(stored(t, db, "state < 2")) == 0 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("after SIGTERM it exits with %d: %s", code, p.err)
	}
	ids := stored(t, db, "state = 2")
	if int64(len(ids)) != wrote.Load() {
		t.Errorf("%d are delivered of %d", len(ids), wrote.Load())
	}
	delivered := w.events("events")
	seen, last := map[string]bool{}, map[string]string{}
	for _, e := range delivered {
		if seen[e.ID] {
			continue // a repeat, under its id
		}
		seen[e.ID] = true
		if e.Sequence <= last[e.Subject] {
			t.Errorf("%s: number %s came after %s", e.Subject, e.Sequence, last[e.Subject])
		}
		last[e.Subject] = e.Sequence
	}
	for _, id := range ids {
		if !seen[id] {
			t.Errorf("message %s is lost", id)
		}
	}
	if len(seen) != len(ids) || len(delivered) > len(ids)+5*20 {
		t.Errorf("%d events under %d ids for %d messages", len(delivered), len(seen), len(ids))
	}
}

func TestAServerSendsMessagesWhereItsRoutesSay(t *testing.T) { // O8
	w := newDesk(t)
	w.env["RINGI_OUTBOX"] = "file:usual\naudit=file:audit"
	r := w.start("serve", "--outbox-route", "Thing/thing.*=audit")
	w.write("tell.yaml", emitDefinition)
	w.write("other.yaml", strings.NewReplacer("name: tell", "name: other", "type: thing.done", "type: other.done").Replace(emitDefinition))
	w.ok(nil, "publish", "tell.yaml", "other.yaml")
	w.begin("tell", "-i", "id=T-1")
	w.begin("other", "-i", "id=T-1")
	eventually(t, "both messages", func() bool { return len(w.events("usual")) == 1 && len(w.events("audit")) == 1 })
	if e := w.events("audit")[0]; e.Type != "thing.done" || w.events("usual")[0].Type != "other.done" {
		t.Errorf("audit got %+v", e)
	}
	if code := r.end(); code != cli.ExitOK {
		t.Errorf("it exits with %d", code)
	}
}

// O10: a business change and the start of a run are one commit.
func TestARelayStartsRunsAndSendsThemEvents(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("paid.yaml", paidDefinition)
	w.ok(nil, "publish", "paid.yaml")
	key, err := filepath.Abs(filepath.Join(w.dir, "ringi.db.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := w.env["RINGI_SERVER"]
	db := w.shop()
	begin, err := outbox.StartRun(outbox.RunStart{Definition: "paid", Input: json.RawMessage(`{"order":"A-1"}`)})
	if err != nil {
		t.Fatal(err)
	}
	paid := placed("A-1", 1)
	paid.Type = "order.paid"
	if err := announced(t.Context(), db, begin, paid); err != nil {
		t.Fatal(err)
	}
	r := w.aside("relay", "--outbox", "ringi+"+server+"?key-file="+key)
	eventually(t, "the end of the run", func() bool {
		var runs struct {
			Runs []struct{ Status, Key string }
			Next string
		}
		got := w.run("runs", "--json", "--key-file", key)
		return json.Unmarshal([]byte(got.out), &runs) == nil && len(runs.Runs) == 1 && runs.Runs[0].Status == "completed" && runs.Runs[0].Key != ""
	})
	if code := r.end(); code != cli.ExitOK {
		t.Errorf("it exits with %d: %s", code, r.err)
	}
}

func TestCrashPointsAreListed(t *testing.T) {
	w := newDesk(t)
	var got struct {
		CrashPoints []string `json:"crashPoints"`
	}
	w.ok(&got, "relay", "--list-crashpoints")
	if !slices.Equal(got.CrashPoints, crash.Points()) {
		t.Errorf("got %v", got.CrashPoints)
	}
	if plain := w.run("relay", "--list-crashpoints"); strings.Fields(plain.out)[0] != got.CrashPoints[0] || strings.Count(plain.out, "\n") != len(got.CrashPoints) {
		t.Errorf("prints %q", plain.out)
	}
}

func TestADatabaseWithoutAnOutboxIsToldFromOneThatIsAway(t *testing.T) {
	w := newDesk(t)
	w.write("empty.db", "")
	for database, want := range map[string]int{
		"sqlite:missing.db": cli.ExitNotFound,
		"sqlite:empty.db":   cli.ExitNotFound,
		"postgres://u:secret@127.0.0.1:1/shop?connect_timeout=1": cli.ExitUnreachable,
	} {
		for _, args := range [][]string{{"outbox", "status"}, {"relay", "--outbox", "file:events"}} {
			got := w.run(append(args, "--database", database)...)
			if got.code != want || strings.Contains(got.err, "secret") {
				t.Errorf("%v on %s exits with %d: %s", args, database, got.code, got.err)
			}
		}
	}
	if got := w.run("outbox", "status", "--database", "sqlite:empty.db"); !strings.Contains(got.err, "ringi outbox schema") {
		t.Errorf("it does not say what to do: %s", got.err)
	}
}

func TestAnOutboxOfAnEarlierVersionSaysHowItIsBroughtUpToDate(t *testing.T) {
	w := newDesk(t)
	older, err := os.ReadFile("../../outbox/testdata/schema_before_lease_end.sqlite.sql")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "shop.db"))
	if err == nil {
		_, err = db.Exec(string(older))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"outbox status", "relay --outbox file:events"} {
		if got := w.run(append(strings.Fields(args), "--database", "sqlite:shop.db")...); got.code != cli.ExitNotFound || !strings.Contains(got.err, "ringi outbox schema --apply") {
			t.Errorf("ringi %s exits with %d: %s", args, got.code, got.err)
		}
	}
	if got := w.run("outbox", "schema", "--apply", "--database", "sqlite:shop.db"); got.code != cli.ExitOK {
		t.Errorf("--apply: %+v", got)
	}
	if got := w.run("outbox", "status", "--database", "sqlite:shop.db"); got.code != cli.ExitOK {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestRelayAndOutboxRefuseWhatCannotWork(t *testing.T) {
	w := newDesk(t)
	w.shop()
	for _, args := range []string{
		"relay",
		"relay --outbox off",
		"relay --outbox pigeon",
		"relay --outbox file:a --outbox file:b",
		"relay --outbox kafka://h:1?topics=x",
		"relay --outbox file:a --outbox-batch 0",
		"relay --outbox file:a --outbox-lease soon",
		"relay --outbox file:a --outbox-after never",
		"relay --outbox file:a --metrics nowhere",
		"relay --outbox file:a --source wal", // SQLite has none
		"relay --outbox file:a --source binlog",
		"relay --outbox file:a --wal-limit 0",
		"relay extra",
		"serve --outbox-route Order=audit",
		"outbox retry",
		"outbox resend --all",
		"outbox purge --all",
		"outbox purge --all --reason x --state pending",
		"outbox list --state gone",
		"outbox list --limit -1",
		"outbox list --after nothing",
		"outbox schema --dialect oracle",
		"bench outbox",
		"bench outbox --sink stdout",
		"bench outbox --sink file:a --messages 0",
		"bench outbox --sink file:a --rate 0",
		"bench outbox --sink file:a --rate 1 --sources binlog",
	} {
		if got := w.run(strings.Fields(args)...); got.code != cli.ExitUsage && got.code != cli.ExitFailed || got.out != "" || got.err == "" {
			t.Errorf("ringi %s exits with %d and says %q on stderr, %q on stdout", args, got.code, got.err, got.out)
		}
	}
}

func TestABenchOfTheOutboxPrintsOneResult(t *testing.T) {
	w := newDesk(t)
	var got struct {
		Name, Store, Sink                        string
		Messages                                 int
		Seconds, MessagesPerSecond, P50MS, P99MS float64
		FloorMessagesPerSecond                   float64
	}
	w.ok(&got, "bench", "outbox", "--database", "sqlite:bench.db", "--sink", "file:events", "--messages", "300")
	if got.Name != "outbox" || got.Store != "sqlite" || got.Sink != "file:events" || got.Messages != 300 || got.Seconds <= 0 || got.FloorMessagesPerSecond <= 0 {
		t.Errorf("measured %+v", got)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "bench.db*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// ago is a time so long before the test's.
func ago(d time.Duration) int64 { return time.Now().Add(-d).UnixMicro() }
