package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	textEventInsert statement = `insert into sent_event (tenant, name, key, id, data, sent_at, keep_until)
		values ($1::bigint, $2::text, $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz) on conflict do nothing returning 1`
	textEventOfID statement = `select id, name, key, data, sent_at from sent_event where tenant = $1::bigint and id = $2::text`

	// serves is the condition under which event e may be given to wait w: it was
	// open when the event was sent, however late it is now, or opened while the
	// event was kept; and the event did not start the run.
	serves = `e.id <> w.not_event and (w.opened_at <= e.sent_at or w.opened_at < e.keep_until)`

	textEventExpire statement = `with x as materialized (
			select e.tenant, e.id from sent_event e where e.keep_until > $3::timestamptz and e.keep_until <= $1::timestamptz
			and not exists (select 1 from wait w where w.name = e.name and w.key = e.key and w.tenant = e.tenant and ` + serves + `)
			order by e.keep_until limit $2::bigint for update skip locked),
		d as (delete from sent_event e using x where e.tenant = x.tenant and e.id = x.id returning 1)
		select count(*) from d`

	textEventLowest statement = `select keep_until from sent_event where keep_until > $1::timestamptz order by keep_until limit 1`

	// Pairs: for each wait the oldest event that serves it, and when the later of
	// both came. With a name the waits are found by their index. Without one all
	// are looked at, but only those that opened, or whose event was sent, since
	// the floor: a pair is made by the later of the two.
	textPairsOf  statement = textPairs + `wait w` + textOldest + ` and w.name = $3::text and w.key = $4::text` + textPairsOrder
	textPairsNew statement = `with k as materialized (select distinct e.name, e.key, e.tenant from sent_event e where e.sent_at > $3::timestamptz),
		w as materialized (select w.* from wait w where w.opened_at > $3::timestamptz union select x.* from k cross join lateral
			(select w.* from wait w where w.name = k.name and w.key = k.key and w.tenant = k.tenant offset 0) x) ` +
		textPairs + `w` + textOldest + textPairsOrder

	textPairs  = `select w.tenant, w.run, w.step, e.id, e.name, e.key, e.data, e.sent_at, greatest(w.opened_at, e.sent_at) from `
	textOldest = ` cross join lateral (select e.* from sent_event e where e.tenant = w.tenant and e.name = w.name and e.key = w.key and ` + serves + `
			order by e.sent_at, e.id limit 1) e
		where ($1::bigint = 0 or w.tenant = $1::bigint)`
	textPairsOrder = ` order by e.sent_at, e.id, w.tenant, w.run, w.step limit $2::bigint`
)

// Send implements store.Events. What stands in the way of the insert is read in
// the same message: another one's insert was waited for.
func (s *Store) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keepUntil time.Time) (bool, error) {
	created := false
	insert := &call{statement: textEventInsert, row: func(cells) error {
		created = true
		return nil
	}}
	insert.int(int64(tenant))
	insert.text(e.Name)
	insert.text(e.Key)
	insert.text(e.ID)
	insert.bytes(e.Data)
	insert.time(e.SentAt)
	insert.time(keepUntil)
	var was ringi.SentEvent
	known := &call{statement: textEventOfID, row: func(row cells) error {
		was = readEvent(row)
		return nil
	}}
	known.int(int64(tenant))
	known.text(e.ID)
	if err := s.change(ctx, insert, known); err != nil {
		return false, badValue(err)
	}
	if !created && (was.Name != e.Name || was.Key != e.Key || !bytes.Equal(was.Data, e.Data)) {
		return false, &store.EventKnown{Event: was}
	}
	return created, nil
}

// readEvent reads id, name, key, data and sent_at.
func readEvent(row cells) ringi.SentEvent {
	return ringi.SentEvent{ID: row.text(0), Name: row.text(1), Key: row.text(2), Data: row.blob(3), SentAt: row.time(4)}
}

// badValue makes an error of a value store.BadWrite.
func badValue(err error) error {
	if faultOf(err) == faultBad && errors.Is(err, store.ErrUnavailable) {
		return &store.BadWrite{Err: err}
	}
	return err
}

// Pairs implements store.Events. The sweep over all begins at a floor. Its pairs
// hold the floor down until they are gone; what a floor hides all the same is
// found when it is next taken away.
func (s *Store) Pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	var list []store.Pair
	var lowest, oldest time.Time
	c := &call{statement: textPairsNew, row: func(row cells) error {
		list = append(list, store.Pair{
			Key: row.key(0), Step: row.text(2), Event: readEvent(row[3:]),
		})
		if came := row.time(8); lowest.IsZero() || came.Before(lowest) {
			lowest = came
		}
		return nil
	}}
	c.int(int64(q.Tenant))
	c.int(int64(max(q.Limit, 0)))
	if q.Name != "" {
		c.statement = textPairsOf
		c.text(q.Name)
		c.text(q.Key)
		err := s.read(ctx, c)
		return list, err
	}
	at := s.floors.look(floorKey{what: floorPairs}, s.floors.latest())
	c.time(at.from)
	calls := []*call{c}
	if at.move {
		calls = append(s.floors.writing(&oldest), c)
	}
	if err := s.read(ctx, calls...); err != nil {
		return nil, err
	}
	if q.Tenant == 0 && len(list) < q.Limit && !at.now.IsZero() {
		s.floors.saw(at, lowest, oldest)
	}
	return list, nil
}

// Expire implements store.Events.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	s.floors.heard(now)
	n := 0
	at := s.floors.look(floorKey{what: floorEvents}, now)
	c := &call{statement: textEventExpire, row: func(row cells) error {
		n = int(row.num(0))
		return nil
	}}
	c.time(now)
	c.int(int64(max(limit, 0)))
	c.time(at.from)
	raise, raised := s.raise(at, textEventLowest)
	if err := away(s.change(ctx, append([]*call{c}, raise...)...)); err != nil {
		return 0, err
	}
	raised()
	return n, nil
}
