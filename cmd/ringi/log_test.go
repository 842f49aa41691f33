package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// O6, O7: relays that are told by the write-ahead log, and look for themselves so
// seldom that nothing in this test is found that way, deliver everything, also across
// kill -9 of one.
func TestRelaysFollowTheWriteAheadLog(t *testing.T) {
	w := newDesk(t)
	db, write := w.warehouse(map[string]string{"wal_level": "logical"})
	begin := func() process {
		p := w.process("relay", "--outbox", "file:r0", "--outbox-lease", "2s", "--outbox-batch", "10", "--outbox-poll", "1h", "--source", "wal")
		eventually(t, "the log is read", func() bool { return strings.Contains(p.err.String(), "the write-ahead log is read") })
		return p
	}
	empty := func() bool { return len(stored(t, db, "state < 2")) == 0 }
	write(1) // before anybody listens
	p := begin()
	write(2)
	eventually(t, "all is delivered", empty)
	write(3)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.exit() // it was killed
	write(2)
	p = begin()
	write(2)
	eventually(t, "what the killed one left, and the rest, is delivered", empty)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("it exits with %d: %s", code, p.err)
	}
	seen := map[string]bool{}
	for _, e := range w.events("r0") {
		seen[e.ID] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 messages arrived", len(seen))
	}
	var slots int
	eventually(t, "no slot is left", func() bool {
		err := db.QueryRow(`select count(*) from pg_replication_slots`).Scan(&slots)
		return err == nil && slots == 0
	})
}

// A server that is not set up for it is told once what to set, and polling delivers.
func TestARelayWithoutALogSaysSoAndPolls(t *testing.T) {
	w := newDesk(t)
	db, write := w.warehouse(nil)
	p := w.process("relay", "--outbox", "file:r0", "--source", "wal")
	eventually(t, "it says what to set", func() bool { return strings.Contains(p.err.String(), "ALTER SYSTEM SET wal_level = logical") })
	write(1)
	eventually(t, "all is delivered", func() bool { return len(stored(t, db, "state < 2")) == 0 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK || strings.Count(p.err.String(), "ALTER SYSTEM") != 1 {
		t.Errorf("it exits with %d: %s", code, p.err)
	}
}

// A server's own relay is told by the log too.
func TestAServerFollowsTheWriteAheadLog(t *testing.T) {
	w := newDesk(t)
	pg, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	w.env["RINGI_DATABASE"], w.env["RINGI_SOURCE"] = pg.URL("postgres"), "wal"
	p := w.server()
	eventually(t, "the log is read", func() bool { return strings.Contains(p.err.String(), "the write-ahead log is read") })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("it exits with %d: %s", code, p.err)
	}
}
