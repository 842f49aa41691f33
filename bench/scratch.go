package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/relay"
)

// removeTime bounds the removal of what a measurement made, which is done also
// when it was interrupted.
const removeTime = 30 * time.Second

// scratch returns an empty outbox on the disk, or in the server, of a database,
// how it is named, and what removes it again.
func scratch(ctx context.Context, database string) (_ *relay.Database, own string, end func() error, err error) {
	dialect, err := dialectOf(database)
	if err != nil {
		return nil, "", nil, err
	}
	name := "ringi_bench_" + strings.ReplaceAll(outbox.NewID(time.Now()), "-", "")
	var remove func() error
	if dialect == relay.SQLite {
		own, remove, err = scratchFile(database + "." + name)
	} else {
		own, remove, err = scratchSchema(ctx, database, name)
	}
	if err != nil {
		return nil, "", nil, err
	}
	db, err := relay.Connect(own)
	if err != nil {
		return nil, "", nil, errors.Join(err, remove())
	}
	end = func() error { return errors.Join(db.Close(), remove()) }
	if err := makeTables(ctx, db); err != nil {
		return nil, "", nil, errors.Join(err, end())
	}
	return db, own, end, nil
}

func makeTables(ctx context.Context, db *relay.Database) error {
	schema, err := db.Dialect.Schema()
	if err != nil {
		return err
	}
	if db.Dialect == relay.SQLite {
		schema = "pragma journal_mode = wal;" + schema
	}
	if _, err := db.DB.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("bench: make the tables: %w", err)
	}
	return nil
}

func scratchFile(database string) (own string, remove func() error, err error) {
	path := strings.TrimPrefix(database, "sqlite:")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("bench: make a database beside the one that was named: %w", err)
	}
	return database, func() error {
		errs := []error{os.Remove(path)}
		for _, beside := range []string{"-wal", "-shm", "-journal", ".lock"} {
			if err := os.Remove(path + beside); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}, file.Close()
}

func scratchSchema(ctx context.Context, database, name string) (own string, remove func() error, err error) {
	do := func(ctx context.Context, text string) error {
		db, err := relay.Connect(database)
		if err != nil {
			return err
		}
		_, err = db.DB.ExecContext(ctx, text)
		return errors.Join(err, db.Close())
	}
	if err := do(ctx, "create schema "+name); err != nil {
		return "", nil, fmt.Errorf("bench: make a schema for the measurement: %w", err)
	}
	separator := "?"
	if strings.Contains(database, "?") {
		separator = "&"
	}
	return database + separator + "search_path=" + name, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		return errors.Join(do(ctx, "drop schema "+name+" cascade"), do(ctx, "drop publication if exists "+wal.PublicationFor(name)))
	}, nil
}
