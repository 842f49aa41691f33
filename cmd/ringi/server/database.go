package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/sqlite"
)

// A Database is what runs are kept in, whatever its kind.
type Database interface {
	store.Store
	store.Records
	store.Catalog
	store.Events
	store.Inspector
	Probe(ctx context.Context, bytes int) error
	Committers() int
}

// messages are the messages of a database: for a relay, and for the relays of
// other servers that share them, which is nil where there can be only one.
type messages struct {
	source relay.Outbox
	fleet  outbox.Fleet
	nodes  store.Fleet                           // other servers; nil where there can be only one
	locks  func(context.Context) (string, error) // what others hold locked; nil where nobody says
}

// openDatabase opens the database of a server and brings its tables up to date.
func openDatabase(ctx context.Context, c NodeConfig) (Database, messages, error) {
	if c.Postgres == "" {
		if err := checkPlace(c.Database); err != nil {
			return nil, messages{}, err
		}
		db, err := sqlite.Open(ctx, sqlite.Config{Path: c.Database})
		if err != nil {
			return nil, messages{}, err
		}
		return db, messages{source: db.Outbox()}, nil
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: c.Postgres, Warn: func(text string) { c.Log.Warn(text) }})
	if err != nil {
		return nil, messages{}, unreachable(c.Postgres, err)
	}
	box := db.Outbox()
	return db, messages{source: box, fleet: box, nodes: db, locks: db.Locks}, nil
}

// OpenReading opens the database that the setting names, to read it only.
func OpenReading(ctx context.Context, p *cli.Program) (Database, error) {
	if value := p.Get(cli.SetDatabase); cli.IsPostgres(value) {
		db, err := postgres.OpenReading(ctx, postgres.Config{URL: value})
		if err != nil {
			return nil, unreachable(value, err)
		}
		return db, nil
	}
	if err := cli.NoRunsIn(p.Get(cli.SetDatabase)); err != nil {
		return nil, err
	}
	file := p.DatabaseHere()
	db, err := sqlite.OpenReading(ctx, sqlite.Config{Path: file})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &cli.Ending{Code: cli.ExitNotFound, Message: "there is no database " + file, Hint: "--database sqlite:PATH or postgres://… names it", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// CheckUnused refuses a database for the demo that holds runs already: their
// books would not be the demo's.
func CheckUnused(ctx context.Context, value string) error {
	switch {
	case value == "":
		return nil
	case !cli.IsPostgres(value):
		return cli.Usage("leave --database out to use a file", "the demo can use a PostgreSQL database, postgres://…, and not %s", value)
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
		err = cli.Usage("make an empty one for it", "the database %s has runs already", cli.WithoutPassword(value))
	}
	return err
}

// unreachable gives the error of a database that does not answer its exit code.
func unreachable(value string, err error) error {
	if !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &cli.Ending{Code: cli.ExitUnreachable, Message: fmt.Sprintf("the database %s cannot be used: %v", cli.WithoutPassword(value), err), Err: err}
}

// named is the database for the log.
func (c *NodeConfig) named() slog.Attr {
	if c.Postgres != "" {
		return slog.String("database", cli.WithoutPassword(c.Postgres))
	}
	return slog.String("database", c.Database)
}

// databaseURL is the database as a relay names it.
func (c *NodeConfig) databaseURL() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return "sqlite:" + c.Database
}
