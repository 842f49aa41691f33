package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A message alone, which is the usual insert, travels as plain parameters; the
// head's row is locked by the statement itself, so that it costs one round trip.
const (
	pgInsertOrdered = `with h as (
			insert into aggregate_head (tenant, aggregatetype, aggregateid, seq) values ($2, $4, $5, 1)
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = aggregate_head.seq + 1 returning seq)
		insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select $1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, h.seq, $10, $10 from h on conflict (id) do nothing`
	pgInsertUnordered = `insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		values ($1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, 0, $10, $10) on conflict (id) do nothing`

	// Several travel as one JSON text, which every driver can pass. The heads are
	// written in the order of the keys, and so are their locks.
	pgInsertMany = `with m as (
			select * from jsonb_to_recordset($1::text::jsonb) as x(id uuid, tenant bigint, destination text, aggregatetype text, aggregateid text,
				type text, payload text, contenttype text, headers jsonb, back bigint, at timestamptz)),
		h as (
			insert into aggregate_head (tenant, aggregatetype, aggregateid, seq)
			select tenant, aggregatetype, aggregateid, n from jsonb_to_recordset($2::text::jsonb) as k(ord int, tenant bigint, aggregatetype text, aggregateid text, n bigint)
			order by ord
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = aggregate_head.seq + excluded.seq
			returning tenant, aggregatetype, aggregateid, seq)
		insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select m.id, m.tenant, m.destination, m.aggregatetype, m.aggregateid, m.type, decode(m.payload, 'base64'), m.contenttype, m.headers,
			case when m.back < 0 then 0 else h.seq - m.back end, m.at, m.at
		from m left join h on m.back >= 0 and (h.tenant, h.aggregatetype, h.aggregateid) = (m.tenant, m.aggregatetype, m.aggregateid)
		on conflict (id) do nothing`
)

// Statement is one SQL statement with its arguments, which are texts, numbers,
// bytes and times, so that every driver can send it. Rows is how many rows it
// must report as changed; fewer means ErrDuplicate.
type Statement struct {
	SQL  string
	Args []any
	Rows int64
}

// Answer turns the number of rows that the statement changed into its error,
// which is ErrDuplicate when messages were there already.
func (s *Statement) Answer(changed int64) error {
	if changed == s.Rows {
		return nil
	}
	return fmt.Errorf("outbox: insert %d messages, %d of which are new: %w", s.Rows, changed, ErrDuplicate)
}

// PostgresInsert checks messages and returns the one statement that writes them
// in PostgreSQL, numbered per aggregate in the order given; for those who send it
// themselves, such as in a pipeline. It must be the last statement of its
// transaction but the commit: it takes the aggregates' head rows, in key order,
// and holds them until the commit. Of no messages at all it makes an error.
func PostgresInsert(msgs ...Message) (Statement, error) {
	groups, err := arrange(msgs)
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

func pgInsertOne(m *Message) (Statement, error) {
	headers, err := encodeHeaders(m.Headers)
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

// pgMessage and pgHead are the rows of pgInsertMany's parameters.
type (
	pgMessage struct {
		ID            string            `json:"id"`
		Tenant        int64             `json:"tenant"`
		Destination   string            `json:"destination"`
		AggregateType string            `json:"aggregatetype"`
		AggregateID   string            `json:"aggregateid"`
		Type          string            `json:"type"`
		Payload       []byte            `json:"payload"`
		ContentType   string            `json:"contenttype"`
		Headers       map[string]string `json:"headers"`
		Back          int64             `json:"back"` // how far below the head; negative when unordered
		At            time.Time         `json:"at"`
	}
	pgHead struct {
		Ord           int    `json:"ord"`
		Tenant        int64  `json:"tenant"`
		AggregateType string `json:"aggregatetype"`
		AggregateID   string `json:"aggregateid"`
		N             int64  `json:"n"`
	}
)

func pgInsertAll(msgs []Message, groups []group) (Statement, error) {
	rows := make([]pgMessage, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		rows[i] = pgMessage{
			ID: m.ID, Tenant: m.Tenant, Destination: m.Destination, AggregateType: m.AggregateType, AggregateID: m.AggregateID,
			Type: m.Type, Payload: m.Payload, ContentType: m.ContentType, Headers: m.Headers, Back: -1, At: m.CreatedAt.Truncate(time.Microsecond).UTC(),
		}
		if m.Payload == nil {
			rows[i].Payload = []byte{}
		}
		if m.Headers == nil {
			rows[i].Headers = map[string]string{}
		}
	}
	heads := make([]pgHead, len(groups))
	for i, g := range groups {
		n := int64(len(g.members))
		heads[i] = pgHead{Ord: i, Tenant: g.key.Tenant, AggregateType: g.key.AggregateType, AggregateID: g.key.AggregateID, N: n}
		for j, m := range g.members {
			rows[m].Back = n - 1 - int64(j)
		}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return Statement{}, fmt.Errorf("outbox: encode %d messages: %w", len(msgs), err)
	}
	keys, err := json.Marshal(heads)
	if err != nil {
		return Statement{}, fmt.Errorf("outbox: encode the keys of %d messages: %w", len(msgs), err)
	}
	return Statement{SQL: pgInsertMany, Args: []any{string(list), string(keys)}, Rows: int64(len(msgs))}, nil
}

// InsertPostgres writes messages in the caller's open transaction, as
// InsertSQLite does, in one statement. Package outbox/postgres has it for pgx.
func InsertPostgres(ctx context.Context, tx Tx, msgs ...Message) error {
	if len(msgs) == 0 {
		return nil
	}
	s, err := PostgresInsert(msgs...)
	if err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, s.SQL, s.Args...)
	if err != nil {
		return fmt.Errorf("outbox: insert %d messages, the first of which is %s: %w", len(msgs), msgs[0].ID, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("outbox: insert %d messages: %w", len(msgs), err)
	}
	return s.Answer(n)
}
