package relay

import (
	"context"
	"fmt"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// Dialect is the name of a kind of database that can hold an outbox.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql" // and MariaDB
)

// Schema returns the statements that make the tables of an outbox, which may run
// again; see Migrate, which also upgrades them. The error names the dialects that
// there are.
func (d Dialect) Schema() (string, error) {
	switch d {
	case SQLite:
		return sqlite.Schema, nil
	case Postgres:
		return postgres.Schema, nil
	case MySQL:
		return mysql.Schema, nil
	}
	return "", d.unknown()
}

// Migrate makes the tables of an outbox, or brings those of an earlier version up to
// date, in the dialect's own way; see Migrate of packages sqlite, postgres and mysql.
func (d Dialect) Migrate(ctx context.Context, db outbox.Migrator) error {
	switch d {
	case SQLite:
		return sqlite.Migrate(ctx, db)
	case Postgres:
		return postgres.Migrate(ctx, db)
	case MySQL:
		return mysql.Migrate(ctx, db)
	}
	return d.unknown()
}

// Insert writes messages in the caller's open transaction, in the dialect's own way;
// see sqlite.Insert, postgres.InsertSQL and mysql.Insert.
func (d Dialect) Insert(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	switch d {
	case SQLite:
		return sqlite.Insert(ctx, tx, msgs...)
	case Postgres:
		return postgres.InsertSQL(ctx, tx, msgs...)
	case MySQL:
		return mysql.Insert(ctx, tx, msgs...)
	}
	return d.unknown()
}

func (d Dialect) unknown() error {
	const most = 64 // characters of a text that may be anything
	return fmt.Errorf("the dialect %.*q is not known; use %s, %s or %s", most, string(d), SQLite, Postgres, MySQL)
}
