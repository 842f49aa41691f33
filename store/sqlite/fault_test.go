package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/sqlite"
)

// startOf is the write that starts the n-th run, with a body of so many bytes.
func startOf(n, size int) store.Write {
	key := store.Key{Tenant: ringi.DefaultTenant, Run: ringi.RunID(fmt.Sprintf("0197e000-0000-7000-8000-%012x", n))}
	body := make([]byte, size)
	return store.Write{
		Key: key, Commit: store.CommitID{1, byte(n >> 16), byte(n >> 8), byte(n)}, First: 1, Last: 1,
		Head: store.Chain(nil, body), Body: body,
		Start: &store.StartRow{Definition: "order", StartKey: fmt.Sprint("key-", n), RunRow: ringi.RunRow{Status: ringi.Running}},
	}
}

// mustCommit commits writes that must all be applied.
func mustCommit(t testing.TB, s *sqlite.Store, writes ...store.Write) {
	t.Helper()
	c, err := s.Commit(t.Context(), writes...)
	if err != nil || len(c.Lost) > 0 {
		t.Fatalf("lost %v, %v", c.Lost, err)
	}
}

// stands reports whether a run is in the store.
func stands(t testing.TB, s *sqlite.Store, w store.Write) bool {
	t.Helper()
	_, err := s.Run(t.Context(), w.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestASecondOpeningIsRefusedAndNamesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openStore(t, path)
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	var used *sqlite.InUseError
	if !errors.As(err, &used) || used.PID != fmt.Sprint(os.Getpid()) || !strings.Contains(err.Error(), "stop that process") {
		t.Errorf("answer %v, want InUseError of process %d", err, os.Getpid())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, path)
}

func TestALockOfAnotherProgramMakesItUnavailableUntilItIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, second := startOf(1, 10), startOf(2, 10)
	mustCommit(t, s, first)

	foreign, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	foreign.SetMaxOpenConns(1)
	if _, err := foreign.Exec(`begin immediate`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Commit(t.Context(), second); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("answer %v, want ErrUnavailable", err)
		}
	}
	if _, err := s.Claim(t.Context(), store.Claim{Queue: "q", Max: 1}); err != nil {
		t.Errorf("an empty queue needs no lock: %v", err)
	}
	if !stands(t, s, first) {
		t.Error("reading stopped too")
	}
	if _, err := foreign.Exec(`rollback`); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, second)
}

func TestAFullDiskMakesItUnavailableUntilThereIsSpace(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	pages, err := s.Number(`pragma page_count`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(fmt.Sprintf(`pragma max_page_count = %d`, pages+20)); err != nil {
		t.Fatal(err)
	}
	n, failed := 0, store.Write{}
	for ; n < 100; n++ {
		w := startOf(n, 10_000)
		_, err := s.Commit(t.Context(), w)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrDoubt) {
			t.Fatalf("answer %v, want ErrUnavailable or ErrDoubt", err)
		}
		failed = w
		break
	}
	if failed.Body == nil || n == 0 {
		t.Fatalf("%d commits, the next one failed: %v", n, failed.Body != nil)
	}
	if err := s.Exec(`pragma max_page_count = 100000`); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, failed)
	mustCommit(t, s, startOf(n+1, 10_000))
	for i := range n + 2 {
		if !stands(t, s, startOf(i, 0)) {
			t.Errorf("run %d is lost", i)
		}
	}
}

func TestAReadOnlyDatabaseIsUnavailableUntilItIsNot(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	if err := s.Exec(`pragma query_only = 1`); err != nil {
		t.Fatal(err)
	}
	// The failing commit drops the connection, and with it what was wrong.
	if _, err := s.Commit(t.Context(), startOf(1, 10)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("answer %v, want ErrUnavailable", err)
	}
	mustCommit(t, s, startOf(1, 10))
}

func TestAFileThatWasReplacedStopsWritingUntilItIsBack(t *testing.T) {
	dir := t.TempDir()
	path, aside := filepath.Join(dir, "ringi.db"), filepath.Join(dir, "aside.db")
	s := openStore(t, path)
	mustCommit(t, s, startOf(1, 10))
	refused := func(when string) {
		t.Helper()
		if _, err := s.Commit(t.Context(), startOf(2, 10)); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "replaced or removed") {
			t.Errorf("%s: answer %v, want ErrUnavailable", when, err)
		}
		if _, err := s.Commit(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: answer %v to an empty commit, want ErrUnavailable", when, err)
		}
	}
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	refused("moved away")
	if _, err := os.Stat(path); err == nil {
		t.Error("an empty database was made in its place")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another in its place")
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, startOf(2, 10))
	if !stands(t, s, startOf(1, 0)) {
		t.Error("what was written before is lost")
	}
}

