package wal_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/wal"
)

// O6, O8: what is committed is delivered because the log told of it, in the order of
// each key, and not because somebody polled.
func TestMessagesArriveThroughTheLog(t *testing.T) {
	s, sink := open(t, shared(t)), &recorder{}
	s.put(order(0, "before")) // found by the first poll
	s.relay(s.read(s.quick()), sink, nil)
	s.streams()
	s.until("the message of before is there", func() bool { return sink.count() == 1 })
	const n = 200
	for i := 1; i <= n; i += 2 {
		m := order(i+1, fmt.Sprint("k", i%7))
		m.Unordered = i%3 == 0
		s.put(order(i, fmt.Sprint("k", i%7)), m)
	}
	s.until("all are there", func() bool { return sink.count() >= n+1 })
	if got := sink.distinct(t); got != n+1 || sink.count() != n+1 {
		t.Errorf("%d messages, %d different, want %d", sink.count(), got, n+1)
	}
	s.until("they are counted as told by the log", func() bool { return s.fed() >= n*9/10 })
}

// What is rolled back is told to nobody.
func TestARollbackIsNotDelivered(t *testing.T) { // O1
	s, sink := open(t, shared(t)), &recorder{}
	s.relay(s.read(s.quick()), sink, nil)
	s.streams()
	tx, err := s.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.InsertSQL(t.Context(), tx, order(1, "a")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.put(order(2, "a"))
	s.until("the second is there", func() bool { return sink.count() > 0 })
	if got := sink.msgs[0].ID; got != order(2, "a").ID {
		t.Errorf("%s arrived", got)
	}
}

// O-2: of two transactions of one key the one that commits first is first, also if it
// began later; a transaction of another key that stays open holds nobody up.
func TestTheOrderIsThatOfTheCommits(t *testing.T) {
	s, sink := open(t, shared(t)), &recorder{}
	s.relay(s.read(s.quick()), sink, nil)
	s.streams()
	early, err := s.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer early.Rollback()
	if err := postgres.InsertSQL(t.Context(), early, order(1, "other")); err != nil {
		t.Fatal(err)
	}
	s.put(order(3, "a"))
	s.put(order(2, "a"))
	s.until("both are there", func() bool { return sink.count() == 2 })
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	s.until("the early one is there", func() bool { return sink.count() == 3 })
	for i, want := range []int{3, 2, 1} {
		if got := sink.msgs[i].ID; got != order(want, "").ID {
			t.Errorf("at %d came %s, want %d", i, got, want)
		}
	}
}

// Only who has the partition is told; all relays together deliver all, once.
func TestRelaysOfAFleetShareTheLog(t *testing.T) {
	s, sink := open(t, shared(t)), &recorder{}
	reader := s.read(s.quick())
	other := s.read(s.quick()) // another process has a slot of its own
	short := func(c *outbox.RelayConfig) { c.Lease = time.Second; c.PollMost = 100 * time.Millisecond }
	s.relay(reader, sink, short)
	s.relay(reader, sink, short)
	stop := s.relay(other, sink, short)
	s.streams()
	const n = 300
	for i := range n {
		if i == n/2 {
			stop() // its partitions change hands in the middle
		}
		s.put(order(i+1, fmt.Sprint("k", i%40)))
	}
	s.until("all are there", func() bool { return sink.count() >= n })
	if got := sink.distinct(t); got != n {
		t.Errorf("%d different messages, want %d", got, n)
	}
}

// slot is the slot that is read.
func (s *shop) slot() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.reports) - 1; i >= 0; i-- {
		if s.reports[i].State == wal.Streaming {
			return s.reports[i].Slot
		}
	}
	return ""
}

// The log is confirmed only up to what a broker has acknowledged.
func TestNothingIsConfirmedThatNoBrokerHas(t *testing.T) { // O-11
	s := open(t, own(t, logical()))
	sink := &recorder{block: make(chan struct{})}
	s.relay(s.read(s.quick()), sink, nil)
	s.streams()
	before := s.text(`select pg_current_wal_lsn()::text`)
	s.put(order(1, "a"))
	s.exec(`create table other (n int); insert into other select generate_series(1, 1000)`)
	s.until("the reader has read on", func() bool {
		return s.text(`select count(*)::text from pg_stat_replication where sent_lsn > $1::pg_lsn and write_lsn > $1::pg_lsn`, before) == "1"
	})
	const confirmed = `select (confirmed_flush_lsn > pg_current_wal_lsn() - 1000::numeric)::text from pg_replication_slots where slot_name = $1`
	passed := func() bool { return s.text(confirmed, s.slot()) == "true" }
	if s.text(`select (confirmed_flush_lsn < (select pg_current_wal_lsn()))::text from pg_replication_slots where slot_name = $1`, s.slot()) != "true" || passed() {
		t.Error("more is confirmed than was acknowledged")
	}
	close(sink.block)
	s.until("what was acknowledged is confirmed", passed)
}

