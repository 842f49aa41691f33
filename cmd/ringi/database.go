package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/sqlite"
)

// A database is what runs are kept in, whatever its kind.
type database interface {
	store.Store
	store.Records
	store.Catalog
	store.Events
	store.Inspector
	Probe(ctx context.Context, bytes int) error
}

// messages are the messages of a database: for a relay, and for the relays of
// other servers that share them, which is nil where there can be only one.
type messages struct {
	source relay.Outbox
	fleet  outbox.Fleet
}

// isPostgres reports whether a value of the setting names a PostgreSQL database.
func isPostgres(value string) bool {
	return strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://")
}

// besideDatabase is the path that files of a server begin with, such as its
// admin key: the database file, or where the default one would be.
func (p *Program) besideDatabase() string {
	if value := p.get(setDatabase); !isPostgres(value) {
		return p.path(sqlitePath(value))
	}
	return p.path(sqlitePath(defaultDatabase))
}

// withoutPassword is a value of the setting as it may be shown.
func withoutPassword(value string) string {
	if !isPostgres(value) {
		return value
	}
	u, err := url.Parse(value)
	if err != nil {
		return "postgres://…" // who knows what is in it
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}

// openDatabase opens the database of a server and brings its tables up to date.
func openDatabase(ctx context.Context, c nodeConfig) (database, messages, error) {
	if c.postgres == "" {
		if err := checkPlace(c.database); err != nil {
			return nil, messages{}, err
		}
		db, err := sqlite.Open(ctx, sqlite.Config{Path: c.database})
		if err != nil {
			return nil, messages{}, err
		}
		return db, messages{source: db.Outbox()}, nil
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: c.postgres, Warn: func(text string) { c.log.Warn(text) }})
	if err != nil {
		return nil, messages{}, unreachable(c.postgres, err)
	}
	box := db.Outbox()
	return db, messages{source: box, fleet: box}, nil
}

// openReading opens the database that the setting names, to read it only.
func (p *Program) openReading(ctx context.Context) (database, error) {
	if value := p.get(setDatabase); isPostgres(value) {
		db, err := postgres.OpenReading(ctx, postgres.Config{URL: value})
		if err != nil {
			return nil, unreachable(value, err)
		}
		return db, nil
	}
	file := p.databaseHere()
	db, err := sqlite.OpenReading(ctx, sqlite.Config{Path: file})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ending{code: exitNotFound, message: "there is no database " + file, hint: "--database sqlite:PATH or postgres://… names it", err: err}
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// checkUnused refuses a database for the demo that holds runs already: their
// books would not be the demo's.
func checkUnused(ctx context.Context, value string) error {
	switch {
	case value == "":
		return nil
	case !isPostgres(value):
		return usage("leave --database out to use a file", "the demo can use a PostgreSQL database, postgres://…, and not %s", value)
	}
	db, err := postgres.OpenReading(ctx, postgres.Config{URL: value})
	if errors.Is(err, postgres.ErrNoTables) {
		return nil
	}
	if err != nil {
		return unreachable(value, err)
	}
	traces, err := db.Traces(ctx, store.Key{}, 1)
	if err = errors.Join(err, db.Close()); err == nil && len(traces) > 0 {
		err = usage("make an empty one for it", "the database %s has runs already", withoutPassword(value))
	}
	return err
}

// unreachable gives the error of a database that does not answer its exit code.
func unreachable(value string, err error) error {
	if !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &ending{code: exitUnreachable, message: fmt.Sprintf("the database %s cannot be used: %v", withoutPassword(value), err), err: err}
}

// named is the database for the log.
func (c *nodeConfig) named() slog.Attr {
	if c.postgres != "" {
		return slog.String("database", withoutPassword(c.postgres))
	}
	return slog.String("database", c.database)
}
