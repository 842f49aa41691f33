package outbox_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// Another writer may put into a row what no message can hold.
func TestARowThatCannotBeSentStopsNoOtherAndIsShown(t *testing.T) { // O-19, O-23
	pg, lite := openPostgres(t, postgresURL(t)), openSQLite(t, filepath.Join(t.TempDir(), "o.db"))
	my, _ := dialectMySQL.empty(t)
	for name, odd := range map[string]struct {
		db    *sql.DB
		make  func(*sql.DB) fixture
		write string
	}{
		"infinity":                  {pg, pgFixture, `update outbox set created_at = 'infinity' `},
		"before all":                {pg, pgFixture, `update outbox set created_at = '-infinity', next_at = '-infinity' `},
		"before Christ":             {pg, pgFixture, `update outbox set created_at = '0044-03-15 BC' `},
		"the year 200,000":          {pg, pgFixture, `update outbox set created_at = '200000-01-01' `},
		"the last number of MySQL":  {my, mysqlFixture, `update outbox set created_at = 9223372036854775807 `},
		"the first number of MySQL": {my, mysqlFixture, `update outbox set created_at = -9223372036854775807, next_at = -9223372036854775807 `},
		"the last number":           {lite, sqliteFixture, `update outbox set created_at = 9223372036854775807 `},
		"the first number":          {lite, sqliteFixture, `update outbox set created_at = -9223372036854775807, next_at = -9223372036854775807 `},
		"in the year 10,000":        {lite, sqliteFixture, `update outbox set created_at = 253402300800000000 `},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := odd.db.Exec(`delete from outbox`); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, odd.make(odd.db), func(c *outbox.RelayConfig) { c.Attempts = 2 })
			m := order(1, "odd")
			w.put(t, m, order(2, "odd"), order(3, "good"))
			if _, err := odd.db.Exec(odd.write + `where id = '` + m.ID + `'`); err != nil {
				t.Fatal(err)
			}
			w.drain(t)
			if got := w.taken(); !strings.HasPrefix(got, "good/") || strings.Contains(got, " ") {
				t.Errorf("delivered %s", got)
			}
			if st := w.stats(t); st.Failing != 1 {
				t.Errorf("%+v", st)
			}
			if _, err := w.Source.(outbox.Desk).Backlog(t.Context()); err != nil {
				t.Error(err)
			}
			w.pass(t, 5*outbox.DefaultPauseFirst, outbox.DefaultPauseFirst)
			e := w.entry(t, m.ID)
			if e.State != outbox.Dead || !strings.Contains(e.LastError, "created_at") || !e.CreatedAt.IsZero() {
				t.Errorf("the odd one: %s, %q, %v", e.State, e.LastError, e.CreatedAt)
			}
			if w.stats(t) != (outbox.Stats{Dead: 1}) || len(w.got) != 2 {
				t.Errorf("%+v, delivered %s", w.stats(t), w.taken())
			}
		})
	}
}

func pgFixture(db *sql.DB) fixture { return fixture{postgres.New(db), insertPostgres(db)} }

func sqliteFixture(db *sql.DB) fixture { return fixture{sqlite.New(db), insertInto(db)} }
