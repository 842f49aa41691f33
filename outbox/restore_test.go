package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// dump copies a table from one database to another as pg_dump does: the text of
// every column that is not computed.
func dump(t *testing.T, from, to *pgx.Conn, table string) {
	t.Helper()
	var columns string
	err := from.QueryRow(t.Context(), `select string_agg(column_name, ', ') from information_schema.columns
		where table_schema = current_schema and table_name = $1 and is_generated = 'NEVER'`, table).Scan(&columns)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := from.PgConn().CopyTo(t.Context(), &text, fmt.Sprintf("copy %s (%s) to stdout", table, columns)); err != nil {
		t.Fatal(err)
	}
	if _, err := to.PgConn().CopyFrom(t.Context(), &text, fmt.Sprintf("copy %s (%s) from stdin", table, columns)); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// TestADumpGoesOnInANewCluster restores an outbox where transaction ids are far
// behind those of the old cluster.
func TestADumpGoesOnInANewCluster(t *testing.T) { // O-4
	url := postgresURL(t)
	old := openPostgres(t, url)
	for range 500 { // transactions that the new cluster has not had
		if _, err := old.Exec(`select txid_current()`); err != nil {
			t.Fatal(err)
		}
	}
	f := fixture{Source: postgres.New(old), insert: insertPostgres(old)}
	f.put(t, order(1, "a"), order(2, "a"), order(3, "b"))
	for i, m := range f.claim(t, begin, 3) { // one delivered, one failed, one under way
		switch i {
		case 0:
			f.mark(t, begin, m, outbox.MarkDelivered, begin)
		case 1:
			f.mark(t, begin, m, outbox.MarkFailed, begin)
		}
	}
	cluster, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	db := openPostgres(t, cluster.SocketURL("postgres"))
	from, to := connect(t, url), connect(t, cluster.SocketURL("postgres"))
	for _, table := range []string{"outbox", "aggregate_head", "outbox_partition", "outbox_relay"} {
		dump(t, from, to, table)
	}
	w := newWorld(t, fixture{Source: postgres.New(db), insert: insertPostgres(db)}, nil)
	w.put(t, order(4, "a"), order(5, "b"))
	w.pass(t, 10*outbox.DefaultLease, outbox.DefaultLease/3)
	if got := w.taken(); got != "a/2 a/3 b/1 b/2" {
		t.Errorf("got %q", got)
	}
	same := func(db *sql.DB) (n int, err error) {
		err = db.QueryRow(`select sum(part * ascii(aggregateid)) from outbox where id in ($1, $2, $3)`, id(1), id(2), id(3)).Scan(&n)
		return n, err
	}
	before, err1 := same(old)
	after, err2 := same(db)
	if err := errors.Join(err1, err2); err != nil || before != after {
		t.Errorf("partitions changed: %d, %d, %v", before, after, err)
	}
}
