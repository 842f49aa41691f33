package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
)

// keptStmts are the statements of an SQLite source, each prepared once: SQLite
// reads the text of one for about as long as it takes to run it.
type keptStmts struct {
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// get returns a statement, which wants a connection of the pool the first time.
func (k *keptStmts) get(ctx context.Context, db *sql.DB, query string) (*sql.Stmt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if stmt := k.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if k.stmts == nil {
		k.stmts = map[string]*sql.Stmt{}
	}
	k.stmts[query] = stmt
	return stmt, nil
}

// sqliteInside are the statements that run inside a transaction. They are prepared
// before it: its connection may be the only one of the pool.
//
// constant: an array cannot be a const, and it is only read.
var sqliteInside = [...]string{
	sqliteLock, sqliteTenant, sqliteDue, sqliteRun, sqlitePayload, sqliteSetBack, sqliteClaim, sqliteMark, sqliteDelivered, sqlitePrune,
	sqliteHands, sqliteLapse, sqliteForget, sqliteHold, sqliteSettle, sqliteHad, sqliteLeft, sqliteDrop, sqliteLight,
}

// sqliteTx is a transaction with its statements.
type sqliteTx struct {
	*sql.Tx
	kept map[string]*sql.Stmt
}

// stmt returns one of sqliteInside.
func (t *sqliteTx) stmt(ctx context.Context, query string) *sql.Stmt {
	return t.StmtContext(ctx, t.kept[query])
}

// write runs do in a transaction that takes the write lock at its beginning: one
// that took it at its first write could find the rows that it chose changed.
func (s *Outbox) write(ctx context.Context, do func(*sqliteTx) error) (err error) {
	kept := make(map[string]*sql.Stmt, len(sqliteInside))
	for _, query := range sqliteInside {
		if kept[query], err = s.kept.get(ctx, s.db, query); err != nil {
			return err
		}
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The transaction ends here and not with ctx, so that it has ended when this
	// returns; its statements end with ctx.
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		discard(conn) // it may have begun all the same
		return err
	}
	t := &sqliteTx{tx, kept}
	if _, err = t.stmt(ctx, sqliteLock).ExecContext(ctx); err == nil {
		err = do(t)
	}
	if err == nil {
		if err = tx.Commit(); err != nil {
			discard(conn)
		}
		return err
	}
	// A connection must not go back to the pool with a transaction open: one that
	// cannot roll back is thrown away.
	if rollback := tx.Rollback(); rollback != nil {
		discard(conn)
	}
	return err
}

// discard closes the connection itself instead of giving it back to the pool.
func discard(conn *sql.Conn) {
	// The error is the one asked for: Raw drops the connection for it.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
