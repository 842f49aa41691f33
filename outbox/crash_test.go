package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/ndjson"
)

// crashRole makes the test binary the process that dies: "write", "relay", or
// "keep", a relay that stays when there is nothing left to send. The other
// variables say where.
const (
	crashRole = "RINGI_CRASH_ROLE"
	crashDB   = "RINGI_CRASH_DB"
	crashSink = "RINGI_CRASH_SINK"

	crashLease  = 700 * time.Millisecond // short, so that a takeover does not take long
	crashWrites = 5                      // changes that the writer makes unless it dies
	refusedID   = "01890000-0000-7000-8000-00000000dead"
)

// place is where a crash test happens: a database and the file that stands for
// the destination.
type place struct {
	dialect dialect
	db      *sql.DB
	url     string
	sink    string
}

// relay returns a relay to the file, in a fleet where there is one.
func (p place) relay(file *ndjson.File) (*outbox.Relay, error) {
	src := p.dialect.source(p.db)
	fleet, _ := src.(outbox.Fleet)
	return outbox.NewRelay(outbox.RelayConfig{
		Source: src, Fleet: fleet, Sink: picky{file}, Lease: crashLease, Batch: 10, Attempts: 2,
		PauseFirst: 10 * time.Millisecond, Retention: time.Hour, PollMost: 20 * time.Millisecond,
	})
}

// picky refuses one message and passes the others on.
type picky struct{ outbox.Sink }

// Publish implements outbox.Sink.
func (s picky) Publish(ctx context.Context, msgs []outbox.Message) []error {
	at := slices.IndexFunc(msgs, func(m outbox.Message) bool { return m.ID == refusedID })
	if at < 0 {
		return s.Sink.Publish(ctx, msgs)
	}
	results := s.Sink.Publish(ctx, msgs[:at])
	return append(append(results, errBad), s.Sink.Publish(ctx, msgs[at+1:])...)
}

