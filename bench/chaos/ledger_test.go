package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// O7, O8, O9: the ledger sees everything that can go wrong, each by itself.
func TestTheLedgerSeesWhatIsWrong(t *testing.T) {
	pg, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	}()
	pool, err := pgxpool.New(t.Context(), pg.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	dir, clock := t.TempDir(), time.UnixMilli(1_700_000_000_000)
	l := &ledger{pool: pool, seen: func() string { return outbox.NewID(clock) }}
	if err := l.makeTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	// Two changes of every key, which have had their effects.
	if err := l.lastWords(t.Context(), "F"); err != nil {
		t.Fatal(err)
	}
	if err := l.lastWords(t.Context(), "F"); err != nil {
		t.Fatal(err)
	}
	judged := func(what string, want Result) {
		t.Helper()
		got, err := l.judge(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.Lost != want.Lost || got.DuplicateEffects != want.DuplicateEffects || got.OutOfOrder != want.OutOfOrder || got.Stuck != want.Stuck ||
			got.UnknownCommits != want.UnknownCommits || got.UnknownCommitted != want.UnknownCommitted || got.Repeats != want.Repeats || got.Produced != 2*keys {
			t.Errorf("%s: %+v", what, got)
		}
	}
	judged("nothing has happened yet", Result{Lost: 2 * keys, Stuck: 2 * keys})
	exec(`update outbox set state = 2, delivered_at = now()`)
	judged("all is delivered and nothing received", Result{Lost: 2 * keys})
	exec(`insert into effect (id, key, n, consumer, relay) select id, key, n, 'c', 'relay-1' from change order by n, key`)
	judged("all is well", Result{})

	exec(`insert into effect (id, key, n, consumer, relay) select id, key, n, 'c', 'relay-2' from change order by n, key limit 3`)
	judged("three effects came twice", Result{DuplicateEffects: 3})
	exec(`delete from effect where relay = 'relay-2'`)

	exec(`insert into effect (id, key, n, consumer, relay) values ('01a22ed2-4653-74c5-84a4-12c044a2b97f', 'key-0', 3, 'c', 'relay-2')`)
	judged("an effect of what never was", Result{DuplicateEffects: 1})
	exec(`delete from effect where relay = 'relay-2'`)

	exec(`delete from effect where key = 'key-1'`)
	judged("the effects of a key are missing", Result{Lost: 2})
	exec(`insert into effect (id, key, n, consumer, relay) select id, key, n, 'c', 'relay-1' from change where key = 'key-1' order by n desc`)
	judged("the effects of a key are the wrong way round", Result{OutOfOrder: 1})

	var id string
	if err := pool.QueryRow(t.Context(), `select id from change limit 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	book := "committed " + id + "\ncommitted 01a22ed2-4653-74c5-84a4-12c044a2b97f\nunknown " + id + "\nunknown 01a22ed2-4653-74c5-84a4-12c044a2b970\nrepeated " + id + "\n"
	if err := os.WriteFile(filepath.Join(dir, "p.ledger"), []byte(book), 0o600); err != nil {
		t.Fatal(err)
	}
	judged("a commit that was known is gone", Result{Lost: 1, OutOfOrder: 1, UnknownCommits: 2, UnknownCommitted: 1, Repeats: 1})
	if left, err := l.left(t.Context()); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}
