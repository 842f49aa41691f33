package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// startOf is the start of run n with a body of so many bytes.
func startOf(n, size int) store.Write {
	body := append([]byte(fmt.Sprintf("%08d", n)), make([]byte, size)...)
	return store.Write{
		Key:    store.Key{Tenant: ringi.DefaultTenant, Run: runID(n)},
		Commit: commitID(n), First: 1, Last: 1, Head: store.Chain(nil, body), Body: body,
		Start: &store.StartRow{Definition: "order", Version: 1, StartedAt: time.Unix(1, 0).UTC(), RunRow: ringi.RunRow{Status: ringi.Running}},
	}
}

// nextOf is a transition behind a write.
func nextOf(w store.Write, n int) store.Write {
	body := []byte(fmt.Sprint("next", n))
	return store.Write{Key: w.Key, Commit: commitID(n), First: w.Last + 1, Last: w.Last + 1, Prev: w.Head, Head: store.Chain(w.Head, body), Body: body}
}

func mustCommit(t testing.TB, s *postgres.Store, writes ...store.Write) store.Committed {
	t.Helper()
	c, err := s.Commit(context.Background(), writes...)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Lost) > 0 {
		t.Fatalf("lost %+v", c.Lost)
	}
	return c
}

// eventually tries until it works or the test's patience ends, which is far
// longer than on the slowest machine: only a test that fails waits for so long.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// stands reports how often the log holds the first event of a run.
func stands(t testing.TB, s *postgres.Store, w store.Write) bool {
	t.Helper()
	loaded, err := s.Load(t.Context(), w.Key)
	if err != nil {
		t.Fatal(err)
	}
	return len(loaded[0].Rows) > 0 && loaded[0].Rows[0].Commit == w.Commit
}

// W14, W31: the answer of a commit that was cut off exactly after it was sent.
func TestACommitThatWasCutOffIsSettledBySendingItAgain(t *testing.T) {
	for name, lose := range map[string]int32{"done": loseAnswer, "never arrived": loseRequest} {
		t.Run(name, func(t *testing.T) {
			p, url := proxied(t, database(t))
			s := openStore(t, postgres.Config{URL: url, Writers: 1})
			first := startOf(1, 10)
			mustCommit(t, s, first)
			w, other := nextOf(first, 2), startOf(3, 10)
			other.Messages = []outbox.Message{{
				ID: string(runID(77)), Tenant: 1, AggregateType: "Order", AggregateID: "o", Type: "t", CreatedAt: time.Unix(9, 0),
			}}
			p.lose.Store(lose)
			if _, err := s.Commit(t.Context(), w, other); !errors.Is(err, store.ErrDoubt) {
				t.Fatalf("answer %v, want ErrDoubt", err)
			}
			for range 2 {
				mustCommit(t, s, w, other)
			}
			if log, err := s.Log(t.Context(), w.Key, 0, 1<<20); err != nil || len(log) != 2 {
				t.Errorf("%d log rows, %v, want 2", len(log), err)
			}
			if st, err := s.Outbox().Stats(t.Context()); err != nil || st.Pending != 1 {
				t.Errorf("%d messages, %v, want 1", st.Pending, err)
			}
		})
	}
}

// W31: what was answered outlives crashes of the server, what was not is there
// once or not at all, and the same store goes on by itself.
func TestCrashesOfTheServerLoseNothing(t *testing.T) { // TC-28
	server, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := openStore(t, postgres.Config{URL: server.URL("postgres"), Writers: 3})
	const writers, each = 3, 60
	progress := make(chan int, writers*each)
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				w := startOf(n*each+i+1, 500)
				eventually(t, "commit", func() error {
					c, err := s.Commit(context.Background(), w)
					if err == nil && len(c.Lost) > 0 {
						err = fmt.Errorf("lost %+v", c.Lost)
					}
					if err != nil && !errors.Is(err, store.ErrDoubt) && !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("answer %v, want ErrDoubt or ErrUnavailable", err)
					}
					return err
				})
				progress <- 1
			}
		})
	}
	for range 2 {
		for range writers * each / 4 {
			<-progress
		}
		if err := server.Crash(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context()); err == nil {
			t.Error("a server that is gone answers")
		}
		if err := server.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	for n := range writers * each {
		if !stands(t, s, startOf(n+1, 0)) {
			t.Errorf("run %d was answered and is lost", n+1)
		}
	}
	if _, err := s.Claim(t.Context(), store.Claim{Queue: "q", Max: 1, Now: time.Now()}); err != nil {
		t.Errorf("claims do not go on: %v", err)
	}
}

// role makes a role of an application, which is no superuser, with a database
// of its own, and returns its address.
func role(t *testing.T, limit int) (admin sqlConn, url string) {
	t.Helper()
	admin = connect(t, server(t).URL("postgres"))
	name := fmt.Sprint("app", shared.databases.Add(1))
	admin.exec(fmt.Sprintf("create role %s login connection limit %d", name, limit))
	admin.exec(fmt.Sprintf("create database %s owner %s", name, name))
	return admin, strings.Replace(server(t).URL(name), "ringi@", name+"@", 1)
}

func TestARoleThatIsNoSuperuserIsEnough(t *testing.T) {
	_, url := role(t, -1)
	s := openStore(t, postgres.Config{URL: url})
	if c := mustCommit(t, s, startOf(1, 10)); c.Incarnation == "" || c.Now.IsZero() {
		t.Errorf("answer %+v, want incarnation and clock", c)
	}
}

