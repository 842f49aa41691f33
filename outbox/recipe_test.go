package outbox_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// recipe returns the statements that docs/outbox.md gives for a database.
func recipe(t *testing.T, database string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/outbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```sql\n-- "+database+"\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/outbox.md has no statements for %s", database)
	}
	statements := strings.Split(strings.TrimSpace(block), ";\n")
	return slices.DeleteFunc(statements, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// follow runs the statements with the six parameters of the recipe.
func follow(tx *sql.Tx, statements []string, params ...any) error {
	for i, s := range statements {
		if !strings.Contains(s, "$2") && !strings.Contains(s, "?2") { // in order, as MySQL has them
			var its []any
			for _, n := range [][]int{{1, 2}, {0, 3, 4, 5, 1, 2}}[i] {
				its = append(its, params[n])
			}
			if _, err := tx.Exec(s, its...); err != nil {
				return err
			}
			continue
		}
		most := 0
		for n := range params {
			if strings.Contains(s, fmt.Sprintf("$%d", n+1)) || strings.Contains(s, fmt.Sprintf("?%d", n+1)) {
				most = n + 1
			}
		}
		if _, err := tx.Exec(s, params[:most]...); err != nil {
			return err
		}
	}
	return nil
}

// The SQL of the documentation is run as it stands there.
func TestTheStatementsOfTheDocumentationWriteInOrderBesideTheLibrary(t *testing.T) { // O1, O2, O-2
	pg, lite := openPostgres(t, postgresURL(t)), openSQLite(t, filepath.Join(t.TempDir(), "o.db"))
	my, _ := dialectMySQL.empty(t)
	for database, its := range map[string]struct {
		db *sql.DB
		f  fixture
	}{"PostgreSQL": {pg, pgFixture(pg)}, "SQLite": {lite, sqliteFixture(lite)}, "MariaDB and MySQL": {my, mysqlFixture(my)}} {
		t.Run(database, func(t *testing.T) {
			statements, n := recipe(t, database), 0
			var want []string
			write := func(tx *sql.Tx, aggregate string) {
				t.Helper()
				n++
				want = append(want, id(n))
				if err := follow(tx, statements, id(n), "Order", aggregate, "order.placed", []byte(`{"n":1}`), "application/json"); err != nil {
					t.Fatal(err)
				}
			}
			begun := time.Now()
			for range 3 {
				tx, err := its.db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				write(tx, "a")
				write(tx, "a")
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				n++
				m := order(n, "a") // by the library
				m.Tenant = 0
				its.f.put(t, m)
				want = append(want, m.ID)
			}
			undone, err := its.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			write(undone, "a")
			if err := undone.Rollback(); err != nil {
				t.Fatal(err)
			}
			want = want[:len(want)-1]
			w := newWorld(t, its.f, nil)
			w.now = time.Now().Add(time.Second)
			w.drain(t)
			var got []string
			for i, m := range w.got {
				got = append(got, m.ID)
				if m.Seq != int64(i+1) || m.Type != "order.placed" || string(m.Payload) != `{"n":1}` || m.ContentType != "application/json" {
					t.Errorf("got %+v", m)
				}
				if off := m.CreatedAt.Sub(begun); m.CreatedAt != begin && (off < -time.Second || off > time.Minute) {
					t.Errorf("message %d was written at %v", i, m.CreatedAt)
				}
			}
			if !slices.Equal(got, want) || w.stats(t) != (outbox.Stats{}) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Two transactions on one aggregate that commit in the other order than they began.
func TestTheStatementsOfTheDocumentationHoldTheLockToTheCommit(t *testing.T) { // O-1, O-2
	eachServer(t, func(t *testing.T, d dialect) {
		db, _ := d.empty(t)
		holdsTheLock(t, d, db, recipe(t, map[dialect]string{dialectPostgres: "PostgreSQL", dialectMySQL: "MariaDB and MySQL"}[d]))
	})
}

func holdsTheLock(t *testing.T, d dialect, db *sql.DB, statements []string) {
	begin := func() *sql.Tx {
		t.Helper()
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	write := func(tx *sql.Tx, n int) error {
		return follow(tx, statements, id(n), "Order", "a", "order.placed", []byte("{}"), "")
	}
	early, late := begin(), begin()
	if _, err := early.Exec("select 1"); err != nil {
		t.Fatal(err)
	}
	if err := write(late, 1); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := write(early, 2) // waits for the other's commit
		if err == nil {
			err = early.Commit()
		}
		done <- err
	}()
	until(t, "the second writer waits", func() bool {
		waiting, err := d.waiting(db)
		return err == nil && waiting > 0
	})
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, d.fixture(db), nil)
	w.now = time.Now().Add(time.Second)
	w.drain(t)
	if len(w.got) != 2 || w.got[0].ID != id(1) || w.got[0].Seq != 1 || w.got[1].Seq != 2 {
		t.Errorf("got %+v", w.got)
	}
}
