package sqlite

import (
	"context"
	"fmt"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// old tells a table from before claims had a column of their own.
	old = `select exists (select 1 from pragma_table_info('outbox')) and not exists (select 1 from pragma_table_info('outbox') where name = 'lease_end')`

	// upgrade is what the schema of PostgreSQL does by itself, since a statement of
	// SQLite cannot depend on what is there.
	upgrade = `alter table outbox add column lease_end integer;
		update outbox set state = 0, lease_end = next_at where state = 1`
)

// Migrate makes the tables of an outbox, or brings those that an earlier version
// made up to date, and keeps every message. It may run at every start. It makes
// several statements; give it a transaction for all or nothing, one that has the
// write lock. Relays of the earlier version must have stopped: they would claim in
// a way that later ones do not know.
func Migrate(ctx context.Context, db outbox.Migrator) error {
	schema := Schema
	var isOld bool
	if err := db.QueryRowContext(ctx, old).Scan(&isOld); err != nil {
		return fmt.Errorf("outbox: look at the tables: %w", err)
	}
	if isOld {
		schema = upgrade + ";" + schema
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("outbox: make the tables, or bring them up to date: %w", err)
	}
	return nil
}
