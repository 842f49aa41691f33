// Package postgres handles messages once in a transaction of pgx.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/inbox"
)

// Tx is what Handle needs of a transaction; pgx.Tx fulfils it.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Handle is inbox.Handle for a transaction of pgx.
func Handle(ctx context.Context, tx Tx, consumer, messageID string, work func(ctx context.Context) error) (fresh bool, err error) {
	return inbox.Handle(ctx, adapter{tx}, consumer, messageID, work)
}

// adapter makes a transaction of pgx look like one of database/sql.
type adapter struct{ tx Tx }

// ExecContext implements inbox.Tx.
func (a adapter) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := a.tx.Exec(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}
