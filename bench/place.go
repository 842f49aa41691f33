package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/sqlite"
)

// The kinds of databases, as results name them.
const (
	kindSQLite   = string(relay.SQLite)
	kindPostgres = string(relay.Postgres)
)

// A database is what runs are kept in, whatever its kind.
type database interface {
	store.Store
	store.Records
	store.Catalog
	store.Events
	store.Inspector
	Committers() int
}

// A place is room for an empty database on the disk, or in the server, of the
// one that was named.
type place struct {
	kind   string
	named  string // how it is named
	dir    string // where its files are, as far as this machine can tell; "" is not known
	fs     string // the kind of the file system there
	remove func() error
}

// dialectOf tells the dialect of a database that something is measured on.
func dialectOf(named string) (relay.Dialect, error) {
	dialect, err := relay.DialectOf(named)
	if err == nil && dialect == relay.MySQL {
		err = errors.New("bench: nothing is measured on MariaDB and MySQL; name sqlite:PATH or postgres://")
	}
	return dialect, err
}

// newPlace makes a place. A file system that is memory is refused: it has no
// disk to wait for, so that what is measured there says nothing.
func newPlace(ctx context.Context, named string) (*place, error) {
	dialect, err := dialectOf(named)
	if err != nil {
		return nil, err
	}
	p := &place{kind: string(dialect)}
	if p.dir, err = p.where(ctx, named); err != nil {
		return nil, err
	}
	if p.fs, err = fileSystemOf(p.dir); err != nil {
		return nil, err
	}
	if volatile(p.fs) {
		return nil, fmt.Errorf("bench: %s is on %s, which is memory and has no disk to wait for: name a database on a disk, as in --database sqlite:/var/tmp/bench.db, or a server whose data is on one", p.dir, p.fs)
	}
	name := "ringi_bench_" + strings.ReplaceAll(outbox.NewID(time.Now()), "-", "")
	if p.kind == kindSQLite {
		p.named, p.remove, err = scratchFile(named + "." + name)
	} else {
		p.named, p.remove, err = scratchSchema(ctx, named, name)
	}
	return p, err
}

// placeOf is a place that newPlace has made, as another process sees it.
func placeOf(named string) (*place, error) {
	dialect, err := relay.DialectOf(named)
	return &place{kind: string(dialect), named: named}, err
}

// where is the directory of a database's files. A PostgreSQL server tells only
// those who may know, and it may be on another machine.
func (p *place) where(ctx context.Context, named string) (dir string, err error) {
	if p.kind == kindSQLite {
		return filepath.Abs(filepath.Dir(strings.TrimPrefix(named, "sqlite:")))
	}
	db, err := relay.Connect(named)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.DB.PingContext(ctx); err != nil {
		return "", fmt.Errorf("bench: the database does not answer: %w", err)
	}
	if db.DB.QueryRowContext(ctx, `show data_directory`).Scan(&dir) != nil {
		return "", nil
	}
	return dir, nil
}

// open opens the database of the place, with its tables.
func (p *place) open(ctx context.Context) (database, error) {
	if p.kind == kindSQLite {
		return sqlite.Open(ctx, sqlite.Config{Path: strings.TrimPrefix(p.named, "sqlite:")})
	}
	return postgres.Open(ctx, postgres.Config{URL: p.named})
}
