package postgres

import (
	"context"
	"fmt"

	"github.com/ringiflow/ringi/outbox"
)

// Migrate makes the tables of an outbox, or brings those that an earlier version
// made up to date, and keeps every message. It may run at every start. It makes
// several statements; give it a transaction for all or nothing. Relays of the
// earlier version must have stopped: they would claim in a way that later ones do
// not know.
func Migrate(ctx context.Context, db outbox.Migrator) error {
	if _, err := db.ExecContext(ctx, Schema); err != nil {
		return fmt.Errorf("outbox: make the tables, or bring them up to date: %w", err)
	}
	return nil
}
