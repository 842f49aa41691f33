package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// A message is due when it is written, and at once if the writer's clock is ahead of
// the database's, by which relays go: it would hold up its key for as long.
//
// A message alone, which is the usual insert, travels as plain parameters; the
// head's row is locked by the statement itself, so that it costs one round trip.
const (
	pgInsertOrdered = `with h as (
			insert into aggregate_head (tenant, aggregatetype, aggregateid, seq) values ($2, $4, $5, 1)
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = aggregate_head.seq + 1 returning seq)
		insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select $1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, h.seq, least($10::timestamptz, clock_timestamp()), $10 from h`
	pgInsertUnordered = `insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		values ($1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, 0, least($10::timestamptz, clock_timestamp()), $10)`

	// Several travel as arrays written as texts, which every driver can pass, and the
	// payloads one behind the other. The heads are written in the order of the keys,
	// and so are their locks. That an id stands already is left to the primary key to
	// find: "on conflict" would look for each first, and write twice.
	pgInsertMany = `with h as (
			insert into aggregate_head (tenant, aggregatetype, aggregateid, seq)
			select tenant, aggregatetype, aggregateid, n from unnest($12::text::bigint[], $13::text::text[], $14::text::text[], $15::text::bigint[])
				with ordinality as k(tenant, aggregatetype, aggregateid, n, ord)
			order by ord
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = aggregate_head.seq + excluded.seq
			returning tenant, aggregatetype, aggregateid, seq)
		insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select m.id, m.tenant, m.destination, m.aggregatetype, m.aggregateid, m.type, substring($7::bytea from m.start for m.size), m.contenttype, m.headers,
			case when m.back < 0 then 0 else h.seq - m.back end, least(m.at, clock_timestamp()), m.at
		from unnest($1::text::uuid[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[],
			$8::text::text[], $9::text::jsonb[], $10::text::bigint[], $11::text::timestamptz[], $16::text::int[], $17::text::int[])
			as m(id, tenant, destination, aggregatetype, aggregateid, type, contenttype, headers, back, at, start, size)
		left join h on m.back >= 0 and (h.tenant, h.aggregatetype, h.aggregateid) = (m.tenant, m.aggregatetype, m.aggregateid)`
)

// Statement is one SQL statement with its arguments, which are texts, numbers,
// bytes and times, so that every driver can send it. Rows is how many rows it
// must report as changed.
type Statement struct {
	SQL  string
	Args []any
	Rows int64
}

// uniqueViolation is the SQLSTATE of a row whose key stands already.
const uniqueViolation = "23505"

// Fault is what an error of the statement means: ErrDuplicate when a message was
// there already, as far as the driver's error says so by a method SQLState, which
// those of pgx and lib/pq do. Nil is nil.
func (s *Statement) Fault(err error) error {
	if err == nil {
		return nil
	}
	var coded interface{ SQLState() string }
	// The numbers of a key have another index, which only a writer can break who
	// gives numbers of his own.
	if errors.As(err, &coded) && coded.SQLState() == uniqueViolation && !strings.Contains(err.Error(), "outbox_key") {
		err = fmt.Errorf("%w (%w)", outbox.ErrDuplicate, err)
	}
	return fmt.Errorf("outbox: insert %d messages: %w", s.Rows, err)
}

// Answer checks the number of rows that the statement changed.
func (s *Statement) Answer(changed int64) error {
	if changed == s.Rows {
		return nil
	}
	return fmt.Errorf("outbox: insert %d messages: the database wrote %d; is there a trigger or a rule on the table?", s.Rows, changed)
}

// InsertStatement checks messages and returns the one statement that writes them
// in PostgreSQL, numbered per aggregate in the order given; for those who send it
// themselves, such as in a pipeline. It must be the last statement of its
// transaction but the commit: it takes the aggregates' head rows, in key order,
// and holds them until the commit. Of no messages at all it makes an error.
func InsertStatement(msgs ...outbox.Message) (Statement, error) {
	groups, err := table.Arrange(msgs)
	if err != nil {
		return Statement{}, err
	}
	switch len(msgs) {
	case 0:
		return Statement{}, fmt.Errorf("outbox: insert of no message; leave the statement out")
	case 1:
		return pgInsertOne(&msgs[0])
	}
	return pgInsertAll(msgs, groups)
}

func pgInsertOne(m *outbox.Message) (Statement, error) {
	headers, err := table.EncodeHeaders(m.Headers)
	if err != nil {
		return Statement{}, fmt.Errorf("outbox: message %s: encode headers: %w", m.ID, err)
	}
	s := Statement{SQL: pgInsertOrdered, Rows: 1}
	if m.Unordered {
		s.SQL = pgInsertUnordered
	}
	payload := m.Payload
	if payload == nil {
		payload = []byte{}
	}
	s.Args = []any{
		m.ID, m.Tenant, m.Destination, m.AggregateType, m.AggregateID, m.Type, payload, m.ContentType, headers,
		m.CreatedAt.Truncate(time.Microsecond).UTC(),
	}
	return s, nil
}

func pgInsertAll(msgs []outbox.Message, groups []table.Group) (Statement, error) {
	behind := make([]int64, len(msgs)) // how far below the head; negative when unordered
	for i := range behind {
		behind[i] = -1
	}
	heads := pgArrays(4, len(groups), 16)
	for _, g := range groups {
		heads[0].number(g.Key.Tenant)
		heads[1].text(g.Key.AggregateType)
		heads[2].text(g.Key.AggregateID)
		heads[3].number(int64(len(g.Members)))
		for j, m := range g.Members {
			behind[m] = int64(len(g.Members) - 1 - j)
		}
	}
	rows := pgArrays(13, len(msgs), 32)
	size := 0
	for i := range msgs {
		size += len(msgs[i].Payload)
	}
	payloads := make([]byte, 0, size)
	for i := range msgs {
		m := &msgs[i]
		headers, err := table.EncodeHeaders(m.Headers)
		if err != nil {
			return Statement{}, fmt.Errorf("outbox: message %s: encode headers: %w", m.ID, err)
		}
		rows[0].plain(m.ID)
		rows[1].number(m.Tenant)
		for column, text := range []string{m.Destination, m.AggregateType, m.AggregateID, m.Type} {
			rows[2+column].text(text)
		}
		rows[11].number(int64(len(payloads) + 1))
		rows[12].number(int64(len(m.Payload)))
		payloads = append(payloads, m.Payload...)
		rows[7].text(m.ContentType)
		rows[8].text(headers)
		rows[9].number(behind[i])
		rows[10].time(m.CreatedAt)
	}
	args := append(pgParams(rows[:11]), pgParams(heads)...)
	args[6] = payloads
	return Statement{SQL: pgInsertMany, Args: append(args, pgParams(rows[11:])...), Rows: int64(len(msgs))}, nil
}

// InsertSQL writes messages in the caller's open transaction of database/sql, as
// Insert does in one of pgx.
func InsertSQL(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	s, err := InsertStatement(msgs...)
	if err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, s.SQL, s.Args...)
	if err != nil {
		return s.Fault(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("outbox: insert %d messages: %w", len(msgs), err)
	}
	return s.Answer(n)
}
