package wal_test

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/ndjson"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/wal"
)

// crashURL makes the test binary the process that dies: a relay that is told by the
// log of what it writes itself. crashSink is the file that stands for the destination.
const (
	crashURL  = "RINGI_CRASH_URL"
	crashSink = "RINGI_CRASH_SINK"

	crashLease = 700 * time.Millisecond // short, so that a takeover does not take long
	crashCount = 30                     // messages, of five keys
	crashBatch = 5
	refusedKey = "refused"
)

// picky refuses the messages of one key and passes the others on.
type picky struct{ outbox.Sink }

// Publish implements outbox.Sink.
func (s picky) Publish(ctx context.Context, msgs []outbox.Message) []error {
	results := make([]error, len(msgs))
	var rest []outbox.Message
	var at []int
	for i := range msgs {
		if msgs[i].AggregateID == refusedKey {
			results[i] = outbox.Refuse(errors.New("it is not wanted"))
			continue
		}
		rest, at = append(rest, msgs[i]), append(at, i)
	}
	if len(rest) == 0 {
		return results
	}
	for n, err := range s.Sink.Publish(ctx, rest) {
		results[at[n]] = err
	}
	return results
}

// crashRelay runs a relay to the file until ctx ends.
func crashRelay(ctx context.Context, db *sql.DB, path string, feed outbox.Feed, pollMost time.Duration) error {
	file, err := ndjson.OpenFile(path, "")
	if err != nil {
		return err
	}
	defer file.Close()
	source := postgres.New(db)
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Source: source, Fleet: source, Sink: picky{file}, Feed: feed, PollMost: pollMost, Lease: crashLease, Batch: crashBatch,
		Attempts: 2, PauseFirst: 10 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// crashChild is the process that dies. It returns its exit code if it does not.
func crashChild() int {
	if err := follow(os.Getenv(crashURL), os.Getenv(crashSink)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// follow writes messages and delivers them as the log tells of them. It looks for
// itself only for those that cannot be sent when they come.
func follow(url, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	streaming := make(chan struct{})
	tell := sync.OnceFunc(func() { close(streaming) })
	reader, err := wal.New(wal.Config{Connect: &config.Config, DB: db, Observe: func(r wal.Report) {
		if r.State == wal.Streaming {
			tell()
		}
	}})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = reader.Run(ctx) })
	running.Go(func() {
		if err := crashRelay(ctx, db, path, reader, 2*time.Second); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	select {
	case <-streaming:
	case <-ctx.Done():
		return ctx.Err()
	}
	for n := range crashCount {
		key := fmt.Sprint("k", n%5)
		if n == 2 {
			key = refusedKey
		}
		if err := insert(ctx, db, order(n, key)); err != nil {
			return err
		}
	}
	return drained(ctx, db)
}

// insert writes a message in a transaction of its own.
func insert(ctx context.Context, db *sql.DB, m outbox.Message) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := postgres.InsertSQL(ctx, tx, m); err != nil {
		return err
	}
	return tx.Commit()
}

// drained waits until nothing is left to send.
func drained(ctx context.Context, db *sql.DB) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var left int
		if err := db.QueryRowContext(ctx, `select count(*) from outbox where state < 2`).Scan(&left); err != nil || left == 0 {
			return err
		}
		<-tick.C
	}
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
	binary := filepath.Join(dir, "wal.test")
	out, err := exec.Command("go", "test", "-c", "-tags", "crashpoints", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// dies starts a process that dies, or stops, at a point.
func (s *shop) dies(path, point string) *exec.Cmd {
	s.t.Helper()
	binary, err := crasher()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), crashURL+"="+s.url, crashSink+"="+path, "RINGI_CRASHPOINT="+point)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// recovers delivers by polling what is left, and expects every committed message in
// the file, those of a key in order, and not many twice.
func (s *shop) recovers(path string, repeats int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		if err := crashRelay(ctx, s.db, path, nil, 20*time.Millisecond); err != nil {
			s.t.Error(err)
		}
	})
	if err := drained(ctx, s.db); err != nil {
		s.t.Error(err)
	}
	cancel()
	running.Wait()
	s.consistent(path, repeats)
}

func (s *shop) consistent(path string, repeats int) {
	s.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	seen, last, events := map[string]bool{}, map[string]string{}, 0
	for line := range bytes.Lines(text) {
		var e struct{ ID, Subject, Sequence string }
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		events++
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		if e.Sequence <= last[e.Subject] {
			s.t.Errorf("%s: number %s came after %s", e.Subject, e.Sequence, last[e.Subject])
		}
		last[e.Subject] = e.Sequence
	}
	want := s.text(`select count(*)::text from outbox where state = 2`)
	if got := fmt.Sprint(len(seen)); got != want || events > len(seen)+repeats || want == "0" {
		s.t.Errorf("%d events of %s messages, %s delivered, %d repeats at most", events, got, want, repeats)
	}
	if left := s.text(`select count(*)::text from outbox where state <> 2 and aggregateid <> $1`, refusedKey); left != "0" {
		s.t.Errorf("%s are not delivered", left)
	}
}

// O7, O-11: a relay that the log feeds loses nothing wherever it dies, and repeats no
// more than its batch and the one before, whose marks are written meanwhile.
func TestARelayOfTheLogThatDiesLosesNothing(t *testing.T) {
	for point, repeats := range map[string]int{
		crash.Claimed: 0, crash.Published: crashBatch, crash.Acknowledged: crashBatch, crash.Marked: 0, crash.DeadLetter: crashBatch,
	} {
		t.Run(point, func(t *testing.T) {
			s, path := open(t, shared(t)), filepath.Join(t.TempDir(), "events.ndjson")
			if point != crash.DeadLetter {
				point += ":2"
			}
			err := s.dies(path, point).Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process was to die at %s: %v", point, err)
			}
			s.recovers(path, repeats+crashBatch)
		})
	}
}

// O-16: one that is stopped past its lease marks nothing when it wakes, and hears of
// the rest by a new slot.
func TestARelayOfTheLogThatSleptSpoilsNothing(t *testing.T) {
	s, path := open(t, shared(t)), filepath.Join(t.TempDir(), "events.ndjson")
	sleeper := s.dies(path, crash.Publishing+":2")
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(sleeper.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it did not stop: %v, %v", status, err)
	}
	s.recovers(path, 3*crashBatch)
	if err := sleeper.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err != nil {
		t.Fatal(err)
	}
	s.consistent(path, 3*crashBatch)
	if got := s.text(`select count(*)::text from outbox`); got != fmt.Sprint(crashCount) {
		t.Errorf("%s messages", got)
	}
}
