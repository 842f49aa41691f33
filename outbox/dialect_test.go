package outbox_test

import (
	"context"
	"database/sql"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// dialect is a database that the suites of this package run on.
type dialect string

const (
	dialectSQLite   dialect = "sqlite"
	dialectPostgres dialect = "postgres"
)

// driver names what opens it with database/sql.
func (d dialect) driver() string {
	if d == dialectSQLite {
		return "sqlite"
	}
	return "pgx"
}

func (d dialect) insert(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	if d == dialectSQLite {
		return sqlite.Insert(ctx, tx, msgs...)
	}
	return postgres.InsertSQL(ctx, tx, msgs...)
}

func (d dialect) migrate(ctx context.Context, db outbox.Migrator) error {
	if d == dialectSQLite {
		return sqlite.Migrate(ctx, db)
	}
	return postgres.Migrate(ctx, db)
}

// crashable is a source of a database with all that it can do.
type crashable interface {
	outbox.Source
	outbox.Desk
}

func (d dialect) source(db *sql.DB) crashable {
	if d == dialectSQLite {
		return sqlite.New(db)
	}
	return postgres.New(db)
}
