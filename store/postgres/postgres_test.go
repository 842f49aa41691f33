package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
	"github.com/ringiflow/ringi/store/storetest"
)

// shared is the server that the tests of this package share, started by the
// first that asks. Tests that harm their server start one of their own.
var shared struct {
	once      sync.Once
	server    *pgtest.Server
	err       error
	databases atomic.Int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*pgtest.Server{shared.server, watched.server} {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func server(t testing.TB) *pgtest.Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = pgtest.Start(context.Background(), pgtest.Config{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// database makes an empty database and returns its address.
func database(t testing.TB) string {
	t.Helper()
	s := server(t)
	name := fmt.Sprint("t", shared.databases.Add(1))
	if err := s.Exec(t.Context(), "postgres", "create database "+name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

func openStore(t testing.TB, c postgres.Config) *postgres.Store {
	t.Helper()
	c.Foreign = true // the tests have times of their own
	s, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// sqlConn runs statements beside the store, as another program would.
type sqlConn struct {
	t testing.TB
	*pgconn.PgConn
}

func connect(t testing.TB, url string) sqlConn {
	t.Helper()
	pg, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pg.Close(context.Background()) })
	return sqlConn{t, pg}
}

func (c sqlConn) exec(text string) {
	c.t.Helper()
	if err := c.Exec(context.Background(), text).Close(); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
}

// rows reads rows as texts.
func (c sqlConn) rows(text string) (list [][]string) {
	c.t.Helper()
	results, err := c.Exec(context.Background(), text).ReadAll()
	if err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	for _, row := range results[len(results)-1].Rows {
		var texts []string
		for _, cell := range row {
			texts = append(texts, string(cell))
		}
		list = append(list, texts)
	}
	return list
}

func (c sqlConn) one(text string) string {
	c.t.Helper()
	list := c.rows(text)
	if len(list) != 1 {
		c.t.Fatalf("%s: %d rows, want 1", text, len(list))
	}
	return list[0][0]
}

// empty takes all rows out of a database of ringi's.
func (c sqlConn) empty() {
	c.t.Helper()
	text := ""
	for _, row := range c.rows(`select relname from pg_stat_user_tables where relname <> 'meta'`) {
		text += "delete from " + row[0] + ";"
	}
	c.exec(text)
}

// harness hands a store over to the suite of all drivers.
func harness(s *postgres.Store, c postgres.Config) storetest.Harness {
	return storetest.Harness{
		Store: s, Records: s, Catalog: s, Events: s, Inspector: s, Outbox: s.Outbox(), Fleet: s,
		Traits: storetest.Traits{Durable: true},
		Reopen: func(t *testing.T) storetest.Harness {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return harness(openStore(t, c), c)
		},
	}
}

// W6, W11, W31, TC-28: the suite of all drivers.
func TestStore(t *testing.T) {
	c := postgres.Config{URL: database(t), Writers: 4, Readers: 2}
	openStore(t, c)
	beside := connect(t, c.URL)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		beside.empty()
		return harness(openStore(t, c), c)
	})
}