// An idle outbox holds no log while others write: keepalives are answered with where
// the server is, and heartbeats move the slot on.
func TestAnIdleTableHoldsNoLog(t *testing.T) { // O-31
	s := open(t, own(t, logical()))
	s.read(s.quick())
	s.streams()
	s.exec(`create table other (fill text)`)
	for range 5 {
		s.exec(`insert into other select repeat('x', 1000) from generate_series(1, 2000)`)
		s.exec(`checkpoint`) // the server notes what runs, from which a slot can begin
	}
	s.until("the slot holds next to nothing", func() bool {
		return s.told(func(r wal.Report) bool { return r.State == wal.Streaming && r.Retained > 0 }) &&
			s.text(`select (pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) < 200000)::text from pg_replication_slots`) == "true"
	})
}

// Whatever the server lacks is said with what to do about it, and polling goes on.
func TestWhatIsMissingIsSaid(t *testing.T) {
	replica := own(t, map[string]string{"wal_level": "replica"})
	s := open(t, replica)
	s.says(s.quick(), "ALTER SYSTEM SET wal_level = logical")

	s = open(t, shared(t))
	s.exec(`do $$ begin create role plain login; exception when duplicate_object then end $$`)
	s.exec(`grant usage on schema ` + s.schema + ` to plain`)
	cfg := s.quick()
	cfg.Connect.User = "plain"
	s.says(cfg, "REPLICATION")

	s = open(t, shared(t))
	s.exec(`grant usage on schema ` + s.schema + ` to plain`)
	cfg = s.quick()
	cfg.DB = s.as("plain")
	s.says(cfg, "CREATE PUBLICATION")

	full := logical()
	full["max_replication_slots"] = "1"
	s = open(t, own(t, full))
	s.read(s.quick())
	s.streams()
	s.says(s.quick(), "max_replication_slots")

	few := logical()
	few["max_wal_senders"] = "0"
	s = open(t, own(t, few))
	s.says(s.quick(), "max_wal_senders")

	s = open(t, shared(t))
	s.exec(`drop table outbox`)
	s.says(s.quick(), "ringi outbox schema --apply")
}

// as opens the database for another role.
func (s *shop) as(role string) *sql.DB {
	s.t.Helper()
	cfg := s.quick().Connect
	db, err := sql.Open("pgx", fmt.Sprintf("postgres://%s@%s:%d/%s?sslmode=disable&search_path=%s", role, cfg.Host, cfg.Port, cfg.Database, s.schema))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	return db
}

// says runs a reader until it says something, beside a relay that polls.
func (s *shop) says(cfg wal.Config, part string) {
	s.t.Helper()
	s.forget()
	r, err := wal.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	stop := s.begin(r.Run)
	s.until("it says "+part, func() bool {
		return s.told(func(r wal.Report) bool { return r.State == wal.Polling && like(r.Err, part) })
	})
	stop()
}

// A reader needs the database twice.
func TestAReaderWithoutADatabaseIsRefused(t *testing.T) {
	if _, err := wal.New(wal.Config{}); err == nil {
		t.Error("it was made")
	}
}

// The connection that the log comes through may break at any time.
func TestMessagesArriveAfterTheConnectionWasEnded(t *testing.T) {
	s, sink := open(t, shared(t)), &recorder{}
	s.relay(s.read(s.quick()), sink, nil)
	for i := range 3 {
		s.streams()
		s.put(order(3*i+1, "a"))
		slot := s.slot()
		s.forget()
		s.exec(`select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '` + slot + `'`)
		s.put(order(3*i+2, "a")) // committed while nobody listens
		s.streams()
		s.put(order(3*i+3, "a"))
	}
	s.until("all are there", func() bool { return sink.count() >= 9 })
	if got := sink.distinct(t); got != 9 {
		t.Errorf("%d different messages, want 9", got)
	}
	if left := s.text(`select count(*)::text from pg_replication_slots where slot_name like 'ringi_outbox_%' and not active`); left != "0" {
		t.Errorf("%s slots were left behind", left)
	}
}
