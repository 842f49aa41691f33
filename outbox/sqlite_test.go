package outbox_test

import (
	"bytes"
	"database/sql"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

func TestALockedDatabaseIsAnErrorAndNotTheEnd(t *testing.T) { // O7
	path := filepath.Join(t.TempDir(), "outbox.db")
	other := openSQLite(t, path)
	other.SetMaxOpenConns(1)
	db := openSQLite(t, path, "busy_timeout(1)")
	db.SetMaxOpenConns(1)
	f := fixture{Source: sqlite.New(db), insert: insertInto(db)}
	f.put(t, order(1, "a"))
	if _, err := other.Exec(`begin immediate`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := f.Claim(t.Context(), outbox.Claim{Now: begin, Lease: time.Minute, Limit: 1}); err == nil {
			t.Fatal("claimed while another writer holds the lock")
		}
	}
	if _, err := other.Exec(`rollback`); err != nil {
		t.Fatal(err)
	}
	got := f.claim(t, begin, 1)
	wantNames(t, got, "a/1")
	if got[0].Attempt != 1 {
		t.Errorf("attempt %d: claims that failed were counted", got[0].Attempt)
	}
}

func TestARowFromAnotherWriterIsDelivered(t *testing.T) { // O3
	db := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
	const row = `insert into outbox (id, tenant, aggregatetype, aggregateid, type, payload, headers, seq, next_at, created_at) values `
	if _, err := db.Exec(row + `('x', 3, 'Order', 'o', 't', x'7b7d', '{"a":"b","n":[1, 2]}', 0, 0, 0)`); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]string{
		"a negative tenant":         `('y', -1, 'Order', 'o', 't', x'', '{}', 0, 0, 0)`,
		"a negative number":         `('y', 1, 'Order', 'o', 't', x'', '{}', -1, 0, 0)`,
		"headers that are no map":   `('y', 1, 'Order', 'o', 't', x'', '[]', 0, 0, 0)`,
		"headers that are not JSON": `('y', 1, 'Order', 'o', 't', x'', 'a: b', 0, 0, 0)`,
	} {
		if _, err := db.Exec(row + values); err == nil {
			t.Errorf("%s: a row that no claim could read is accepted", name)
		}
	}
	// SQLite takes for JSON what others do not; one such row must not stop the rest.
	if _, err := db.Exec(row + `('z', 4, 'Order', 'o', 't', x'', '{a: ''b'', n: 0x1F,}', 0, 0, 0)`); err != nil {
		t.Fatal(err)
	}
	f := fixture{Source: sqlite.New(db)}
	if list, err := f.Source.(outbox.Desk).List(t.Context(), outbox.Filter{}); err != nil || len(list) != 2 {
		t.Errorf("listed %+v, %v", list, err)
	}
	got := f.claim(t, begin, 10)
	if len(got) != 2 || !maps.Equal(got[1].Headers, map[string]string{"a": "b", "n": "31"}) || !got[0].Unordered || !maps.Equal(got[0].Headers, map[string]string{"a": "b", "n": "[1, 2]"}) {
		t.Fatalf("got %+v", got)
	}
	if !f.mark(t, begin, got[0], outbox.MarkDelivered, begin) {
		t.Error("its delivery is not marked")
	}
}

// No insert of this package takes five megabytes; another writer's may.
func TestARowOfFiveMegabytesHarmsOnlyItself(t *testing.T) { // O-23
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	const row = `insert into outbox (id, tenant, aggregatetype, aggregateid, type, payload, next_at, created_at) values `
	lite := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
	pg := openPostgres(t, postgresURL(t))
	for name, p := range map[string]struct {
		fixture
		write func() (sql.Result, error)
	}{
		"sqlite": {fixture{sqlite.New(lite), insertInto(lite)}, func() (sql.Result, error) {
			return lite.Exec(row+`(?, 0, 'Order', 'large', 'order.placed', ?, 0, 0)`, id(9), large)
		}},
		"postgres": {fixture{postgres.New(pg), insertPostgres(pg)}, func() (sql.Result, error) {
			return pg.Exec(row+`($1, 0, 'Order', 'large', 'order.placed', $2, 'epoch', 'epoch')`, id(9), large)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := p.write(); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, p.fixture, func(c *outbox.RelayConfig) { c.Attempts = 3 })
			w.answer = func(m outbox.Message) error {
				if len(m.Payload) > 1<<20 {
					return errBad
				}
				return nil
			}
			w.put(t, order(1, "a"), order(2, "b"), order(3, "large"))
			w.pass(t, 2*time.Minute, time.Second)
			if st := w.stats(t); len(w.got) != 3 || st.Dead != 1 || st.Pending != 0 {
				t.Errorf("%d delivered, %+v", len(w.got), st)
			}
			w.answer = nil
			if n, err := p.Source.(outbox.Desk).Retry(t.Context(), w.now, outbox.Filter{}); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			w.drain(t)
			if last := w.got[len(w.got)-1]; last.ID != id(9) || !bytes.Equal(last.Payload, large) {
				t.Errorf("%s came last, with %d bytes", last.ID, len(last.Payload))
			}
		})
	}
}
