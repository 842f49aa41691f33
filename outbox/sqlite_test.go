package outbox_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

func TestALockedDatabaseIsAnErrorAndNotTheEnd(t *testing.T) { // O7
	path := filepath.Join(t.TempDir(), "outbox.db")
	other := openSQLite(t, path)
	other.SetMaxOpenConns(1)
	db := openSQLite(t, path, "busy_timeout(1)")
	db.SetMaxOpenConns(1)
	f := fixture{Source: outbox.NewSQLite(db), insert: insertInto(db)}
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
	got := fixture{Source: outbox.NewSQLite(db)}.claim(t, begin, 10)
	if len(got) != 1 || !got[0].Unordered || !maps.Equal(got[0].Headers, map[string]string{"a": "b", "n": "[1, 2]"}) {
		t.Errorf("got %+v", got)
	}
}
