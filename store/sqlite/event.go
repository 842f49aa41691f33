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
	s.news.add(tenant, e.Name, e.Key)
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
