package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// InsertSQLite writes messages in the caller's open transaction, numbered per
// aggregate in the order given. It is the last thing the transaction should do:
// it takes the aggregates' head rows, in key order, and holds them until the
// commit, which is what makes the numbers follow the order of commits.
//
// Every message is checked before anything is written. After any error, of which
// ErrDuplicate is one, the caller must roll back: some rows may stand already.
func InsertSQLite(ctx context.Context, tx Tx, msgs ...Message) error {
	groups, err := arrange(msgs)
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
		if _, err := tx.ExecContext(ctx, sqliteHead, g.key.Tenant, g.key.AggregateType, g.key.AggregateID, len(g.members)); err != nil {
			return fmt.Errorf("outbox: number the messages of %s %s: %w", g.key.AggregateType, g.key.AggregateID, err)
		}
		for i, m := range g.members {
			behind[m] = len(g.members) - 1 - i
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
	Tx
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

func insertRow(ctx context.Context, tx Tx, m *Message, behind int) error {
	headers, err := encodeHeaders(m.Headers)
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
		return fmt.Errorf("outbox: insert message %s: %w", m.ID, ErrDuplicate)
	}
	return nil
}

// group is the messages of one insert that share a key, as indexes into it.
type group struct {
	key     Key
	members []int
}

// arrange checks messages and groups the ordered ones by key, keys in the order
// in which every writer takes their heads: two writers that took them in
// different orders would wait for each other for ever.
func arrange(msgs []Message) ([]group, error) {
	ids := make(map[string]bool, len(msgs))
	at := make(map[Key]int)
	var groups []group
	for i := range msgs {
		m := &msgs[i]
		if err := m.Check(); err != nil {
			return nil, err
		}
		if m.Seq != 0 {
			return nil, m.fault("seq", fmt.Sprintf("is %d before the insert; leave it 0, the insert assigns it", m.Seq))
		}
		if ids[m.ID] {
			return nil, fmt.Errorf("outbox: insert message %s: %w", m.ID, ErrDuplicate)
		}
		ids[m.ID] = true
		if m.Unordered {
			continue
		}
		g, ok := at[m.Key()]
		if !ok {
			g = len(groups)
			at[m.Key()] = g
			groups = append(groups, group{key: m.Key()})
		}
		groups[g].members = append(groups[g].members, i)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.key.Tenant, b.key.Tenant),
			cmp.Compare(a.key.AggregateType, b.key.AggregateType),
			cmp.Compare(a.key.AggregateID, b.key.AggregateID))
	})
	return groups, nil
}

func encodeHeaders(h map[string]string) (string, error) {
	if len(h) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(h)
	return string(b), err
}

// decodeHeaders reads the column headers, which the schema keeps an object. A
// value that is not a text, from another writer, comes as its JSON: one odd row
// must not stop the claim of all others.
func decodeHeaders(text string) (map[string]string, error) {
	if text == "{}" {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	h := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		h[name] = s
	}
	return h, nil
}