func TestAnotherSchemaIsRefusedOnlyWhenThisProgramWouldHarmIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	reopen := func(schema, oldest int) error {
		t.Helper()
		s := openStore(t, path)
		if err := s.Exec(fmt.Sprintf(`update meta set value = case key when 'schema' then '%d' else '%d' end where key in ('schema', 'oldest')`, schema, oldest)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err == nil {
			err = again.Close()
		}
		return err
	}
	if err := reopen(99, 1); err != nil {
		t.Errorf("a newer schema that only adds: %v", err)
	}
	err := reopen(99, 98)
	if err == nil || !strings.Contains(err.Error(), "schema 99") || !strings.Contains(err.Error(), "run the newer ringi") {
		t.Errorf("a newer schema that this program would harm: %v, want a refusal that says what to do", err)
	}
}

func TestWhatIsNoDatabaseOfRingiIsRefused(t *testing.T) {
	dir := t.TempDir()
	foreign, junk := filepath.Join(dir, "books.db"), filepath.Join(dir, "junk.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`create table book (title text)`); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), os.WriteFile(junk, []byte(strings.Repeat("junk ", 1000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		foreign: "name another file", junk: "not a database", "": "give a path", filepath.Join(dir, "no", "dir.db"): "no such file",
	} {
		if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", path, err, want)
		}
	}
}

func TestItStopsBeforeTheTokensOfTheNextEvent(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	w := startOf(1, 10)
	w.Tasks = []store.TaskChange{{Row: &ringi.TaskRow{Queue: "q", Seq: 1, InputSeq: 1, ReadyAt: time.Unix(1, 0)}, Fresh: true}}
	mustCommit(t, s, w)
	claim := store.Claim{Queue: "q", Max: 1, Now: time.Unix(2, 0)}
	for _, c := range []struct {
		handOuts int64
		want     int
	}{{store.HandOuts, 0}, {store.HandOuts - 1, 1}} {
		if err := s.Exec(fmt.Sprintf(`update task set state = 0, token = (seq << 16) + %d`, c.handOuts)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Claim(t.Context(), claim); err != nil || len(got) != c.want {
			t.Errorf("after %d hand-outs: handed out %d times, %v, want %d", c.handOuts, len(got), err, c.want)
		}
	}
}

// W3 writes ten rows: one of the log per transition, the list row at its ends,
// one of the task that is updated in place.
func TestThreeActivitiesInSequenceWriteTenRows(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	before, err := s.Number(`select total_changes()`)
	if err != nil {
		t.Fatal(err)
	}
	l := w3Line{key: startOf(1, 0).Key}
	for stage := range 4 {
		mustCommit(t, s, l.write(stage, store.CommitID{2, byte(stage)}))
	}
	after, err := s.Number(`select total_changes()`)
	if err != nil || after-before != 10 {
		t.Errorf("%d rows, %v, want 10", after-before, err)
	}
}

// S5: after a clean stop the file alone is everything, for whoever copies it.
func TestACleanStopLeavesEverythingInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openStore(t, path)
	for n := range 50 {
		mustCommit(t, s, startOf(n, 1000))
	}
	foreign, err := sql.Open("sqlite", path) // beside it, as replay or sqlite3
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	var runs int
	if err := foreign.QueryRow(`select count(*) from run`).Scan(&runs); err != nil || runs != 50 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		t.Errorf("%d bytes are left beside the database", wal.Size())
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	raw, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(copied, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	again := openStore(t, copied)
	for n := range 50 {
		if !stands(t, again, startOf(n, 0)) {
			t.Errorf("run %d is not in the copy", n)
		}
	}
}

// A server's database of an earlier version has the tables of that version's
// outbox too.
func TestAnOutboxOfAnEarlierVersionIsBroughtUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	older, err := os.ReadFile("../../outbox/testdata/schema_before_lease_end.sqlite.sql")
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path)
	if err := s.Exec("drop table outbox; drop table outbox_change; " + string(older) + "; update meta set value = '2' where key = 'schema'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	if _, err := s.Outbox().Changes(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Outbox().Claim(t.Context(), outbox.Claim{By: "r", Now: time.Unix(1, 0), Lease: time.Second, Limit: 1}); err != nil {
		t.Error(err)
	}
}
