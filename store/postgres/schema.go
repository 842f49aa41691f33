package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi"
	pgoutbox "github.com/ringiflow/ringi/outbox/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// oldest is the schema that a program must know at least to run on this one.
// Migrations only add, so it is raised only by one that an older program would
// harm by not knowing it.
const oldest = 1

// metaTable says what the database is: schema (the last migration applied),
// oldest (see there), format (the newest format of events that may be in it).
const metaTable = `create table if not exists meta (key text not null primary key, value text not null)`

const (
	// lockRow makes the row that programs which start at once wait for. A lock of
	// the session would be lost behind a pooler.
	lockRow = `insert into meta (key, value) values ('schema', '0') on conflict do nothing`
	// textMeta waits for the row.
	textMeta statement = `select key, value from meta order by key <> 'schema' for update`
	textPut  statement = `insert into meta (key, value) values ($1::text, $2::text) on conflict (key) do update set value = excluded.value`
)

// migrationTime is how long another program's migration is waited for.
const migrationTime = "60s"

// metaTries is how often the table meta is made when others make it at once:
// PostgreSQL lets one of them fail although the statement allows for its being there.
const metaTries = 10

// madeByOthers are the errors of that.
// constant: only read
var madeByOthers = []string{codeUnique, codeTableExists, codeTypeExists}

// migrate brings the tables up to date in one transaction under a lock on a
// row: of programs that start at once the others wait and find it done. It
// refuses tables that are not ringi's and a schema that only a newer program
// may run on.
func (s *Store) migrate(ctx context.Context) error {
	c, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer s.writers.give(c)
	current, err := s.current(ctx, c)
	if err != nil || current {
		return err
	}
	for try := 1; ; try++ {
		err := c.simple(ctx, metaTable)
		var e *pgconn.PgError
		if err == nil {
			break
		}
		if !errors.As(err, &e) || !slices.Contains(madeByOthers, e.Code) || try == metaTries {
			return fmt.Errorf("make the table meta: %w", err)
		}
	}
	begin := "begin; set local lock_timeout = '" + migrationTime + "'; set local statement_timeout = 0; select " + strings.ReplaceAll(textFlushed, "LOCAL", "true") + "; " + lockRow
	if err := c.simple(ctx, begin); err != nil {
		return err
	}
	if err := s.upgrade(ctx, c); err != nil {
		return errors.Join(err, c.simple(ctx, "rollback"))
	}
	return c.simple(ctx, "commit")
}

// current reports whether nothing has to be done, without taking the lock and
// without the right to make tables.
func (s *Store) current(ctx context.Context, c *conn) (bool, error) {
	there, schema := false, 0
	find := &call{statement: `select to_regclass('meta') is not null`, row: func(row cells) error {
		there = row.bool(0)
		return nil
	}}
	if err := c.run(ctx, false, find); err != nil || !there {
		return false, err
	}
	read := &call{statement: `select value from meta where key = 'schema'`, row: func(row cells) error {
		schema = number(row.text(0))
		return nil
	}}
	if err := c.run(ctx, false, read); err != nil {
		return false, err
	}
	known, err := known()
	return schema == known, err
}

// known is the schema that this program knows.
func known() (int, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	return len(files), err
}

// tooNew is the refusal of a database that only a newer program may use.
func tooNew(have, need, known int) error {
	return fmt.Errorf("it has schema %d, which needs a program that knows schema %d; this one knows %d: run the newer ringi that raised it, or restore a backup from before it was upgraded",
		have, need, known)
}

// upgrade runs the migrations that are missing, and that of the outbox.
func (s *Store) upgrade(ctx context.Context, c *conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	meta := map[string]string{}
	read := &call{statement: textMeta, row: func(row cells) error {
		meta[row.text(0)] = row.text(1)
		return nil
	}}
	if err := c.run(ctx, false, read); err != nil {
		return fmt.Errorf("wait for another program's migration: %w", err)
	}
	have, need := number(meta["schema"]), number(meta["oldest"])
	if have > len(files) {
		if need > len(files) {
			return tooNew(have, need, len(files))
		}
		return nil // only additions, which this program need not know
	}
	for _, file := range files[have:] {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return err
		}
		if err := c.simple(ctx, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", file, foreign(err))
		}
	}
	if err := c.simple(ctx, pgoutbox.Schema); err != nil {
		return fmt.Errorf("tables of the outbox: %w", foreign(err))
	}
	return writeMeta(ctx, c, meta, len(files))
}

// foreign says what to do when tables of somebody else have our names.
func foreign(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == codeTableExists {
		return fmt.Errorf("the database has tables of something else with the names of ringi's (%w): name another database, or a schema of its own with the parameter search_path in the URL", err)
	}
	return err
}

// number is the number in a text of meta; 0 when there is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// writeMeta records what the database is now.
func writeMeta(ctx context.Context, c *conn, meta map[string]string, schema int) error {
	put := map[string]string{"schema": strconv.Itoa(schema), "oldest": strconv.Itoa(oldest)}
	if meta["format"] == "" {
		put["format"] = strconv.Itoa(ringi.FirstFormat) // raised when all nodes read more
	}
	for key, value := range put {
		if meta[key] == value {
			continue
		}
		w := &call{statement: textPut}
		w.text(key)
		w.text(value)
		if err := c.run(ctx, false, w); err != nil {
			return err
		}
	}
	return nil
}
