package sqlite

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/ringiflow/ringi"
	sqliteoutbox "github.com/ringiflow/ringi/outbox/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// oldest is the schema that a program must know at least to run on this one.
// Migrations only add, so it is raised only by one that an older program would
// harm by not knowing it.
const oldest = 1

// metaTable says what the database is: schema (the last migration applied),
// oldest (see there), incarnation (drawn when the file was made), format (the
// newest format of events that may be in it).
const metaTable = `create table if not exists meta (key text not null primary key, value text not null) strict, without rowid`

// migrate brings the schema up to date inside one immediate transaction, whose
// lock is the database's: of two programs that start at once the second finds
// it done. It refuses a file that is not ringi's and a schema that only a newer
// program may run on.
func (t *tx) migrate(ctx context.Context, path string) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	meta, err := t.readMeta(ctx, path)
	if err != nil {
		return err
	}
	have, need := number(meta["schema"]), number(meta["oldest"])
	if have > len(files) {
		if need > len(files) {
			return fmt.Errorf("%s has schema %d, which needs a program that knows schema %d; this one knows %d: run the newer ringi that wrote it, or restore a backup from before it was upgraded",
				path, have, need, len(files))
		}
		return nil // only additions, which this program need not know
	}
	for _, file := range files[have:] {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return err
		}
		if _, err := t.sc.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: migration %s: %w", path, file, err)
		}
	}
	if len(files) > have {
		if err := sqliteoutbox.Migrate(ctx, t.sc); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return t.writeMeta(ctx, meta, len(files))
}

// number is the number in a text of meta; 0 when there is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// readMeta returns the table meta, made if the file is empty.
func (t *tx) readMeta(ctx context.Context, path string) (map[string]string, error) {
	var tables, known int
	err := t.sc.QueryRowContext(ctx, `select count(*), count(*) filter (where name = 'meta') from sqlite_master where type = 'table'`).Scan(&tables, &known)
	if err != nil {
		return nil, err
	}
	if tables > 0 && known == 0 {
		return nil, fmt.Errorf("%s is a database of something else: it has tables and none of them is ringi's; name another file", path)
	}
	if _, err := t.sc.ExecContext(ctx, metaTable); err != nil {
		return nil, err
	}
	rows, err := t.sc.QueryContext(ctx, `select key, value from meta`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	meta := map[string]string{}
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		meta[key] = value
	}
	return meta, rows.Err()
}

// writeMeta records what the database is now.
func (t *tx) writeMeta(ctx context.Context, meta map[string]string, schema int) error {
	put := map[string]string{"schema": strconv.Itoa(schema), "oldest": strconv.Itoa(oldest)}
	if meta["incarnation"] == "" {
		id := make([]byte, 16)
		rand.Read(id) // never fails
		put["incarnation"] = hex.EncodeToString(id)
	}
	if number(meta["format"]) < ringi.Format { // the one program that has the file open reads it
		put["format"] = strconv.Itoa(ringi.Format)
	}
	for key, value := range put {
		if meta[key] == value {
			continue
		}
		if _, err := t.sc.ExecContext(ctx, `insert into meta (key, value) values (?, ?) on conflict do update set value = excluded.value`, key, value); err != nil {
			return err
		}
	}
	return nil
}
