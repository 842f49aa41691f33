package wal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// server is the PostgreSQL that the tests of this package share; it is started by
// the first that asks.
var server struct {
	once    sync.Once
	pg      *pgtest.Server
	err     error
	schemas atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv(crashURL) != "" {
		os.Exit(crashChild())
	}
	code := m.Run()
	if server.pg != nil {
		if err := server.pg.Close(); err != nil {
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

// logical is what a server for these tests is set to.
func logical() map[string]string {
	return map[string]string{"wal_level": "logical", "max_replication_slots": "30", "max_wal_senders": "30"}
}

// shared returns the shared server.
func shared(t *testing.T) *pgtest.Server {
	t.Helper()
	server.once.Do(func() {
		server.pg, server.err = pgtest.Start(context.Background(), pgtest.Config{Settings: logical()})
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.pg
}

// own starts a server that a test may break.
func own(t *testing.T, settings map[string]string) *pgtest.Server {
	t.Helper()
	pg, err := pgtest.Start(t.Context(), pgtest.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pg.Close() })
	return pg
}

// shop is a service's outbox with a reader and what was told.
type shop struct {
	t      *testing.T
	url    string
	schema string
	db     *sql.DB
	source *postgres.Outbox

	mu      sync.Mutex
	reports []wal.Report
	rounds  []outbox.Report
}

// open makes an empty outbox in a schema of its own on a server.
func open(t *testing.T, pg *pgtest.Server) *shop {
	t.Helper()
	schema := fmt.Sprint("shop", server.schemas.Add(1))
	if err := pg.Exec(t.Context(), "postgres", "create schema "+schema); err != nil {
		t.Fatal(err)
	}
	return openURL(t, pg.URL("postgres")+"&search_path="+schema, schema)
}

func openURL(t *testing.T, url, schema string) *shop {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, url: url, schema: schema, db: stdlib.OpenDB(*config)}
	t.Cleanup(func() { s.db.Close() })
	if _, err := s.db.Exec(postgres.Schema); err != nil {
		t.Fatal(err)
	}
	s.source = postgres.New(s.db)
	return s
}

// quick is a config whose looks and pauses are short enough for a test.
func (s *shop) quick() wal.Config {
	config, err := pgx.ParseConfig(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	return wal.Config{
		Connect: &config.Config, DB: s.db, Watch: 50 * time.Millisecond,
		PauseFirst: 20 * time.Millisecond, PauseMost: 50 * time.Millisecond,
		Observe: func(r wal.Report) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reports = append(s.reports, r)
		},
	}
}

// read runs a reader until the test ends.
func (s *shop) read(cfg wal.Config) *wal.Reader {
	s.t.Helper()
	r, err := wal.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.begin(r.Run)
	return r
}

// begin runs something until the test ends.
func (s *shop) begin(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("it ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// relay runs a relay beside the reader. It polls so seldom that what arrives in a
// test came through the log, or because the reader said that it must poll.
func (s *shop) relay(feed outbox.Feed, sink outbox.Sink, change func(*outbox.RelayConfig)) (stop func()) {
	s.t.Helper()
	cfg := outbox.RelayConfig{
		Source: s.source, Fleet: s.source, Sink: sink, Feed: feed, PollMost: time.Hour, Lease: 30 * time.Second,
		PauseFirst: 10 * time.Millisecond, Circuit: 50 * time.Millisecond,
		Observe: func(r outbox.Report) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.rounds = append(s.rounds, r)
		},
	}
	if change != nil {
		change(&cfg)
	}
	r, err := outbox.NewRelay(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.begin(r.Run)
}

// told tells whether the reader reported something like that since the n-th report.
func (s *shop) told(like func(wal.Report) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reports, like)
}

// fed counts messages that were claimed because the log told of them.
func (s *shop) fed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rounds {
		n += s.rounds[i].Fed
	}
	return n
}

// forget drops the reports so far.
func (s *shop) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports, s.rounds = nil, nil
}

// streams waits for a slot that is read.
func (s *shop) streams() {
	s.t.Helper()
	s.until("the log is read", func() bool {
		return s.told(func(r wal.Report) bool { return r.State == wal.Streaming })
	})
}

// until looks at a condition until it holds.
func (s *shop) until(what string, holds func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 12_000 {
		if holds() {
			return
		}
		<-tick.C
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("it never came that %s; the last report: %+v", what, s.reports[max(0, len(s.reports)-3):])
}

// order returns the n-th message of a test.
func order(n int, aggregate string) outbox.Message {
	return outbox.Message{
		ID: fmt.Sprintf("01890000-0000-7000-8000-%012d", n), AggregateType: "Order", AggregateID: aggregate,
		Type: "order.placed", Payload: fmt.Appendf(nil, `{"n":%d}`, n), CreatedAt: time.Now(),
	}
}

// put writes messages in one transaction.
func (s *shop) put(msgs ...outbox.Message) {
	s.t.Helper()
	if err := s.tryPut(msgs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryPut(msgs ...outbox.Message) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := postgres.InsertSQL(context.Background(), tx, msgs...); err != nil {
		return err
	}
	return tx.Commit()
}

// text asks the database for one text.
func (s *shop) text(query string, args ...any) (text string) {
	s.t.Helper()
	if err := s.db.QueryRow(query, args...).Scan(&text); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// exec runs a statement.
func (s *shop) exec(query string) {
	s.t.Helper()
	if _, err := s.db.Exec(query); err != nil {
		s.t.Fatal(err)
	}
}

var errDown = errors.New("the broker is down")

// recorder is a destination that remembers what it took.
type recorder struct {
	mu    sync.Mutex
	msgs  []outbox.Message
	down  bool
	block chan struct{} // if set, an answer waits until it is closed
}

// Publish implements outbox.Sink.
func (s *recorder) Publish(ctx context.Context, msgs []outbox.Message) []error {
	s.mu.Lock()
	block, down := s.block, s.down
	s.mu.Unlock()
	results := make([]error, len(msgs))
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			down = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range msgs {
		if down {
			results[i] = errDown
			continue
		}
		s.msgs = append(s.msgs, msgs[i])
	}
	return results
}

func (s *recorder) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// count is how many messages arrived.
func (s *recorder) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.msgs)
}

// distinct is how many different messages arrived. That they came in order is
// checked on the way: repeats apart, the numbers of a key only grow.
func (s *recorder) distinct(t *testing.T) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, last := map[string]bool{}, map[outbox.Key]int64{}
	for _, m := range s.msgs {
		if seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		if m.Seq == 0 {
			continue
		}
		if m.Seq != last[m.Key()]+1 {
			t.Fatalf("%v: number %d came after %d", m.Key(), m.Seq, last[m.Key()])
		}
		last[m.Key()] = m.Seq
	}
	return len(seen)
}

// like tells whether an error says something.
func like(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }
