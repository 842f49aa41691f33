package relay_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// server is the PostgreSQL that the tests of this package share.
var server struct {
	once    sync.Once
	pg      *pgtest.Server
	err     error
	schemas atomic.Int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.pg != nil {
		if err := server.pg.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if maria.server != nil {
		if err := maria.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// eachDatabase runs a test on every database, which are empty.
func eachDatabase(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "with space?&#%.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		test(t, "sqlite:"+path)
	})
	t.Run("postgres", func(t *testing.T) {
		server.once.Do(func() { server.pg, server.err = pgtest.Start(context.Background(), pgtest.Config{}) })
		if server.err != nil {
			t.Fatal(server.err)
		}
		schema := fmt.Sprint("t", server.schemas.Add(1))
		if err := server.pg.Exec(t.Context(), "postgres", "create schema "+schema); err != nil {
			t.Fatal(err)
		}
		test(t, server.pg.URL("postgres")+"&search_path="+schema)
	})
	t.Run("mysql", func(t *testing.T) { test(t, mysqlURL(t)) })
}

// made connects to a database and makes the tables.
func made(t *testing.T, url string) *relay.Database {
	t.Helper()
	db, err := relay.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// write commits messages.
func write(t *testing.T, db *relay.Database, msgs ...outbox.Message) {
	t.Helper()
	unit := outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: db.DB, Insert: db.Dialect.Insert}}
	if err := unit.Add(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
	if err := unit.Do(t.Context(), func(context.Context, *sql.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s does not happen", what)
		}
	}
}

func TestADatabaseIsOpenedWhenItHasAnOutboxAndChangedInNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, url string) {
		if _, err := relay.Open(t.Context(), url); !errors.Is(err, relay.ErrNoOutbox) || !strings.Contains(err.Error(), "ringi outbox schema") {
			t.Errorf("an empty database: %v", err)
		}
		made(t, url)
		db, err := relay.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if (db.Fleet != nil) != (db.Dialect != relay.SQLite) {
			t.Errorf("%s has the fleet %v", db.Dialect, db.Fleet)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestADatabaseThatIsNotThereIsToldFromOneThatIsAway(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	for url, want := range map[string]error{
		"sqlite:" + missing: fs.ErrNotExist,
		"postgres://u:secret@127.0.0.1:1/shop?connect_timeout=1": relay.ErrAway,
		"mysql://u:secret@127.0.0.1:1/shop":                      relay.ErrAway,
	} {
		if _, err := relay.Open(t.Context(), url); !errors.Is(err, want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("it was made")
	}
	for _, url := range []string{"mysql:x", "sqlite:", "postgres://%zz"} {
		if _, err := relay.Open(t.Context(), url); err == nil {
			t.Errorf("%s is a database", url)
		}
	}
}

func TestEachDestinationGetsItsOwnMessages(t *testing.T) { // O5, O8
	eachDatabase(t, func(t *testing.T, url string) {
		db := made(t, url)
		path := folder(t, nil)
		places, err := relay.ParsePlaces("file:usual\naudit=file:audit")
		if err != nil {
			t.Fatal(err)
		}
		sinks, err := relay.Opener{Path: path, Source: "/shop"}.Open(places)
		if err != nil {
			t.Fatal(err)
		}
		relays, err := relay.New(outbox.RelayConfig{Source: db.Outbox, Fleet: db.Fleet, PollFirst: time.Minute, PollMost: time.Minute}, sinks...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- relays.Run(ctx) }()
		for n := range 4 {
			m := order(n, "a")
			if n%2 == 1 {
				m.Destination = "audit"
			}
			write(t, db, m)
			relays.Wake()
		}
		elsewhere := order(9, "a")
		elsewhere.Destination = "nowhere"
		write(t, db, elsewhere)
		eventually(t, "the delivery", func() bool {
			relays.Wake()
			st, err := db.Outbox.Stats(t.Context())
			return err == nil && st.Pending+st.Claimed == 1
		})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := relay.CloseAll(sinks); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"usual", "audit"} {
			text, err := os.ReadFile(path(name))
			if err != nil || strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), `"source":"/shop"`) {
				t.Errorf("%s has %s, %v", name, text, err)
			}
		}
		var log bytes.Buffer
		relay.Warn(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), db.Outbox, sinks)
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "destination=nowhere") {
			t.Errorf("warned of %s", got)
		}
	})
}

