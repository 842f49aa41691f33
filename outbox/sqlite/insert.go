package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	sqliteHead = `insert into aggregate_head (tenant, aggregatetype, aggregateid, seq) values (?, ?, ?, ?)
		on conflict (tenant, aggregatetype, aggregateid) do update set seq = seq + excluded.seq`
	// ?10 is how many messages of the aggregate are written behind this one; below
	// 0 for one without a number.
	sqliteInsert = `insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
			case when ?10 < 0 then 0 else (select seq - ?10 from aggregate_head where tenant = ?2 and aggregatetype = ?4 and aggregateid = ?5) end, ?11, ?11)
		on conflict (id) do nothing`
)

// Insert writes messages in the caller's open transaction, numbered per
// aggregate in the order given. It is the last thing the transaction should do:
// it takes the aggregates' head rows, in key order, and holds them until the
// commit, which is what makes the numbers follow the order of commits.
//
// Every message is checked before anything is written. After any error, of which
// ErrDuplicate is one, the caller must roll back: some rows may stand already.
func Insert(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	groups, err := table.Arrange(msgs)
	if err != nil {
		return err
	}
	if len(msgs) > 1 {
		if p, can := tx.(preparer); can {
			kept := &keptTx{Tx: tx, from: p, stmts: map[string]*sql.Stmt{}}
			defer kept.close()
			tx = kept
		}
	}
	behind := make([]int, len(msgs))
	for i := range behind {
		behind[i] = -1
	}
	for _, g := range groups {
		if _, err := tx.ExecContext(ctx, sqliteHead, g.Key.Tenant, g.Key.AggregateType, g.Key.AggregateID, len(g.Members)); err != nil {
			return fmt.Errorf("outbox: number the messages of %s %s: %w", g.Key.AggregateType, g.Key.AggregateID, err)
		}
		for i, m := range g.Members {
			behind[m] = len(g.Members) - 1 - i
		}
	}
	for i := range msgs {
		if err := insertRow(ctx, tx, &msgs[i], behind[i]); err != nil {
			return err
		}
	}
	return nil
}

// preparer is a transaction that can keep a statement; *sql.Tx and *sql.Conn can.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// keptTx keeps the statements of one insert: SQLite reads the text of a statement
// for as long as it takes to run it.
type keptTx struct {
	outbox.Tx
	from  preparer
	stmts map[string]*sql.Stmt
}

func (t *keptTx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := t.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.from.PrepareContext(ctx, query)
	if err == nil {
		t.stmts[query] = stmt
	}
	return stmt, err
}

// ExecContext implements Tx. The statement itself is not cancelled, which would
// cost more than it takes; the transaction is.
func (t *keptTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.WithoutCancel(ctx), args...)
}

func (t *keptTx) close() {
	for _, stmt := range t.stmts {
		_ = stmt.Close() // the transaction has its errors
	}
}

func insertRow(ctx context.Context, tx outbox.Tx, m *outbox.Message, behind int) error {
	headers, err := table.EncodeHeaders(m.Headers)
	if err != nil {
		return fmt.Errorf("outbox: message %s: encode headers: %w", m.ID, err)
	}
	payload := m.Payload
	if payload == nil {
		payload = []byte{}
	}
	at := m.CreatedAt.UnixMicro()
	res, err := tx.ExecContext(ctx, sqliteInsert, m.ID, m.Tenant, m.Destination, m.AggregateType, m.AggregateID, m.Type, payload, m.ContentType, headers, behind, at)
	if err != nil {
		return fmt.Errorf("outbox: insert message %s: %w", m.ID, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("outbox: insert message %s: %w", m.ID, err)
	}
	if n == 0 {
		return fmt.Errorf("outbox: insert message %s: %w", m.ID, outbox.ErrDuplicate)
	}
	return nil
}
