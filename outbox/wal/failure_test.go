package wal_test

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// polls makes a relay poll often, as one outside of tests does.
func polls(c *outbox.RelayConfig) { c.PollMost = 50 * time.Millisecond }

// holdLog leaves a transaction open that a slot must keep the log for.
func (s *shop) holdLog() (end func()) {
	s.t.Helper()
	s.exec(`create table if not exists held (fill text)`)
	tx, err := s.db.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := tx.Exec(`insert into held values ('x')`); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { tx.Rollback() })
	return func() {
		if err := tx.Commit(); err != nil {
			s.t.Error(err)
		}
	}
}

// fillLog writes so many megabytes.
func (s *shop) fillLog(megabytes int) {
	s.t.Helper()
	s.exec(`create table if not exists filled (fill text)`)
	for range megabytes {
		s.exec(`insert into filled select repeat('x', 1000) from generate_series(1, 1000)`)
	}
}

// looks waits until the reader has looked, or given up.
func (s *shop) looks() {
	s.t.Helper()
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.reports)
	}
	before := count()
	s.until("the reader looks", func() bool { return count() > before })
}

func polling(part string) func(wal.Report) bool {
	return func(r wal.Report) bool { return r.State == wal.Polling && like(r.Err, part) }
}

// O-31: at half of the bound the reader warns, at the whole it gives the slot up; the
// server's disk is safe, and polling delivers. Afterwards the log is read again.
func TestASlotOverItsBoundIsGivenUp(t *testing.T) {
	s, sink := open(t, own(t, logical())), &recorder{}
	cfg := s.quick()
	cfg.MostWAL = 24 << 20
	s.relay(s.read(cfg), sink, polls)
	s.streams()
	end := s.holdLog()
	for !s.told(polling("given up")) {
		s.fillLog(1)
		s.looks()
	}
	if !s.told(func(r wal.Report) bool { return r.Near && r.Retained < r.Bound }) {
		t.Error("it did not warn")
	}
	if s.told(func(r wal.Report) bool { return r.Bound > 0 && r.Retained >= r.Bound }) {
		t.Error("it held more than it may")
	}
	s.put(order(1, "a"))
	s.until("polling delivers", func() bool { return sink.count() == 1 })
	// The next slot waits for the same transaction, and may hold no more either.
	s.forget()
	s.fillLog(30)
	s.until("it is given up again", func() bool { return s.told(polling("given up")) })
	s.forget()
	end()
	s.streams()
	s.put(order(2, "a"))
	s.until("the log delivers", func() bool { return sink.count() == 2 && s.fed() > 0 })
}

