package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

// The floor is what nobody can leave out: the rows are inserted, read and
// published. No message is claimed or marked, and no number is drawn for it.
const (
	floorSQLite = `insert into outbox_floor (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		values (?, 0, '', ?, ?, ?, ?, ?, '{}', ?, ?, ?)`
	floorPostgres = `insert into outbox_floor (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select id::uuid, 0, '', aggregatetype, aggregateid, type, payload, contenttype, '{}', seq, at, at
		from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::bigint[], $8::timestamptz[])
			as r(id, aggregatetype, aggregateid, type, payload, contenttype, seq, at)`

	floorReadSQLite   = `select id, aggregatetype, aggregateid, type, payload, contenttype, seq, created_at from outbox_floor where id > ? order by id limit ?`
	floorReadPostgres = `select id::text, aggregatetype, aggregateid, type, payload, contenttype, seq, created_at from outbox_floor where id > $1::text::uuid order by outbox_floor.id limit `

	dropFloor = `drop table outbox_floor; drop table floor_head`

	beforeAll = "00000000-0000-0000-0000-000000000000"
)

// floorSchema is the tables of messages and of heads under other names, with their
// keys and indexes: they belong to the rows, whoever writes them.
func (b *outboxBench) floorSchema() (string, error) {
	schema, err := b.db.Dialect.Schema()
	if err != nil {
		return "", err
	}
	var own []string
	for text := range strings.SplitAfterSeq(schema, ";\n") {
		head, _, _ := strings.Cut(text, "(")
		ofRelays := slices.ContainsFunc([]string{"outbox_claim", "outbox_partition", "outbox_relay", "outbox_change"}, func(name string) bool { return strings.Contains(head, name) })
		if (strings.Contains(head, " outbox") || strings.Contains(head, " aggregate_head")) && !ofRelays {
			text = strings.ReplaceAll(text, "outbox_", "floor_")
			text = strings.ReplaceAll(text, "aggregate_head", "floor_head")
			text = strings.ReplaceAll(text, "exists outbox (", "exists outbox_floor (")
			own = append(own, strings.ReplaceAll(text, "on outbox (", "on outbox_floor ("))
		}
	}
	return strings.Join(own, ""), nil
}

// floor measures count messages.
func (b *outboxBench) floor(ctx context.Context, count int) (time.Duration, error) {
	schema, err := b.floorSchema()
	if err == nil {
		_, err = b.db.DB.ExecContext(ctx, schema)
	}
	if err != nil {
		return 0, fmt.Errorf("bench: make the table of the floor: %w", err)
	}
	n := 0
	wrote, err := b.timed(func() error {
		return b.batches(count, func(msgs []outbox.Message) error {
			at := b.Now()
			for i := range msgs {
				msgs[i].ID, msgs[i].CreatedAt, msgs[i].Seq = outbox.NewID(at), at, int64(n/benchAggregates+1)
				n++
			}
			return b.insertBare(ctx, msgs)
		})
	})
	if err != nil {
		return 0, fmt.Errorf("bench: insert the rows of the floor: %w", err)
	}
	if b.db.Dialect == relay.Postgres {
		// Or each read would sort the whole table, for want of statistics.
		if _, err := b.db.DB.ExecContext(ctx, "analyze outbox_floor"); err != nil {
			return 0, err
		}
	}
	published, err := b.timed(func() error { return b.publishBare(ctx, count) })
	if err != nil {
		return 0, err
	}
	b.Told(fmt.Sprintf("floor: %d rows written in %.2f s, read and published in %.2f s", count, wrote.Seconds(), published.Seconds()))
	_, err = b.db.DB.ExecContext(ctx, dropFloor)
	return wrote + published, err
}

// insertBare inserts one batch in the quickest way that the database has.
func (b *outboxBench) insertBare(ctx context.Context, msgs []outbox.Message) error {
	tx, err := b.db.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if b.db.Dialect == relay.SQLite {
		err = insertSQLite(ctx, tx, msgs)
	} else {
		err = insertPostgres(ctx, tx, msgs)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

func insertSQLite(ctx context.Context, tx *sql.Tx, msgs []outbox.Message) error {
	stmt, err := tx.PrepareContext(ctx, floorSQLite)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i := range msgs {
		m := &msgs[i]
		at := m.CreatedAt.UnixMicro()
		if _, err := stmt.ExecContext(ctx, m.ID, m.AggregateType, m.AggregateID, m.Type, m.Payload, m.ContentType, m.Seq, at, at); err != nil {
			return err
		}
	}
	return nil
}

func insertPostgres(ctx context.Context, tx *sql.Tx, msgs []outbox.Message) error {
	n := len(msgs)
	ids, kinds, aggregates, types, contents := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	payloads, seqs, times := make([][]byte, n), make([]int64, n), make([]time.Time, n)
	for i := range msgs {
		m := &msgs[i]
		ids[i], kinds[i], aggregates[i], types[i], contents[i] = m.ID, m.AggregateType, m.AggregateID, m.Type, m.ContentType
		payloads[i], seqs[i], times[i] = m.Payload, m.Seq, m.CreatedAt
	}
	_, err := tx.ExecContext(ctx, floorPostgres, ids, kinds, aggregates, types, payloads, contents, seqs, times)
	return err
}

// publishBare reads the rows and publishes them, a batch after the other.
func (b *outboxBench) publishBare(ctx context.Context, count int) error {
	last := beforeAll
	for done := 0; done < count; {
		msgs, err := b.readBare(ctx, last)
		if err != nil {
			return fmt.Errorf("bench: read the rows of the floor: %w", err)
		}
		if len(msgs) == 0 {
			return fmt.Errorf("bench: %d rows of the floor are left of %d", done, count)
		}
		if err := errors.Join(b.sink.Publish(ctx, msgs)...); err != nil {
			return fmt.Errorf("bench: publish: %w", err)
		}
		done += len(msgs)
		last = msgs[len(msgs)-1].ID
	}
	return nil
}

func (b *outboxBench) readBare(ctx context.Context, after string) ([]outbox.Message, error) {
	// The limit stands in the text for PostgreSQL, which plans to read and sort the
	// whole table for one that it does not know.
	query, args := floorReadPostgres+strconv.Itoa(b.Batch), []any{after}
	if b.db.Dialect == relay.SQLite {
		query, args = floorReadSQLite, []any{after, b.Batch}
	}
	rows, err := b.db.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	msgs := make([]outbox.Message, 0, b.Batch)
	for rows.Next() {
		var m outbox.Message
		var at any
		if err := rows.Scan(&m.ID, &m.AggregateType, &m.AggregateID, &m.Type, &m.Payload, &m.ContentType, &m.Seq, &at); err != nil {
			return nil, err
		}
		switch at := at.(type) {
		case int64:
			m.CreatedAt = time.UnixMicro(at)
		case time.Time:
			m.CreatedAt = at
		}
		msgs = append(msgs, m)
	}
	return msgs, rows.Err()
}
