package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// warehouse is a service on PostgreSQL with nothing of ringi but an outbox.
func (w *desk) warehouse(settings map[string]string) (db *sql.DB, write func(rounds int)) {
	w.t.Helper()
	pg, err := pgtest.Start(w.t.Context(), pgtest.Config{Settings: settings})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.env["RINGI_DATABASE"] = pg.URL("postgres")
	if db, err = sql.Open("pgx", pg.URL("postgres")); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = db.Close() })
	schema := w.run("outbox", "schema")
	if _, err := db.Exec(schema.out); err != nil {
		w.t.Fatal(err)
	}
	n := 0
	return db, func(rounds int) {
		w.t.Helper()
		unit := outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: db, Insert: relay.Postgres.Insert}}
		for range rounds {
			var msgs []outbox.Message
			for order := range 100 { // of every partition some
				msgs = append(msgs, placed(fmt.Sprint("o", order), n))
				n++
			}
			if err := errors.Join(unit.Add(w.t.Context(), msgs...), unit.Do(w.t.Context(), func(context.Context, *sql.Tx) error { return nil })); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// O8, O-16: three relays as processes of their own on the 64 partitions of one
// destination; one of them is stopped past its lease and woken.
func TestThreeRelaysShareTheWorkAndOneThatSleptSpoilsNothing(t *testing.T) {
	w := newDesk(t)
	db, write := w.warehouse(nil)
	const batch = 10
	var relays []process
	for _, name := range []string{"r0", "r1", "r2"} {
		relays = append(relays, w.process("relay", "--outbox", "file:"+name, "--outbox-lease", "2s", "--outbox-batch", fmt.Sprint(batch), "--outbox-poll", "20ms"))
	}
	sent := func(n int) int { return len(w.events(fmt.Sprint("r", n))) }
	empty := func() bool { return len(stored(t, db, "state < 2")) == 0 }
	eventually(t, "a share for each", func() bool {
		var shares int
		err := db.QueryRow(`select count(distinct owner) from outbox_partition where lease_end > now()`).Scan(&shares)
		return err == nil && shares == len(relays)
	})
	write(3)
	eventually(t, "deliveries by each", func() bool { return sent(0) > 0 && sent(1) > 0 && sent(2) > 0 && empty() })

	if err := relays[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	standStill(t, relays[0].Process.Pid)
	slept := sent(0)
	write(5)
	eventually(t, "the others take over", empty)
	if n := sent(0); n > slept+batch { // what the system wrote for it after the signal
		t.Errorf("the stopped relay sent %d", n-slept)
	}
	if err := relays[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	woken := sent(0)
	eventually(t, "work for the one that woke", func() bool { write(1); return sent(0) > woken+batch })
	eventually(t, "the end of the backlog", empty)
	for n, p := range relays {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != cli.ExitOK {
			t.Errorf("relay %d exits with %d: %s", n, code, p.err)
		}
	}
	w.sharedWell(db, 2*batch) // one published, and one whose marks were being written
}

// sharedWell checks what three relays wrote: every message, hardly any twice, and
// by each relay in the order of its order.
func (w *desk) sharedWell(db *sql.DB, repeats int) {
	w.t.Helper()
	total, seen := 0, map[string]bool{}
	for n := range 3 {
		list := w.events(fmt.Sprint("r", n))
		total += len(list)
		last := map[string]string{}
		for _, e := range list {
			if !seen[e.ID] && e.Sequence <= last[e.Subject] {
				w.t.Errorf("relay %d: %s number %s came after %s", n, e.Subject, e.Sequence, last[e.Subject])
			}
			seen[e.ID], last[e.Subject] = true, max(e.Sequence, last[e.Subject])
		}
	}
	ids := stored(w.t, db, "state = 2")
	for _, id := range ids {
		if !seen[id] {
			w.t.Errorf("message %s is lost", id)
		}
	}
	if len(seen) != len(ids) || total > len(ids)+repeats {
		w.t.Errorf("%d events under %d ids for %d messages: more repeats than the batches of the stopped process", total, len(seen), len(ids))
	}
	if left := stored(w.t, db, "state <> 2"); len(left) > 0 {
		w.t.Error("not delivered: " + strings.Join(left, " "))
	}
}