// O-31: the server may end the slot by itself, under max_slot_wal_keep_size.
func TestAnInvalidatedSlotIsReplaced(t *testing.T) {
	settings := logical()
	settings["max_slot_wal_keep_size"] = "2MB"
	settings["max_wal_size"] = "4MB"
	settings["min_wal_size"] = "2MB"
	pg, err := pgtest.Start(t.Context(), pgtest.Config{Settings: settings, InitArgs: []string{"--wal-segsize=1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	s, sink := open(t, pg), &recorder{}
	cfg := s.quick()
	cfg.Watch = time.Hour // nobody looks but the server
	s.relay(s.read(cfg), sink, polls)
	s.streams()
	end := s.holdLog()
	s.put(order(1, "a"))
	s.fillLog(8)
	s.exec(`checkpoint`)
	s.until("the slot is lost", func() bool { return s.told(polling("")) })
	s.put(order(2, "a"))
	s.until("polling delivers", func() bool { return sink.count() == 2 })
	s.forget()
	end()
	s.streams()
	s.put(order(3, "a"))
	s.until("the log delivers", func() bool { return sink.count() == 3 })
	if got := sink.distinct(t); got != 3 {
		t.Errorf("%d different messages", got)
	}
}

// A slot is not there before every open transaction has ended; meanwhile polling
// does it, and who stops waiting leaves nothing behind.
func TestASlotThatWaitsStopsNothing(t *testing.T) {
	s, sink := open(t, own(t, logical())), &recorder{}
	s.holdLog()
	r, err := wal.New(s.quick())
	if err != nil {
		t.Fatal(err)
	}
	stop := s.begin(r.Run)
	s.relay(r, sink, polls)
	s.until("the server makes the slot", func() bool { return s.text(`select count(*)::text from pg_replication_slots`) == "1" })
	s.put(order(1, "a"))
	s.until("polling delivers", func() bool { return sink.count() == 1 })
	if s.told(func(r wal.Report) bool { return r.State == wal.Streaming }) {
		t.Error("it reads a slot that cannot be there")
	}
	stop()
	s.until("the slot is gone", func() bool { return s.text(`select count(*)::text from pg_replication_slots`) == "0" })
}

// O-34: one transaction with more messages than anybody remembers is delivered, in
// order, with memory that does not grow; what comes behind it too.
func TestAGiantTransactionIsLeftToPolling(t *testing.T) {
	s, sink := open(t, shared(t)), &recorder{}
	cfg := s.quick()
	cfg.Buffer = 500
	s.relay(s.read(cfg), sink, nil)
	s.streams()
	const n = 20_000
	s.exec(fmt.Sprintf(`insert into outbox (id, tenant, aggregatetype, aggregateid, type, payload, seq, next_at, created_at)
		select ('01890000-0000-7000-8001-' || lpad(to_hex(n), 12, '0'))::uuid, n %% 3, 'Bulk', 'b' || (n %% 100), 'bulk', '{}', n / 300 + 1, clock_timestamp(), clock_timestamp() from generate_series(0, %d) n`, n-1))
	s.put(order(1, "a"))
	s.until("all are there", func() bool { return sink.count() >= n+1 })
	if s.told(func(r wal.Report) bool { return r.Waiting > cfg.Buffer }) {
		t.Error("more was remembered than there is room for")
	}
	s.until("it says what was left to polling", func() bool { return s.told(func(r wal.Report) bool { return r.Overflow > 0 }) })
	if s.told(polling("")) {
		t.Error("the slot was lost")
	}
	s.until("all is confirmed", func() bool {
		return s.told(func(r wal.Report) bool { return r.State == wal.Streaming && r.Waiting == 0 && r.Retained > 0 })
	})
}

// A destination that is slow for ever holds no log: what there is no room for is left
// to polling, and so is everything while it is down.
func TestASlowDestinationHoldsNoLog(t *testing.T) {
	s := open(t, own(t, logical()))
	sink := &recorder{block: make(chan struct{})}
	cfg := s.quick()
	cfg.Buffer = 50
	s.relay(s.read(cfg), sink, func(c *outbox.RelayConfig) { c.Lease, c.Batch = 2*time.Second, 5 })
	s.streams()
	for i := range 200 {
		s.put(order(i+1, fmt.Sprint("k", i%9)))
	}
	s.until("it says what was left to polling", func() bool { return s.told(func(r wal.Report) bool { return r.Overflow > 0 }) })
	s.fillLog(3)
	s.exec(`checkpoint`)
	s.until("the log is confirmed although nothing was delivered", func() bool {
		return s.text(`select (pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) < 1000000)::text from pg_replication_slots`) == "true"
	})
	if sink.count() != 0 || s.told(polling("")) || s.told(func(r wal.Report) bool { return r.Waiting > cfg.Buffer }) {
		t.Errorf("%d were delivered; reports: %+v", sink.count(), s.reports[len(s.reports)-1])
	}
	close(sink.block)
	sink.mu.Lock()
	sink.block = nil
	sink.mu.Unlock()
	s.until("all are there", func() bool { return sink.count() >= 200 })
	if got := sink.distinct(t); got != 200 {
		t.Errorf("%d different messages", got)
	}
}

// A slot that no longer keeps up is given up, and a new one begins at the end.
func TestASlotThatFallsBehindIsReplaced(t *testing.T) {
	s, sink := open(t, own(t, logical())), &recorder{}
	cfg := s.quick()
	cfg.Behind = 500 * time.Millisecond
	s.relay(s.read(cfg), sink, polls)
	s.streams()
	s.until("heartbeats come back", func() bool {
		return s.told(func(r wal.Report) bool { return r.State == wal.Streaming && r.Retained > 0 })
	})
	pid, err := strconv.Atoi(s.text(`select active_pid::text from pg_replication_slots where slot_name = $1`, s.slot()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.until("it is told", func() bool { return s.told(polling("behind")) })
	s.put(order(1, "a"))
	s.until("polling or the next slot delivers", func() bool { return sink.count() == 1 })
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.forget()
	s.streams()
}

// O-32: a standby is promoted in the middle. Its slot is a new one; what was
// committed before and not delivered is found in the table.
func TestAPromotedStandbyIsFollowed(t *testing.T) {
	primary := own(t, logical())
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	// The standby stands first: that it takes no writes yet is found out.
	url := fmt.Sprintf("postgres://ringi@/postgres?host=127.0.0.1,127.0.0.1&port=%d,%d&sslmode=disable&target_session_attrs=read-write", standby.Port(), primary.Port())
	s, sink := openURL(t, url, "public"), &recorder{}
	s.relay(s.read(s.quick()), sink, polls)
	s.streams()
	for i := range 20 {
		s.put(order(i+1, fmt.Sprint("k", i%3)))
	}
	s.until("twenty are there", func() bool { return sink.count() == 20 })
	sink.set(true)
	for i := range 20 {
		s.put(order(i+21, fmt.Sprint("k", i%3)))
	}
	s.until("the standby has them", func() bool {
		return s.text(`select coalesce(bool_or(replay_lsn >= pg_current_wal_lsn()), false)::text from pg_stat_replication where application_name = 'walreceiver'`) == "true"
	})
	s.forget()
	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Exec(t.Context(), "postgres", "select pg_promote()"); err != nil {
		t.Fatal(err)
	}
	sink.set(false)
	s.streams()
	s.until("the new primary takes writes", func() bool { return s.tryPut(order(41, "k0")) == nil })
	s.until("all are there", func() bool { return sink.count() >= 41 })
	if got := sink.distinct(t); got != 41 {
		t.Errorf("%d different messages, want 41", got)
	}
}

// A pooler that knows no replication is told from a server.
func TestAPoolerInBetweenIsSaid(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			if _, err := backend.ReceiveStartupMessage(); err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: replication"})
				_ = backend.Flush()
			}
			conn.Close()
		}
	}()
	s := open(t, shared(t))
	cfg := s.quick()
	cfg.Connect, err = pgconn.ParseConfig(fmt.Sprintf("postgres://ringi@%s/postgres?sslmode=disable", listener.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	s.says(cfg, "pooler")
}
