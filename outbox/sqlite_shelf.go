package outbox

import (
	"context"
	"database/sql"
	"errors"
	"math"
)

// sqliteShelf reads for a choice inside the claim's transaction.
type sqliteShelf struct {
	tx          *sqliteTx
	destination string
	heads       map[Key]row // rows of the last page that have no earlier one
}

// sqliteWhole is what a row of SQLite has besides that by which it is chosen.
type sqliteWhole struct {
	payload                    []byte // nil if it is large
	kind, contentType, headers string
	created                    int64
	attempts                   int
}

// message is the row as it is after its claim.
func (w *sqliteWhole) message(r *row, destination string) ClaimedMessage {
	m := ClaimedMessage{
		Message: Message{
			ID: r.id, Tenant: r.key.Tenant, AggregateType: r.key.AggregateType, AggregateID: r.key.AggregateID, Type: w.kind, Payload: w.payload,
			ContentType: w.contentType, Destination: destination, Unordered: r.seq == 0, Seq: r.seq,
		},
		Attempt: w.attempts + 1, Orphaned: r.state == Claimed, Epoch: r.epoch + 1,
	}
	dated := w.created >= dawn && w.created <= never
	if dated {
		m.CreatedAt = fromMicro(w.created)
	}
	m.read(w.headers, dated)
	return m
}

func (sh *sqliteShelf) tenants(ctx context.Context) ([]int64, error) {
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

func (sh *sqliteShelf) due(ctx context.Context, tenant, now int64, last row) ([]row, bool, error) {
	sh.heads = map[Key]row{}
	if last.id == "" {
		last.nextAt = math.MinInt64 // another writer may give any number
	}
	rows, err := sh.list(sh.tx.stmt(ctx, sqliteDue).QueryContext(ctx, sh.destination, tenant, now, last.nextAt, last.n, page))
	return rows, len(rows) < page, err
}

// runs asks only about keys of which the page has a row that is not their head,
// or several: one query after the other, each dearer than all it brings.
func (sh *sqliteShelf) runs(ctx context.Context, most map[Key]int) (map[Key][]row, error) {
	stmt := sh.tx.stmt(ctx, sqliteRun)
	// A statement that can be cancelled costs more than these take: the driver
	// and database/sql each begin a goroutine to watch for it.
	whole := context.WithoutCancel(ctx)
	runs := make(map[Key][]row, len(most))
	for key, n := range most {
		if head, is := sh.heads[key]; is && n == 1 {
			runs[key] = []row{head}
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

func (sh *sqliteShelf) list(rows *sql.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []row
	for rows.Next() {
		var r row
		var w sqliteWhole
		var behind bool
		if err := rows.Scan(&r.n, &r.id, &r.key.Tenant, &r.key.AggregateType, &r.key.AggregateID, &r.seq, &r.state, &r.epoch, &r.nextAt, &r.lease, &r.size,
			&w.payload, &w.kind, &w.contentType, &w.headers, &w.created, &w.attempts, &behind); err != nil {
			return nil, err
		}
		r.whole = &w
		if r.lease > 0 {
			r.state = Claimed
		}
		if r.seq > 0 && !behind {
			sh.heads[r.key] = r
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