// W31, TC-28: a server that takes no writes, or no connections, and then does
// again.
func TestItIsUnavailableAsLongAsTheServerTakesNothing(t *testing.T) {
	admin, url := role(t, 4)
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	s := openStore(t, postgres.Config{URL: url, Writers: 2, Readers: 1})
	n := 0
	refused := func(what string) {
		t.Helper()
		n++
		if _, err := s.Commit(t.Context(), startOf(n, 10)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: answer %v, want ErrUnavailable", what, err)
		}
		if err := s.Probe(t.Context(), 100); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: probe %v, want ErrUnavailable", what, err)
		}
	}
	again := func(what string) {
		t.Helper()
		eventually(t, what, func() error {
			_, err := s.Commit(t.Context(), startOf(n, 10))
			return errors.Join(err, s.Probe(t.Context(), 100))
		})
		if !stands(t, s, startOf(n, 10)) {
			t.Errorf("%s: run %d does not stand", what, n)
		}
	}
	end := "select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'"
	admin.exec("alter database " + name + " set default_transaction_read_only = on")
	admin.exec(end)
	eventually(t, "the read-only setting to arrive", func() error {
		if _, err := s.Commit(t.Context(), startOf(1000, 10)); err == nil {
			t.Fatal("a commit on a read-only database")
		} else if !strings.Contains(err.Error(), "read-only") {
			return err
		}
		return nil
	})
	refused("read-only")
	admin.exec("alter database " + name + " set default_transaction_read_only = off")
	again("read-only")

	admin.exec("alter role " + name + " connection limit 0")
	admin.exec(end)
	eventually(t, "the connections to end", func() error {
		_, err := s.Commit(t.Context())
		if err == nil || !strings.Contains(err.Error(), "too many connections") {
			return fmt.Errorf("answer %w, want too many connections", err)
		}
		return nil
	})
	refused("out of connections")
	admin.exec("alter role " + name + " connection limit 4")
	again("out of connections")
}

// W14: a write that is sent again waits for the old transaction if the server
// still works on it, and does not wait for ever.
func TestAWriteQueuesBehindATransactionThatHasItsSequence(t *testing.T) {
	url := database(t)
	s := openStore(t, postgres.Config{URL: url})
	last := startOf(1, 10)
	mustCommit(t, s, last)
	old, watch := connect(t, url), connect(t, url)
	begin := func(w store.Write) {
		old.exec(fmt.Sprintf("begin; insert into log values (1, '%s', %d, %d, '%s', '\\x%x', '\\x%x')",
			w.Key.Run, w.First, w.Last, store.RunText(w.Commit[:]), w.Head, w.Body))
	}
	for i, end := range []string{"rollback", "commit"} {
		w := nextOf(last, i+2)
		begin(w)
		if i == 0 {
			if _, err := s.Commit(t.Context(), w); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("behind a transaction that does not end: answer %v, want ErrUnavailable", err)
			}
		}
		done := make(chan error)
		go func() {
			c, err := s.Commit(context.Background(), w)
			for errors.Is(err, store.ErrUnavailable) { // it waits two seconds, and this machine may be slower
				c, err = s.Commit(context.Background(), w)
			}
			if len(c.Lost) > 0 {
				err = fmt.Errorf("lost %+v", c.Lost)
			}
			done <- err
		}()
		eventually(t, "the write to wait", func() error {
			if watch.one("select count(*) from pg_locks where not granted") == "0" {
				return errors.New("nobody waits")
			}
			return nil
		})
		old.exec(end)
		if err := <-done; err != nil {
			t.Errorf("after %s: %v", end, err)
		}
		if log, err := s.Log(t.Context(), w.Key, 0, 1<<20); err != nil || len(log) != i+2 {
			t.Errorf("after %s: %d log rows, %v, want %d", end, len(log), err, i+2)
		}
		last = w
	}
}

// W31: what somebody else has locked is told apart from a database that is away,
// with what is locked and by whom.
func TestALockOfSomebodyIsNamed(t *testing.T) {
	url := database(t)
	s, other := openStore(t, postgres.Config{URL: url}), connect(t, url+"&application_name=migration")
	held := func() string {
		t.Helper()
		what, err := s.Locks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return what
	}
	if what := held(); what != "" {
		t.Errorf("nobody holds %q", what)
	}
	other.exec("begin; lock table timer in access exclusive mode")
	now := time.Unix(1_800_000_000, 0).UTC()
	if _, err := s.DueTimers(t.Context(), now, now, 1); !errors.Is(err, store.ErrLocked) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("timers of a locked table: %v, want ErrLocked", err)
	}
	w := startOf(1, 10)
	w.Timers = []store.TimerChange{{ID: "t", Row: &ringi.TimerRow{ID: "t", FireAt: now}}}
	if _, err := s.Commit(t.Context(), w); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a commit that needs the table: %v, want ErrLocked", err)
	}
	mustCommit(t, s, startOf(2, 10)) // others go on
	if what := held(); !strings.HasPrefix(what, "timer by session ") || !strings.Contains(what, "(migration)") {
		t.Errorf("held is %q", what)
	}
	other.exec("commit")
	mustCommit(t, s, w)
	if what := held(); what != "" {
		t.Errorf("nobody holds %q any more", what)
	}
}
