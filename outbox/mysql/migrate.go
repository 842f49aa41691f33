package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/outbox"
)

// Migrate makes the tables of an outbox and keeps every message that there is. It
// may run at every start. A statement that makes a table commits by itself, so a
// transaction around it protects nothing.
func Migrate(ctx context.Context, db outbox.Migrator) error {
	for statement := range strings.SplitSeq(Schema, ";\n") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("outbox: make the tables: %w", err)
		}
	}
	return nil
}