// crashChild is the process that dies. It returns its exit code if it does not.
func crashChild() int {
	name, url, _ := strings.Cut(os.Getenv(crashDB), " ")
	p := place{dialect: dialect(name), url: url, sink: os.Getenv(crashSink)}
	db, err := sql.Open(p.dialect.driver(), url)
	if err == nil {
		p.db = db
		switch os.Getenv(crashRole) {
		case "write":
			err = p.write(context.Background())
		case "relay":
			err = p.deliver(context.Background(), 2*time.Second)
		case "keep":
			err = p.keep(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// write makes changes with their messages, as a service does.
func (p place) write(ctx context.Context) error {
	unit := outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: p.db, Insert: p.dialect.insert}, Wake: func() {}}
	for n := range crashWrites {
		m := reserved("o-1")
		m.Payload = fmt.Appendf(nil, `{"n":%d}`, n)
		if err := unit.Add(ctx, m); err != nil {
			return err
		}
		if err := unit.Do(ctx, func(ctx context.Context, tx *sql.Tx) error { return execSQL(p.dialect)(ctx, tx, fmt.Sprint(n)) }); err != nil {
			return err
		}
	}
	return nil
}

// deliver relays until nothing is left, or for a while.
func (p place) deliver(ctx context.Context, most time.Duration) error {
	file, err := ndjson.OpenFile(p.sink, "")
	if err != nil {
		return err
	}
	defer file.Close()
	relay, err := p.relay(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if err := relay.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	src := p.dialect.source(p.db)
	for ctx.Err() == nil {
		<-tick.C
		st, err := src.Stats(ctx)
		if err == nil && st.Pending+st.Claimed == 0 {
			cancel()
		}
	}
	return nil
}

// keep relays for a while.
func (p place) keep(ctx context.Context) error {
	file, err := ndjson.OpenFile(p.sink, "")
	if err != nil {
		return err
	}
	defer file.Close()
	relay, err := p.relay(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return relay.Run(ctx)
}

// crasherDir is where crasher put its binary, for TestMain to remove.
var crasherDir string

// crasher builds this test binary once more, with the crash points in it.
var crasher = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ringi-crash-")
	if err != nil {
		return "", err
	}
	crasherDir = dir
	binary := filepath.Join(dir, "outbox.test")
	out, err := exec.Command("go", "test", "-c", "-tags", "crashpoints", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// child starts a process that dies, or stops, at a point.
func (p place) child(t *testing.T, role, point string) *exec.Cmd {
	t.Helper()
	binary, err := crasher()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), crashRole+"="+role, crashDB+"="+string(p.dialect)+" "+p.url, crashSink+"="+p.sink, "RINGI_CRASHPOINT="+point)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that failed before it ended
	return cmd
}

// dies runs a child and expects it to be killed at its point.
func (p place) dies(t *testing.T, role, point string) {
	t.Helper()
	err := p.child(t, role, point).Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was to die at %s: %v", point, err)
	}
}

// eachPlace runs a test on every database.
func eachPlace(t *testing.T, test func(t *testing.T, p place)) {
	for _, d := range []dialect{dialectSQLite, dialectPostgres, dialectMySQL} {
		t.Run(string(d), func(t *testing.T) { test(t, newPlace(t, d)) })
	}
}

func newPlace(t *testing.T, d dialect) place {
	t.Helper()
	db, url := d.empty(t)
	for _, text := range append(d.inbox().Schema(), stockTable, `create table effect (message text not null)`) {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if d == dialectMySQL {
		url += "&idle_transaction_timeout=2" // or a process that is stopped keeps its locks
	}
	return place{dialect: d, db: db, url: url, sink: filepath.Join(t.TempDir(), "events.ndjson")}
}

// fill inserts n messages of five keys.
func (p place) fill(t *testing.T, n int) {
	t.Helper()
	tx, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for i := range n {
		m := written(i, fmt.Sprint("k", i%5))
		if err := p.dialect.insert(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// event is what a consumer reads of an event in the file.
type event struct {
	ID       string `json:"id"`
	Subject  string `json:"subject"`
	Sequence string `json:"sequence"`
}

// consume reads the destination as a consumer would, through an inbox, and
// returns how many events came and how many had an effect. The order of first
// deliveries must hold.
func (p place) consume(t *testing.T) (events, effects int) {
	t.Helper()
	text, err := os.ReadFile(p.sink)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	c, err := inbox.NewConsumer(inbox.Config{DB: p.db, Dialect: p.dialect.inbox(), Name: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for line := range bytes.Lines(text) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		events++
		got, err := c.Receive(t.Context(), inbox.Delivery{ID: e.ID}, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, p.dialect.places(`insert into effect values ($1)`), e.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got == inbox.Handled {
			if e.Sequence <= last[e.Subject] {
				t.Errorf("%s: number %s came after %s", e.Subject, e.Sequence, last[e.Subject])
			}
			last[e.Subject] = e.Sequence
		}
	}
	if err := p.db.QueryRow(`select count(*) from effect`).Scan(&effects); err != nil {
		t.Fatal(err)
	}
	return events, effects
}

// recovers delivers what is left and expects every one of n messages to have had
// one effect, and not more repeats than that.
func (p place) recovers(t *testing.T, n, repeats int) {
	t.Helper()
	if err := p.deliver(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	events, effects := p.consume(t)
	if effects != n || events < n || events > n+repeats {
		t.Errorf("%d events with %d effects, want %d with %d repeats at most", events, effects, n, repeats)
	}
	if st, err := p.dialect.source(p.db).Stats(t.Context()); err != nil || st.Pending+st.Claimed != 0 {
		t.Errorf("left over: %+v, %v", st, err)
	}
}

// count counts rows.
func (p place) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := p.db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rows are what marks change of every message.
func (p place) rows(t *testing.T) string {
	t.Helper()
	rows, err := p.db.Query(`select id, state, claim_epoch, attempts, coalesce(last_error, ''), delivered_at from outbox order by seq, id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var id, reason string
		var state, epoch, attempts int64
		var delivered any
		if err := rows.Scan(&id, &state, &epoch, &attempts, &reason, &delivered); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, id, state, epoch, attempts, reason, delivered)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestAWriterThatDiesLeavesChangeAndMessageTogether(t *testing.T) { // O1, O7
	for point, want := range map[string]int{crash.BeforeCommit: 2, crash.Committed: 3, crash.BeforeWake: 3} {
		t.Run(point, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, p place) {
				p.dies(t, "write", point+":3")
				// A server notices a dead client a moment later.
				until(t, "the change is there or gone", func() bool { return p.count(t, `select count(*) from stock`) == want })
				if n := p.count(t, `select count(*) from outbox`); n != want {
					t.Errorf("%d messages for %d changes", n, want)
				}
				p.recovers(t, want, 0)
			})
		})
	}
}

// behind is how many messages more a crash repeats where a relay goes on while the
// marks of a batch are written: those of that batch.
func (p place) behind() int {
	if p.dialect == dialectSQLite {
		return 0
	}
	return 10
}

func TestARelayThatDiesLosesNothing(t *testing.T) { // O7, O-11, O9
	for point, repeats := range map[string]int{
		crash.Claimed: 0, crash.Published: 10, crash.Acknowledged: 10, crash.Marked: 0,
	} {
		t.Run(point, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, p place) {
				p.fill(t, 30)
				p.dies(t, "relay", point+":2")
				p.recovers(t, 30, repeats+p.behind())
			})
		})
	}
}

func TestARelayThatIsStoppedPastItsLeaseMarksNothing(t *testing.T) { // O-16
	eachPlace(t, func(t *testing.T, p place) {
		p.fill(t, 30)
		sleeper := p.child(t, "relay", crash.Publishing+":2")
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(sleeper.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("it did not stop: %v, %v", status, err)
		}
		if err := p.deliver(t.Context(), time.Minute); err != nil { // takes over when the lease ends
			t.Fatal(err)
		}
		if n := p.count(t, `select count(*) from outbox where state = 2 and claimed_by is null and lease_end is null`); n != 30 {
			t.Fatalf("%d delivered", n)
		}
		before := p.rows(t)
		if err := sleeper.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := sleeper.Wait(); err != nil {
			t.Fatal(err)
		}
		if after := p.rows(t); after != before {
			t.Errorf("after it woke:\n%s\nbefore:\n%s", after, before)
		}
		if events, effects := p.consume(t); effects != 30 || events < 30 || events > 40+p.behind() {
			t.Errorf("%d events with %d effects", events, effects)
		}
	})
}

func TestACleanUpThatDiesDeletesNothingHalf(t *testing.T) { // O-5, O-29
	eachPlace(t, func(t *testing.T, p place) {
		p.fill(t, 20)
		p.recovers(t, 20, 0)
		old := time.Now().Add(-2 * time.Hour)
		if _, err := p.db.Exec(p.dialect.places(`update outbox set delivered_at = $1`), p.dialect.time(old)); err != nil {
			t.Fatal(err)
		}
		p.dies(t, "keep", crash.Pruning)
		if n := p.count(t, `select count(*) from outbox`); n != 20 {
			t.Errorf("%d of 20 rows are left", n)
		}
		until(t, "the lock is free", func() bool {
			n, err := p.dialect.source(p.db).Prune(t.Context(), time.Now().Add(-time.Hour), 100)
			return err == nil && n == 20
		})
	})
}

func TestAMessageBeingSetAsideIsNotLost(t *testing.T) { // O-26
	eachPlace(t, func(t *testing.T, p place) {
		m := written(0, "refused")
		m.ID = refusedID
		tx, err := p.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.dialect.insert(t.Context(), tx, m), tx.Commit()); err != nil {
			t.Fatal(err)
		}
		p.fill(t, 10)
		p.dies(t, "relay", crash.DeadLetter)
		p.recovers(t, 10, 10) // those that were in the batch with it
		list, err := p.dialect.source(p.db).List(t.Context(), outbox.Filter{States: []outbox.State{outbox.Dead}})
		if err != nil || len(list) != 1 || list[0].ID != refusedID || list[0].LastError == "" {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

func TestEveryCrashPointIsListedOnce(t *testing.T) {
	points := crash.Points()
	if sorted := slices.Compact(slices.Sorted(slices.Values(points))); len(points) != 10 || len(sorted) != len(points) {
		t.Errorf("got %v", points)
	}
}
