package bench

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

// benchChanges is how many business transactions of each kind are compared.
const benchChanges = 300

// The rows of one message by hand: the number under the lock of the aggregate's
// head, and the message.
const (
	handHead     = `insert into floor_head values (0, ?, ?, 1) on conflict (tenant, aggregatetype, aggregateid) do update set seq = seq + 1 returning seq`
	handPostgres = `with h as (insert into floor_head values (0, $2, $3, 1)
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = floor_head.seq + 1 returning seq)
		insert into outbox_floor (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select $1::text::uuid, 0, '', $2, $3, $4, $5, $6, '{}', h.seq, $7, $7 from h`
)

// cost tells what the library costs a business transaction: how much longer one
// with a change and a message takes through a unit of work than with the same
// rows by hand. The two kinds take turns, and their medians are compared.
func (b *outboxBench) cost(ctx context.Context) error {
	schema, err := b.floorSchema()
	if err == nil {
		_, err = b.db.DB.ExecContext(ctx, "create table change_of_business (n integer not null);"+schema)
	}
	if err != nil {
		return fmt.Errorf("bench: make the tables of a business: %w", err)
	}
	unit := b.unit(nil)
	var with, without []time.Duration
	for n := range min(benchChanges, b.Messages) {
		took, err := b.timed(func() error {
			if err := unit.Add(ctx, benchMessage(n)); err != nil {
				return err
			}
			return unit.Do(ctx, func(ctx context.Context, tx *sql.Tx) error { return change(ctx, tx, n) })
		})
		if err != nil {
			return err
		}
		with = append(with, took)
		if took, err = b.timed(func() error { return b.changeBare(ctx, n) }); err != nil {
			return err
		}
		without = append(without, took)
	}
	slices.Sort(with)
	slices.Sort(without)
	one, bare := quantile(with, 50), quantile(without, 50)
	b.Told(fmt.Sprintf("a business transaction with a message takes %.2f ms, with the same rows by hand %.2f ms: %+.0f %%", one, bare, 100*(one-bare)/bare))
	_, err = b.db.DB.ExecContext(ctx, dropFloor+"; drop table change_of_business; delete from outbox")
	return err
}

func change(ctx context.Context, tx *sql.Tx, n int) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("insert into change_of_business values (%d)", n))
	return err
}

func (b *outboxBench) changeBare(ctx context.Context, n int) error {
	tx, err := b.db.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := change(ctx, tx, n); err != nil {
		return err
	}
	m := benchMessage(n)
	m.CreatedAt = b.Now()
	m.ID = outbox.NewID(m.CreatedAt)
	if b.db.Dialect == relay.SQLite {
		at := m.CreatedAt.UnixMicro()
		err = tx.QueryRowContext(ctx, handHead, m.AggregateType, m.AggregateID).Scan(&m.Seq)
		if err == nil {
			_, err = tx.ExecContext(ctx, floorSQLite, m.ID, m.AggregateType, m.AggregateID, m.Type, m.Payload, m.ContentType, m.Seq, at, at)
		}
	} else {
		_, err = tx.ExecContext(ctx, handPostgres, m.ID, m.AggregateType, m.AggregateID, m.Type, m.Payload, m.ContentType, m.CreatedAt)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}
