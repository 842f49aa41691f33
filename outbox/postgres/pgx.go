// Package postgres is the outbox in PostgreSQL: the tables (Schema, Migrate), the
// insert and what relays and operators use (Outbox).
//
// Insert writes in a transaction of pgx, InsertSQL in one of database/sql; Pool is
// the database of a unit of work over pgx, and outbox.SQL one over database/sql:
//
//	unit := outbox.UnitOfWork[pgx.Tx]{Database: postgres.Pool{Pool: pool}}
//	err := unit.Add(ctx, message)
//	…
//	err = unit.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, "update …")
//		return err
//	})
//
// Outbox works through database/sql; Source opens it over a pool of pgx, so that
// both share their connections.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/outbox"
)

// Tx is what Insert needs of a transaction; pgx.Tx fulfils it.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Insert writes messages in the caller's open transaction, numbered per
// aggregate in the order given, in one statement and one round trip. It is the
// last thing the transaction should do: it takes the aggregates' head rows, in
// key order, and holds them until the commit. After any error, of which
// outbox.ErrDuplicate is one, the caller must roll back.
func Insert(ctx context.Context, tx Tx, msgs ...outbox.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	s, err := InsertStatement(msgs...)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, s.SQL, s.Args...)
	if err != nil {
		return s.Fault(err)
	}
	return s.Answer(tag.RowsAffected())
}

// Pool is the outbox.Database over a pool of pgx.
type Pool struct {
	Pool *pgxpool.Pool

	// Options are those of its transactions.
	Options pgx.TxOptions
}

var _ outbox.Database[pgx.Tx] = Pool{}

// WriteMessages implements outbox.Writer.
func (p Pool) WriteMessages(ctx context.Context, tx pgx.Tx, msgs ...outbox.Message) error {
	return Insert(ctx, tx, msgs...)
}

// Begin implements outbox.Database.
func (p Pool) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := p.Pool.BeginTx(ctx, p.Options)
	if err != nil {
		return nil, fmt.Errorf("outbox: begin: %w", err)
	}
	return tx, nil
}

// Commit implements outbox.Database.
func (p Pool) Commit(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }

// Rollback implements outbox.Database.
func (p Pool) Rollback(ctx context.Context, tx pgx.Tx) error {
	if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// Source returns the outbox of a pool for a relay. It has no connections of its
// own and need not be closed.
func Source(pool *pgxpool.Pool) *Outbox {
	return New(stdlib.OpenDBFromPool(pool))
}