// slow is a destination that answers when it is let go.
type slow struct{ begun, free chan struct{} }

func (s slow) Publish(ctx context.Context, msgs []outbox.Message) []error {
	close(s.begun)
	results := make([]error, len(msgs))
	select {
	case <-s.free:
	case <-ctx.Done():
		for i := range results {
			results[i] = ctx.Err()
		}
	}
	return results
}

func TestABatchUnderWayIsFinishedWhenTheRelayStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(memory.Outbox)
		m := order(1, "a")
		if err := source.Insert(m); err != nil {
			t.Fatal(err)
		}
		s := slow{make(chan struct{}), make(chan struct{})}
		relays, err := relay.New(outbox.RelayConfig{Source: source, Now: func() time.Time { return m.CreatedAt }}, &relay.Sink{Sink: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- relays.Run(ctx) }()
		<-s.begun
		stop()
		synctest.Wait() // whoever heeds the end has heeded it
		close(s.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if list, err := source.List(t.Context(), outbox.Filter{}); err != nil || len(list) != 1 || list[0].State != outbox.Delivered {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

func TestRelaysNeedADestination(t *testing.T) {
	if _, err := relay.New(outbox.RelayConfig{Source: new(memory.Outbox)}); err == nil {
		t.Error("none is enough")
	}
}

func TestAChangeTakesAllThatIsChosenAndNothingElse(t *testing.T) { // O-26
	eachDatabase(t, func(t *testing.T, url string) {
		db := made(t, url)
		const n = outbox.MostListed + 20
		msgs := make([]outbox.Message, n)
		for i := range msgs {
			msgs[i] = order(i, fmt.Sprint("a", i%7))
		}
		write(t, db, msgs...)
		if _, err := db.DB.ExecContext(t.Context(), `update outbox set state = 3 where aggregateid <> 'a0'`); err != nil {
			t.Fatal(err)
		}
		want := n - (n+6)/7
		now := time.Now()
		if got, err := relay.Purge.Do(t.Context(), db.Outbox, now, outbox.Filter{}, 5); err != nil || got.Messages != 5 {
			t.Errorf("purged %+v, %v", got, err)
		}
		if got, err := relay.Retry.Do(t.Context(), db.Outbox, now, outbox.Filter{}, 0); err != nil || got.Messages != want-5 {
			t.Errorf("retried %+v, %v", got, err)
		}
		if st, err := db.Outbox.Stats(t.Context()); err != nil || st.Pending != n-5 || st.Dead != 0 {
			t.Errorf("left: %+v, %v", st, err)
		}
		if _, err := relay.Retry.Do(t.Context(), db.Outbox, now, outbox.Filter{IDs: []string{msgs[0].ID}}, 0); !errors.Is(err, relay.ErrNone) {
			t.Errorf("one that waits: %v", err)
		}
	})
}

func TestOldDeliveriesAreResentOnlyWhenThatIsMeant(t *testing.T) { // O-37
	source := new(memory.Outbox)
	at := time.UnixMilli(1_700_000_000_000)
	old, young := order(1, "a"), order(2, "b")
	young.CreatedAt = at.Add(outbox.ResendWithin)
	if err := source.Insert(old, young); err != nil {
		t.Fatal(err)
	}
	now := at
	one, err := outbox.NewRelay(outbox.RelayConfig{Source: source, Sink: taking{}, Now: func() time.Time { return now }, Retention: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, now = range []time.Time{at, young.CreatedAt} {
		if _, err := one.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := relay.Resend.Do(t.Context(), source, now, outbox.Filter{}, 0); !errors.Is(err, outbox.ErrResendOld) {
		t.Errorf("all: %v", err)
	}
	got, err := relay.Resend.Do(t.Context(), source, now, outbox.Filter{IDs: []string{young.ID}}, 0)
	if err != nil || got.Messages != 1 || !got.LastDelivered.Equal(young.CreatedAt) {
		t.Errorf("the young one: %+v, %v", got, err)
	}
	if got, err := relay.Resend.Do(t.Context(), source, now, outbox.Filter{Old: true}, 0); err != nil || got.Messages != 1 {
		t.Errorf("the old one: %+v, %v", got, err)
	}
}

// taking is a destination that takes everything.
type taking struct{}

func (taking) Publish(_ context.Context, msgs []outbox.Message) []error {
	return make([]error, len(msgs))
}
