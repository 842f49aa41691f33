package outbox_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/outbox/postgres"
)

// opened begins a transaction and writes messages in it.
func (d dialect) opened(t *testing.T, db *sql.DB, msgs ...outbox.Message) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if err := d.insert(t.Context(), tx, msgs...); err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestATransactionThatCommitsLateIsNeverSkipped(t *testing.T) { // O-1, O-5
	eachServer(t, func(t *testing.T, d dialect) {
		db, _ := d.empty(t)
		w := newWorld(t, d.fixture(db), nil)
		late := d.opened(t, db, order(1, "a"), order(2, "b")) // the smallest ids and the earliest time
		for n := range 30 {
			m := order(10+n, "c")
			m.CreatedAt = begin.Add(time.Duration(n) * time.Minute)
			w.now = m.CreatedAt.Add(time.Second)
			w.put(t, m)
			w.drain(t)
		}
		if len(w.got) != 30 {
			t.Fatalf("%d delivered while a transaction is open", len(w.got))
		}
		w.pass(t, 30*time.Hour, time.Hour) // longer than delivered messages are kept
		if err := late.Commit(); err != nil {
			t.Fatal(err)
		}
		w.drain(t)
		if got := w.taken(); !strings.HasSuffix(got, "a/1 b/1") {
			t.Errorf("got %q at the end", got[max(0, len(got)-30):])
		}
	})
}

func TestNumbersFollowTheOrderOfCommits(t *testing.T) { // O-2
	eachServer(t, func(t *testing.T, d dialect) {
		for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
			t.Run(name, func(t *testing.T) {
				db, _ := d.empty(t)
				first := d.opened(t, db, order(1, "a"))
				done := make(chan error, 1)
				go func() { done <- d.inserter(db)(order(2, "a"), order(3, "b")) }()
				until(t, "the second waits for the first", func() bool {
					n, err := d.waiting(db)
					if err != nil {
						t.Fatal(err)
					}
					return n == 1
				})
				if err := end(first); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"commit": "a/1 a/2 b/1", "rollback": "a/1 b/1"}[name] // and no gap
				wantNames(t, d.fixture(db).claim(t, begin, 10), want)
			})
		}
	})
}

func TestWritersOfManyAggregatesDoNotBlockEachOther(t *testing.T) {
	eachServer(t, func(t *testing.T, d dialect) {
		db, _ := d.empty(t)
		insert := d.inserter(db)
		var writers sync.WaitGroup
		for w := range 2 {
			writers.Go(func() {
				for n := range 60 {
					a, b := order(w*1000+2*n, "a"), order(w*1000+2*n+1, "b")
					if w == 1 {
						a, b = b, a
					}
					if err := insert(a, b); err != nil { // a deadlock would be an error
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		var last string
		if err := db.QueryRow(`select concat(a.aggregateid, a.seq, ' ', b.aggregateid, b.seq) from aggregate_head a, aggregate_head b
			where a.aggregateid < b.aggregateid`).Scan(&last); err != nil || last != "a120 b120" {
			t.Errorf("heads %s, %v", last, err)
		}
	})
}

func TestARelayGoesOnAfterItsDatabaseCrashed(t *testing.T) { // O7
	eachServer(t, func(t *testing.T, d dialect) {
		var db *sql.DB
		crash, resume := func() error { return server.pg.Crash() }, func() error { return server.pg.Resume(t.Context()) }
		if d == dialectPostgres {
			db = openPostgres(t, durableURL(t))
		} else {
			db, _ = d.empty(t)
			crash, resume = maria.server.Crash, func() error { return maria.server.Resume(t.Context()) }
		}
		survivesACrash(t, d, db, crash, resume)
	})
}

func survivesACrash(t *testing.T, d dialect, db *sql.DB, crash, resume func() error) {
	src := d.source(db)
	dest := &log{count: map[string]int{}}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: src, Fleet: src.(outbox.Fleet), Sink: dest.sink("r"), PollMost: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := relay.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	insert := d.inserter(db)
	if err := insert(written(1, "a")); err != nil {
		t.Fatal(err)
	}
	until(t, "the first is delivered", func() bool { return dest.len() == 1 })
	if err := crash(); err != nil {
		t.Fatal(err)
	}
	if err := resume(); err != nil {
		t.Fatal(err)
	}
	until(t, "the service writes again", func() bool { return insert(written(2, "a")) == nil })
	until(t, "the second is delivered", func() bool {
		dest.mu.Lock()
		defer dest.mu.Unlock()
		return dest.got[len(dest.got)-1].ID == id(2)
	})
	cancel()
	running.Wait()
	// The mark of the first may have been lost with the server: then it came again.
	for i, m := range dest.got[:len(dest.got)-1] {
		if m.ID != id(1) || i > 1 {
			t.Errorf("%s came as number %d of %d", m.ID, i, len(dest.got))
		}
	}
	if last := dest.got[len(dest.got)-1]; last.Seq != 2 {
		t.Errorf("got %+v", last)
	}
}

func TestTheTablesKnowNoTransactionIds(t *testing.T) { // O-4
	for _, word := range []string{"xid", "xmin", "snapshot", "lsn"} {
		if strings.Contains(postgres.Schema, word) || strings.Contains(mysql.Schema, word) {
			t.Errorf("%s means nothing in another cluster", word)
		}
	}
}
