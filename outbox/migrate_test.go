package outbox_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// Tables of the version before claims had a column of their own go on with every
// message: a claimed one stays with its relay until that lease ends.
func TestTablesOfAnEarlierVersionAreBroughtUpToDate(t *testing.T) {
	for _, d := range []dialect{dialectSQLite, dialectPostgres} {
		t.Run(string(d), func(t *testing.T) {
			db, source := older(t, d)
			if _, err := source.Claim(t.Context(), outbox.Claim{By: "r", Now: begin, Lease: time.Minute, Limit: 9}); err == nil {
				t.Fatal("the tables are not old")
			}
			for range 2 {
				if err := d.migrate(t.Context(), db); err != nil {
					t.Fatal(err)
				}
			}
			f := fixture{Source: source}
			if st, err := f.Stats(t.Context()); err != nil || st.Pending != 1 || st.Claimed != 1 {
				t.Errorf("%+v, %v", st, err)
			}
			wantNames(t, f.claim(t, begin, 9), "b/1")
			wantNames(t, f.claim(t, begin.Add(11*time.Second), 9), "a/1") // its lease has ended
			if n, err := source.Purge(t.Context(), begin, outbox.Filter{States: []outbox.State{outbox.Delivered}, Reason: "old"}); err != nil || n != 1 {
				t.Errorf("purged %d, %v", n, err)
			}
		})
	}
}

// older returns tables of the earlier version with a message that is claimed for
// ten seconds, one that is pending and one that was delivered.
func older(t *testing.T, d dialect) (*sql.DB, crashable) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("testdata", "schema_before_lease_end."+string(d)+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	url := filepath.Join(t.TempDir(), "old.db")
	if d == dialectPostgres {
		url = postgresURL(t)
	}
	db, err := sql.Open(d.driver(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.insert(t.Context(), tx, order(1, "a"), order(2, "b"), order(3, "c")); err != nil {
		t.Fatal(err)
	}
	var end, at any = begin.Add(10 * time.Second), begin
	if d == dialectSQLite {
		end, at = begin.Add(10*time.Second).UnixMicro(), begin.UnixMicro()
	}
	_, err = tx.Exec(`update outbox set state = 1, attempts = 1, claim_epoch = 1, claimed_by = 'old', next_at = $1 where aggregateid = 'a'`, end)
	if err == nil {
		_, err = tx.Exec(`update outbox set state = 2, delivered_at = $1 where aggregateid = 'c'`, at)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return db, d.source(db)
}

// A service that makes its tables at every start holds up nobody by it: the lock
// of an alteration is taken only where there is something to alter.
func TestTablesThatAreUpToDateAreNotAltered(t *testing.T) {
	db := openPostgres(t, postgresURL(t))
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := dialectPostgres.migrate(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	var modes []string
	rows, err := tx.Query(`select distinct mode from pg_locks where pid = pg_backend_pid() and relation = 'outbox'::regclass`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var mode string
		if err := rows.Scan(&mode); err != nil {
			t.Fatal(err)
		}
		modes = append(modes, mode)
	}
	if slices.Contains(modes, "AccessExclusiveLock") {
		t.Errorf("locks the table with %v", modes)
	}
}
