package order

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// The operations of the four services, as the column op names them.
const (
	opReserve = "reserve"
	opRelease = "release"
	opCharge  = "charge"
	opFind    = "find"
	opRefund  = "refund"
	opBook    = "book"
	opCancel  = "cancel"
	opLabel   = "label"
	opSend    = "send"
)

// callsTable is all that a service keeps. Whatever a service wants to know of
// its past it asks this table, so that the table and the service cannot
// disagree. The time is the database's own, so that no clock is needed here.
const callsTable = `
CREATE TABLE IF NOT EXISTS calls (
  op       TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  order_id TEXT    NOT NULL,
  effect   INTEGER NOT NULL CHECK (effect IN (0, 1)),
  at       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key, op);
CREATE INDEX IF NOT EXISTS calls_by_order ON calls (order_id, op);`

// calls is the book of one service. It is safe for concurrent use and does one
// call after the other.
type calls struct{ db *sql.DB }

// openCalls opens the book at path and makes it if there is none.
func openCalls(ctx context.Context, path string) (*calls, error) {
	// SQLite would make the file, and those beside it, for everybody to read.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("make the book: %w", err)
	}
	db, err := openSQLite(path, "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one call after the other: a service decides on what the table says
	if _, err := db.ExecContext(ctx, callsTable); err != nil {
		return nil, errors.Join(fmt.Errorf("make the table calls in %s: %w", path, err), db.Close())
	}
	return &calls{db: db}, nil
}

// openSQLite opens the file at path with the driver's query parameters.
func openSQLite(path, query string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func (c *calls) close() error { return c.db.Close() }

// do runs one call's reading and writing as one transaction.
func (c *calls) do(ctx context.Context, act func(*page) error) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := act(&page{ctx: ctx, tx: tx}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// page is the book as one call sees it. It lives as long as its transaction,
// which is why it may carry the context of that transaction.
type page struct {
	ctx context.Context
	tx  *sql.Tx
}

// write adds the row of this call and returns its number.
func (p *page) write(op, key, orderID string, effect bool) (int64, error) {
	res, err := p.tx.ExecContext(p.ctx, `INSERT INTO calls (op, key, order_id, effect) VALUES (?, ?, ?, ?)`, op, key, orderID, effect)
	if err != nil {
		return 0, fmt.Errorf("write the call %s: %w", op, err)
	}
	return res.LastInsertId()
}

// effective returns the number of the first row with which op had its effect
// under key, or 0.
func (p *page) effective(op, key string) (int64, error) {
	return p.number(`SELECT coalesce(min(rowid), 0) FROM calls WHERE key = ? AND op = ? AND effect = 1`, key, op)
}

// heard tells whether op was heard under key at all, with effect or without.
func (p *page) heard(op, key string) (bool, error) {
	n, err := p.number(`SELECT count(*) FROM calls WHERE key = ? AND op = ?`, key, op)
	return n > 0, err
}

// effectiveForOrder tells whether op had an effect for the order, under
// whatever key.
func (p *page) effectiveForOrder(op, orderID string) (bool, error) {
	n, err := p.number(`SELECT count(*) FROM calls WHERE order_id = ? AND op = ? AND effect = 1`, orderID, op)
	return n > 0, err
}

// orderOf returns the order that key was first used for, or "" if the key is
// new. An undo and a probe carry nothing but the key of the forward call.
func (p *page) orderOf(key string) (string, error) {
	var id string
	err := p.tx.QueryRowContext(p.ctx, `SELECT order_id FROM calls WHERE key = ? AND order_id <> '' ORDER BY rowid LIMIT 1`, key).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the order of a key: %w", err)
	}
	return id, nil
}

func (p *page) number(query string, args ...any) (int64, error) {
	var n int64
	if err := p.tx.QueryRowContext(p.ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("read calls: %w", err)
	}
	return n, nil
}
