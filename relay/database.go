package relay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	modernc "modernc.org/sqlite"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

const (
	schemeSQLite     = "sqlite:"
	schemePostgres   = "postgres://"
	schemePostgresql = "postgresql://"
	schemeMySQL      = "mysql://"

	// busyTimeout is how long a statement waits in SQLite for another writer, in
	// milliseconds: a service's own transaction may be a long one.
	busyTimeout = 10_000

	// cacheKiB is how much of a SQLite file is kept in memory: room for the indexes
	// of a large backlog, of which a claim reads here and there.
	cacheKiB = 16 << 10

	// walPages is the size of the write-ahead log, in pages of 4 KiB, at which a
	// commit copies it into the database: rare, and over before it is noticed.
	walPages = 4000

	// poolSize is more connections than the relays of a process use at once.
	poolSize = 16
)

var (
	// ErrNoOutbox says that a database can be reached and has no outbox.
	ErrNoOutbox = errors.New("the database has no outbox, or one of an earlier version: stop its relays and run ringi outbox schema --apply, which makes the tables or brings them up to date and keeps every message")

	// ErrAway says that a database cannot be reached now.
	ErrAway = errors.New("the database cannot be reached")
)

// Outbox is the table that messages are taken from and looked at.
type Outbox interface {
	outbox.Source
	outbox.Desk
}

// Database is an open database that holds an outbox.
type Database struct {
	Dialect Dialect
	DB      *sql.DB
	Outbox  Outbox

	// Fleet shares the work among relays in several processes; nil in SQLite,
	// whose writers wait for each other anyway.
	Fleet outbox.Fleet

	// Name is the database as it was named, without a password.
	Name string
}

// DialectOf tells the dialect of a database from how it is named: sqlite:PATH,
// postgres://…, postgresql://… or mysql://….
func DialectOf(database string) (Dialect, error) {
	switch {
	case strings.HasPrefix(database, schemeSQLite) && database != schemeSQLite:
		return SQLite, nil
	case strings.HasPrefix(database, schemePostgres), strings.HasPrefix(database, schemePostgresql):
		return Postgres, nil
	case strings.HasPrefix(database, schemeMySQL):
		return MySQL, nil
	}
	return "", fmt.Errorf("the database %q is not one: write sqlite:PATH, postgres:// or mysql://", database)
}

// Spare makes commits of a SQLite database that is in WAL mode wait for the disk no
// more, for a process that only relays: a power cut then takes back the last
// claims and marks, so that their messages are sent once more, and nothing else.
// It is for the life of the connection; where the journal is another kind, and
// in PostgreSQL, it changes nothing.
func (d *Database) Spare(ctx context.Context) error {
	if d.Dialect != SQLite {
		return nil
	}
	var mode string
	err := d.DB.QueryRowContext(ctx, "pragma journal_mode").Scan(&mode)
	if err == nil && mode == "wal" {
		_, err = d.DB.ExecContext(ctx, "pragma synchronous = normal")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	return nil
}

// Open opens a database that is there and has the tables of the outbox, and
// changes nothing in it. The error wraps ErrNoOutbox, ErrAway or, when the file
// is missing, fs.ErrNotExist.
func Open(ctx context.Context, database string) (*Database, error) {
	d, err := Connect(database)
	if err != nil {
		return nil, err
	}
	if err := d.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Name, err), d.Close())
	}
	return d, nil
}

// Connect is Open without a look at the database, for who makes the tables.
func Connect(database string) (*Database, error) {
	dialect, err := DialectOf(database)
	if err != nil {
		return nil, err
	}
	switch dialect {
	case SQLite:
		return connectSQLite(strings.TrimPrefix(database, schemeSQLite))
	case MySQL:
		return connectMySQL(database)
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		// Its text may repeat what it could not read, but never the password.
		return nil, fmt.Errorf("the database is not named in a way that can be read: %w", err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	source := postgres.New(db)
	name := fmt.Sprintf("%s%s/%s", schemePostgres, config.Host, config.Database)
	return &Database{Dialect: Postgres, DB: db, Outbox: source, Fleet: source, Name: name}, nil
}

// connectSQLite opens a file as it is: how it is journalled is its owner's affair.
func connectSQLite(path string) (*Database, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	slashed := filepath.ToSlash(full)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a path with a drive letter
	}
	query := url.Values{"mode": {"rw"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout), "synchronous(full)", fmt.Sprintf("cache_size(-%d)", cacheKiB), fmt.Sprintf("wal_autocheckpoint(%d)", walPages)}}
	connector, err := modernc.NewConnector("file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	// Writers of one file wait for each other best at one connection.
	db.SetMaxOpenConns(1)
	return &Database{Dialect: SQLite, DB: db, Outbox: sqlite.New(db), Name: schemeSQLite + path}, nil
}

// lookForOutbox fails where a table is missing, of an earlier version or somebody
// else's.
const (
	lookForOutbox = `select o.id, o.destination, o.state, o.attempts, o.next_at, o.lease_end, o.claim_epoch, o.last_error, c.reason
	from outbox o, outbox_claim l, outbox_change c where 1 = 0`
	lookForFleet = `select o.id, o.destination, o.state, o.attempts, o.next_at, o.lease_end, o.claim_epoch, o.last_error, c.reason, p.epoch, r.took_at
	from outbox o, outbox_claim l, outbox_change c, outbox_partition p, outbox_relay r where 1 = 0`
	lookForMySQL = `select o.id, o.destination, o.state, o.attempts, o.next_at, o.lease_end, o.claim_epoch, o.last_error, c.reason, p.epoch, r.took_at
	from outbox o, outbox_change c, outbox_partition p, outbox_relay r where 1 = 0`
)

func (d *Database) check(ctx context.Context) error {
	if path, isFile := strings.CutPrefix(d.Name, schemeSQLite); isFile {
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no such file: %w", fs.ErrNotExist)
			}
			return errors.Join(ErrAway, err)
		}
	}
	if err := d.DB.PingContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	look := map[Dialect]string{SQLite: lookForOutbox, Postgres: lookForFleet, MySQL: lookForMySQL}[d.Dialect]
	rows, err := d.DB.QueryContext(ctx, look)
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNoOutbox, err)
	}
	return rows.Close()
}

// Migrate makes the tables of the outbox or brings those of an earlier version up to
// date, in one transaction, except in MySQL, where each table commits by itself.
func (d *Database) Migrate(ctx context.Context) error {
	conn, err := d.DB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", d.Name, ErrAway, err)
	}
	defer conn.Close()
	begin, end := "begin", "commit"
	if d.Dialect == SQLite {
		begin = "begin immediate" // with the write lock
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	if err = d.Dialect.Migrate(ctx, conn); err != nil {
		end = "rollback"
		err = fmt.Errorf("%s: %w", d.Name, err)
	}
	_, ended := conn.ExecContext(context.WithoutCancel(ctx), end)
	return errors.Join(err, ended)
}

// Close ends the connections.
func (d *Database) Close() error { return d.DB.Close() }
