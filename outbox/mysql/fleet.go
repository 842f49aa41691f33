package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	readClock = `select ` + clock
	alive     = `insert into outbox_relay (destination, relay, lease_end, took_at, failed_at) values (?, ?, ?, ?, ?)
		on duplicate key update lease_end = values(lease_end), took_at = values(took_at), failed_at = values(failed_at)`
	relays = `select count(case when lease_end > ? then 1 end), max(case when relay <> ? then took_at end), max(case when relay <> ? then failed_at end),
		coalesce(min(lease_end), 0) from outbox_relay where destination = ?`
	// Only a row that nobody writes: two relays that waited for each other's would do
	// so for ever.
	gone   = `select relay from outbox_relay where destination = ? and lease_end < ? for update skip locked`
	forget = `delete from outbox_relay where destination = ? and relay = ?`

	mine  = `select part, epoch from outbox_partition where destination = ? and owner = ? order by part`
	stays = ` and owner = ? order by part for update`
	renew = `update outbox_partition set lease_end = ? where destination = ?`
	give  = `update outbox_partition set owner = null, lease_end = 0 where destination = ?`
	// A row that somebody else has locked is being taken or claimed from.
	vacant = `select part, epoch from outbox_partition where destination = ? and (owner is null or lease_end <= ?) order by part limit ? for update skip locked`
	occupy = `update outbox_partition set owner = ?, epoch = epoch + 1, lease_end = ? where destination = ?`

	// forgetRelay is how long a relay that vanished stays in the table, for people.
	forgetRelay = time.Hour
)

var _ outbox.Fleet = (*Outbox)(nil)

// Hold implements outbox.Fleet.
func (s *Outbox) Hold(ctx context.Context, h outbox.Hold) (outbox.Held, error) {
	if err := h.Check(); err != nil {
		return outbox.Held{}, err
	}
	l := s.lookOf(h.Destination, h.By)
	l.mu.Lock()
	err := s.meet(ctx, l, h.Destination)
	l.mu.Unlock()
	var held outbox.Held
	if err == nil {
		err = s.write(ctx, func(tx *sql.Tx) (err error) {
			held, err = hold(ctx, tx, h)
			return err
		})
	}
	if err != nil {
		return outbox.Held{}, fmt.Errorf("outbox: hold partitions: %w", err)
	}
	return held, nil
}

func hold(ctx context.Context, tx *sql.Tx, h outbox.Hold) (outbox.Held, error) {
	held := outbox.Held{Now: h.Now}
	if h.Now.IsZero() {
		var now int64
		if err := tx.QueryRowContext(ctx, readClock).Scan(&now); err != nil {
			return held, err
		}
		held.Now = table.Time(now)
	}
	end := held.Now.Add(h.Lease).UnixMicro()
	if _, err := tx.ExecContext(ctx, alive, h.Destination, h.By, end, orNull(h.Took), orNull(h.Failed)); err != nil {
		return held, err
	}
	if err := meetRelays(ctx, tx, h, &held); err != nil {
		return held, err
	}
	own, err := lockOwn(ctx, tx, h)
	if err != nil {
		return held, err
	}
	most := table.Share(held.Relays)
	kept := own[:min(most, len(own))]
	if extra := own[len(kept):]; len(extra) > 0 {
		if _, err := tx.ExecContext(ctx, give+these(extra), h.Destination); err != nil {
			return held, err
		}
	}
	if len(kept) > 0 {
		if _, err := tx.ExecContext(ctx, renew+these(kept), end, h.Destination); err != nil {
			return held, err
		}
	}
	held.Partitions = kept
	if len(kept) < most && len(kept) == len(own) {
		taken, err := occupyVacant(ctx, tx, h, held.Now.UnixMicro(), end, most-len(kept))
		if err != nil {
			return held, err
		}
		held.Partitions = append(held.Partitions, taken...)
		slices.SortFunc(held.Partitions, func(a, b outbox.Partition) int { return a.Number - b.Number })
	}
	return held, nil
}

// meetRelays counts the relays that are alive, hears what the others saw of the
// destination, and forgets those that are long gone.
func meetRelays(ctx context.Context, tx *sql.Tx, h outbox.Hold, held *outbox.Held) error {
	var took, failed sql.NullInt64
	var oldest int64
	if err := tx.QueryRowContext(ctx, relays, held.Now.UnixMicro(), h.By, h.By, h.Destination).Scan(&held.Relays, &took, &failed, &oldest); err != nil {
		return err
	}
	if took.Valid {
		held.Took = table.Time(took.Int64)
	}
	if failed.Valid {
		held.Failed = table.Time(failed.Int64)
	}
	before := held.Now.Add(-forgetRelay).UnixMicro()
	if oldest >= before {
		return nil
	}
	names, err := texts(tx.QueryContext(ctx, gone, h.Destination, before))
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.ExecContext(ctx, forget, h.Destination, name); err != nil {
			return err
		}
	}
	return nil
}

// lockOwn locks the relay's partitions and no others: a search for them that locks
// would wait for every relay that is claiming.
func lockOwn(ctx context.Context, tx *sql.Tx, h outbox.Hold) ([]outbox.Partition, error) {
	own, err := partitions(tx.QueryContext(ctx, mine, h.Destination, h.By))
	if err != nil || len(own) == 0 {
		return own, err
	}
	return partitions(tx.QueryContext(ctx, lock+these(own)+stays, h.Destination, h.By))
}

// occupyVacant takes free partitions.
func occupyVacant(ctx context.Context, tx *sql.Tx, h outbox.Hold, now, end int64, most int) ([]outbox.Partition, error) {
	found, err := partitions(tx.QueryContext(ctx, vacant, h.Destination, now, most))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, occupy+these(found), h.By, end, h.Destination); err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Epoch++
	}
	return found, nil
}

// orNull is null for the zero time.
func orNull(at time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: at.UnixMicro(), Valid: !at.IsZero()}
}

func partitions(rows *sql.Rows, err error) ([]outbox.Partition, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []outbox.Partition{} // never nil: that would mean all
	for rows.Next() {
		var p outbox.Partition
		if err := rows.Scan(&p.Number, &p.Epoch); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// these is the condition for partitions, of which there is at least one.
func these(parts []outbox.Partition) string {
	list := make([]int64, len(parts))
	for i, p := range parts {
		list[i] = int64(p.Number)
	}
	return " and part in " + table.Numbers(list, '(', ')')
}

// texts reads a column.
func texts(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// Leave implements outbox.Fleet.
func (s *Outbox) Leave(ctx context.Context, h outbox.Hold) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		own, err := lockOwn(ctx, tx, h)
		if err == nil && len(own) > 0 {
			_, err = tx.ExecContext(ctx, give+these(own), h.Destination)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, forget, h.Destination, h.By)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("outbox: leave the fleet: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.looks, laneOf{h.Destination, h.By})
	return nil
}
