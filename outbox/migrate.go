package outbox

import (
	"context"
	"database/sql"
	"fmt"
)

// Migrator is what Migrate needs of a database: *sql.DB, *sql.Tx and *sql.Conn
// fulfil it.
type Migrator interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const (
	// sqliteOld tells a table from before claims had a column of their own.
	sqliteOld = `select exists (select 1 from pragma_table_info('outbox')) and not exists (select 1 from pragma_table_info('outbox') where name = 'lease_end')`

	// sqliteUpgrade is what PostgresSchema does by itself, since a statement of
	// SQLite cannot depend on what is there.
	sqliteUpgrade = `alter table outbox add column lease_end integer;
		update outbox set state = 0, lease_end = next_at where state = 1`
)

// Migrate makes the tables of an outbox, or brings those that an earlier version
// made up to date, and keeps every message. It may run at every start. It makes
// several statements; give it a transaction for all or nothing, in SQLite one that
// has the write lock. Relays of the earlier version must have stopped: they would
// claim in a way that later ones do not know.
func (d Dialect) Migrate(ctx context.Context, db Migrator) error {
	schema, err := d.Schema()
	if err != nil {
		return err
	}
	if d == DialectSQLite {
		var old bool
		if err := db.QueryRowContext(ctx, sqliteOld).Scan(&old); err != nil {
			return fmt.Errorf("outbox: look at the tables: %w", err)
		}
		if old {
			schema = sqliteUpgrade + ";" + schema
		}
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("outbox: make the tables, or bring them up to date: %w", err)
	}
	return nil
}
