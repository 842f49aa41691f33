package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// sqliteShelf reads for a choice inside the claim's transaction.
type sqliteShelf struct {
	tx          *sqliteTx
	destination string
	hands       table.Hands              // what living claims have
	skip        string                   // where some of it stands, as JSON
	heads       map[outbox.Key]table.Row // rows of the last page that have no earlier one
}

// sqliteWhole is what a row of SQLite has besides that by which it is chosen.
type sqliteWhole struct {
	payload                    []byte // nil if it is large
	kind, contentType, headers string
	created                    int64
	attempts                   int
}

// message is the row as it is after its claim.
func (w *sqliteWhole) message(r *table.Row, destination string, epoch int64) outbox.ClaimedMessage {
	m := outbox.ClaimedMessage{
		Message: outbox.Message{
			ID: r.ID, Tenant: r.Key.Tenant, AggregateType: r.Key.AggregateType, AggregateID: r.Key.AggregateID, Type: w.kind, Payload: w.payload,
			ContentType: w.contentType, Destination: destination, Unordered: r.Seq == 0, Seq: r.Seq,
		},
		Attempt: w.attempts + 1, Orphaned: r.State == outbox.Claimed, Epoch: epoch,
	}
	dated := w.created >= table.Dawn && w.created <= table.Never
	if dated {
		m.CreatedAt = table.Time(w.created)
	}
	table.Read(&m, w.headers, dated)
	return m
}

func (sh *sqliteShelf) Tenants(ctx context.Context) ([]int64, error) {
	stmt := sh.tx.stmt(ctx, sqliteTenant)
	var list []int64
	for last := int64(-1); ; {
		err := stmt.QueryRowContext(ctx, sh.destination, last).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, last)
	}
}

func (sh *sqliteShelf) Due(ctx context.Context, tenant, now int64, last table.Row) ([]table.Row, bool, error) {
	sh.heads = map[outbox.Key]table.Row{}
	if last.ID == "" {
		last.NextAt = math.MinInt64 // another writer may give any number
	}
	for {
		rows, err := sh.list(sh.tx.stmt(ctx, sqliteDue).QueryContext(ctx, sh.destination, tenant, now, last.NextAt, last.N, table.Page, sh.skip))
		if err != nil || len(rows) == 0 {
			return nil, true, err
		}
		end := len(rows) < table.Page
		last = rows[len(rows)-1]
		if rows = sh.hands.Free(rows); len(rows) > 0 || end {
			return rows, end, nil
		}
	}
}

// runs asks only about keys of which the page has a row that is not their head,
// or several: one query after the other, each dearer than all it brings.
func (sh *sqliteShelf) Runs(ctx context.Context, most map[outbox.Key]int) (map[outbox.Key][]table.Row, error) {
	stmt := sh.tx.stmt(ctx, sqliteRun)
	// A statement that can be cancelled costs more than these take: the driver
	// and database/sql each begin a goroutine to watch for it.
	whole := context.WithoutCancel(ctx)
	runs := make(map[outbox.Key][]table.Row, len(most))
	for key, n := range most {
		if head, is := sh.heads[key]; is && n == 1 {
			runs[key] = []table.Row{head}
			continue
		}
		run, err := sh.list(stmt.QueryContext(whole, key.Tenant, key.AggregateType, key.AggregateID, sh.destination, n))
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		runs[key] = run
	}
	return runs, nil
}

func (sh *sqliteShelf) list(rows *sql.Rows, err error) ([]table.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []table.Row
	for rows.Next() {
		var r table.Row
		var w sqliteWhole
		var behind bool
		if err := rows.Scan(&r.N, &r.ID, &r.Key.Tenant, &r.Key.AggregateType, &r.Key.AggregateID, &r.Seq, &r.State, &r.Epoch, &r.NextAt, &r.Lease, &r.Size,
			&w.payload, &w.kind, &w.contentType, &w.headers, &w.created, &w.attempts, &behind); err != nil {
			return nil, err
		}
		r.Whole = &w
		if r.Lease > 0 {
			r.State = outbox.Claimed
		}
		sh.hands.Show(&r)
		if r.Seq > 0 && !behind {
			sh.heads[r.Key] = r
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
