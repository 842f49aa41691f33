package postgres

import (
	"context"
	"time"

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

// Rows are taken in the order of their keys, so that nodes which see the same
// workers do not wait for one another in a circle.
const (
	textSight statement = `insert into worker (tenant, name, queue, polled_at, seen_at)
		select * from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[]) order by 1, 2, 3
		on conflict (tenant, name, queue) do update set
			polled_at = greatest(worker.polled_at, excluded.polled_at), seen_at = greatest(worker.seen_at, excluded.seen_at)`
	textUnsee     statement = `delete from worker where seen_at < $1::timestamptz`
	textSightings statement = `select name, queue, polled_at, seen_at from worker where tenant = $1::bigint and seen_at > $2::timestamptz order by name, queue`
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

// Sight implements store.Fleet.
func (s *Store) Sight(ctx context.Context, seen ...store.Sighting) error {
	if len(seen) == 0 {
		return nil
	}
	tenant, worker, queue, polled, at := ints(), texts(), texts(), times(), times()
	latest := seen[0].Seen
	for _, x := range seen {
		tenant.int(int64(x.Tenant))
		worker.text(x.Worker)
		queue.text(x.Queue)
		if x.Polled.IsZero() {
			polled.null()
		} else {
			polled.time(x.Polled)
		}
		at.time(x.Seen)
		if x.Seen.After(latest) {
			latest = x.Seen
		}
	}
	sight := &call{statement: textSight}
	sight.list(tenant, worker, queue, polled, at)
	unsee := &call{statement: textUnsee}
	unsee.time(latest.Add(-store.SightingsKept))
	return away(s.change(ctx, sight, unsee))
}

// Sightings implements store.Fleet.
func (s *Store) Sightings(ctx context.Context, tenant ringi.Tenant, after time.Time) ([]store.Sighting, error) {
	var list []store.Sighting
	c := &call{statement: textSightings, row: func(row cells) error {
		x := store.Sighting{Tenant: tenant, Worker: row.text(0), Queue: row.text(1), Seen: row.time(3)}
		if !row.null(2) {
			x.Polled = row.time(2)
		}
		list = append(list, x)
		return nil
	}}
	c.int(int64(tenant))
	c.time(after)
	err := s.read(ctx, c)
	return list, err
}
