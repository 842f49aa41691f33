package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// server is the PostgreSQL that the tests of this package share; it is started
// by the first that asks.
var server struct {
	once    sync.Once
	pg      *pgtest.Server
	err     error
	schemas atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv(crashRole) != "" {
		os.Exit(crashChild())
	}
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
	if crasherDir != "" {
		if err := os.RemoveAll(crasherDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// postgresURL returns the address of an empty outbox in a schema of its own. No
// commit waits for the disk: processes die in these tests, machines do not.
func postgresURL(t testing.TB) string {
	return durableURL(t) + "&synchronous_commit=off"
}

// durableURL is for a test that crashes the server.
func durableURL(t testing.TB) string {
	t.Helper()
	server.once.Do(func() { server.pg, server.err = pgtest.Start(context.Background(), pgtest.Config{}) })
	if server.err != nil {
		t.Fatal(server.err)
	}
	schema := fmt.Sprint("t", server.schemas.Add(1))
	if err := server.pg.Exec(t.Context(), "postgres", "create schema "+schema); err != nil {
		t.Fatal(err)
	}
	return server.pg.SocketURL("postgres") + "&search_path=" + schema
}

// openPostgres opens an empty outbox in PostgreSQL.
func openPostgres(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for range 2 { // a schema may run again
		if _, err := db.Exec(postgres.Schema); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestAWritersClockThatIsAheadDelaysNothing(t *testing.T) { // O-2
	db := openPostgres(t, postgresURL(t))
	insert := insertPostgres(db)
	ahead := time.Now().Add(time.Hour)
	late := func(n int, aggregate string, unordered bool) outbox.Message {
		m := order(n, aggregate)
		m.CreatedAt, m.Unordered = ahead, unordered
		return m
	}
	f := fixture{Source: postgres.New(db), insert: insert}
	f.put(t, late(1, "a", false))
	f.put(t, late(2, "b", true))
	f.put(t, late(3, "c", false), late(4, "c", false))
	got := f.claim(t, time.Now(), 10)
	if len(got) != 4 || got[0].CreatedAt.Before(ahead.Add(-time.Second)) {
		t.Errorf("got %s, written %v", names(got), got)
	}
}

// insertPostgres returns an insert that begins and commits a transaction of its own.
func insertPostgres(db *sql.DB) func(...outbox.Message) error {
	return func(msgs ...outbox.Message) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := postgres.InsertSQL(context.Background(), tx, msgs...); err != nil {
			return err
		}
		return tx.Commit()
	}
}
