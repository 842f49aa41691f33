package sqlite

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// Send implements store.Events.
func (s *Store) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keepUntil time.Time) (bool, error) {
	created := false
	err := s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) error {
			known, err := c.knownEvent(tenant, e)
			if known || err != nil {
				return err
			}
			n, err := c.exec(stmtEventInsert, int64(tenant), e.Name, e.Key, e.ID, []byte(e.Data), micro(e.SentAt), micro(keepUntil))
			created = n > 0
			return badWrite(0, err)
		})
	})
	return created && err == nil, err
}

// knownEvent reports whether the event is stored; one of its id that differs
// is an error.
func (c *conn) knownEvent(tenant ringi.Tenant, e ringi.SentEvent) (known bool, err error) {
	var other *store.EventKnown
	err = c.query(stmtEventOfID, func(row cells) error {
		was := readEvent(row)
		if was.Name == e.Name && was.Key == e.Key && bytes.Equal(was.Data, e.Data) {
			known = true
		} else {
			other = &store.EventKnown{Event: was}
		}
		return nil
	}, int64(tenant), e.ID)
	if err == nil && !known && other != nil {
		return false, other
	}
	return known, err
}

// readEvent reads id, name, key, data and sent_at.
func readEvent(row cells) ringi.SentEvent {
	return ringi.SentEvent{ID: row.text(0), Name: row.text(1), Key: row.text(2), Data: row.blob(3), SentAt: row.time(4)}
}

// The reads of Pairs: an event of a wait before which no other serves it. With
// a name the waits are found by their index, without one all are looked at.
const (
	textPairs = `select w.tenant, w.run, w.step, e.id, e.name, e.key, e.data, e.sent_at
		from wait w join sent_event e on e.tenant = w.tenant and e.name = w.name and e.key = w.key
		where ` + serves + ` and not exists (select 1 from sent_event o where o.tenant = w.tenant and o.name = w.name and o.key = w.key
			and (o.sent_at, o.id) < (e.sent_at, e.id) and o.id <> w.not_event and (w.opened_at <= o.sent_at or w.opened_at < o.keep_until))
		and (?1 = 0 or w.tenant = ?1)`
	textPairsOrder = ` order by e.sent_at, e.id, w.tenant, w.run, w.step limit ?2`
	textPairsOf    = textPairs + ` and w.name = ?3 and w.key = ?4` + textPairsOrder
	textPairsAll   = textPairs + textPairsOrder
)

// Pairs implements store.Events.
func (s *Store) Pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	text, args := textPairsAll, []any{int64(q.Tenant), int64(max(q.Limit, 0))}
	if q.Name != "" {
		text, args = textPairsOf, append(args, q.Name, q.Key)
	}
	var list []store.Pair
	err := s.each(ctx, text, func(row cells) error {
		list = append(list, store.Pair{
			Key: store.Key{Tenant: ringi.Tenant(row.num(0)), Run: row.run(1)}, Step: row.text(2),
			Event: readEvent(row[3:]),
		})
		return nil
	}, args...)
	return list, err
}

// Expire implements store.Events.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	var n int64
	err := s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) (err error) {
			n, err = c.exec(stmtEventExpire, micro(now), int64(max(limit, 0)))
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return int(n), nil
}

// isEnough reports whether a read was ended by its reader.
func isEnough(err error) bool { return errors.Is(err, errEnough) }
