package postgres

import (
	"context"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	textMeet statement = `insert into node (id, version, format, seen_at) values ($1::text, $2::text, $3::bigint, clock_timestamp())
		on conflict (id) do update set version = excluded.version, format = excluded.format, seen_at = excluded.seen_at`
	textForget statement = `delete from node where seen_at < clock_timestamp() - interval '1 hour'`
	textFormat statement = `select value from meta where key = 'format'`
	textSeen   statement = `select id, version, format::bigint from node where seen_at > clock_timestamp() - interval '60 s' order by id`
	textLeave  statement = `delete from node where id = $1::text`
	textRaise  statement = `update meta set value = $1::bigint::text where key = 'format' and value::bigint < $1::bigint
		and not exists (select from node where format < $1::bigint and seen_at > clock_timestamp() - interval '60 s')`
)

var _ store.Fleet = (*Store)(nil)

// Meet implements store.Fleet. Rows of nodes that were killed are kept for an hour.
func (s *Store) Meet(ctx context.Context, n store.Node) (store.Met, error) {
	meet := &call{statement: textMeet}
	meet.text(n.ID)
	meet.text(n.Version)
	meet.int(int64(n.Format))
	met := store.Met{Format: ringi.FirstFormat}
	format := &call{statement: textFormat, row: func(row cells) error {
		met.Format = number(row.text(0))
		return nil
	}}
	seen := &call{statement: textSeen, row: func(row cells) error {
		met.Nodes = append(met.Nodes, store.Node{ID: row.text(0), Version: row.text(1), Format: int(row.num(2))})
		return nil
	}}
	err := s.change(ctx, meet, &call{statement: textForget}, format, seen)
	return met, away(err)
}

// Leave implements store.Fleet.
func (s *Store) Leave(ctx context.Context, id string) error {
	leave := &call{statement: textLeave}
	leave.text(id)
	return away(s.change(ctx, leave))
}

// Raise implements store.Fleet.
func (s *Store) Raise(ctx context.Context, format int) error {
	raise := &call{statement: textRaise}
	raise.int(int64(format))
	return away(s.change(ctx, raise))
}
