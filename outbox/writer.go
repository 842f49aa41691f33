package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrDuplicate says that a message with this id is in the outbox already, or
// twice in one insert. An id is written once; a second insert is a fault of the
// writer, not a repeat to be forgiven. The caller rolls its transaction back.
var ErrDuplicate = errors.New("outbox: message id is in the outbox already; every message needs an id of its own")

// Tx is what an insert needs of a transaction. *sql.Tx fulfils it, and so does
// a *sql.Conn on which the caller has begun one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Writer writes messages into an open transaction of type T. It is all that a
// repository must be able to do to announce what it changes. The messages stand
// when the transaction commits, and never otherwise. Writing them is the last
// thing that a transaction should do, and it should do it once.
type Writer[T any] interface {
	WriteMessages(ctx context.Context, tx T, msgs ...Message) error
}

// Database is what a unit of work needs of a database: to write messages, and to
// begin and end a transaction. SQL is one over database/sql; package postgres has
// one over pgx.
type Database[T any] interface {
	Writer[T]

	// Begin opens a transaction.
	Begin(ctx context.Context) (T, error)

	// Commit commits it. An error does not always mean that it did not commit.
	Commit(ctx context.Context, tx T) error

	// Rollback ends it without a trace. After a commit it does nothing.
	Rollback(ctx context.Context, tx T) error
}

// Migrator is what making the tables, or bringing them up to date, needs of a
// database: *sql.DB, *sql.Tx and *sql.Conn fulfil it.
type Migrator interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// SQL is a Database over database/sql.
type SQL struct {
	// DB is the pool. With SQLite its transactions should begin immediately (in
	// modernc.org/sqlite the parameter _txlock=immediate), since one that reads
	// first and writes later fails when another has written in between.
	DB *sql.DB

	// Insert writes messages in an open transaction of the database: sqlite.Insert,
	// postgres.InsertSQL or mysql.Insert.
	Insert func(ctx context.Context, tx Tx, msgs ...Message) error

	// Options are those of its transactions; nil is the driver's default.
	Options *sql.TxOptions
}

var _ Database[*sql.Tx] = (*SQL)(nil)

// WriteMessages implements Writer.
func (d *SQL) WriteMessages(ctx context.Context, tx *sql.Tx, msgs ...Message) error {
	return d.Insert(ctx, tx, msgs...)
}

// Begin implements Database.
func (d *SQL) Begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := d.DB.BeginTx(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("outbox: begin: %w", err)
	}
	return tx, nil
}

// Commit implements Database.
func (d *SQL) Commit(_ context.Context, tx *sql.Tx) error { return tx.Commit() }

// Rollback implements Database.
func (d *SQL) Rollback(_ context.Context, tx *sql.Tx) error { return tx.Rollback() }
