package postgres

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
	pgClock = `select clock_timestamp()`
	pgAlive = `insert into outbox_relay (destination, relay, lease_end, took_at, failed_at) values ($1, $2, $3, $4, $5)
		on conflict (destination, relay) do update set lease_end = excluded.lease_end, took_at = excluded.took_at, failed_at = excluded.failed_at`
	// Relays that are long gone are forgotten on the way.
	pgGone   = `delete from outbox_relay where destination = $1 and lease_end < $2`
	pgRelays = `select count(*) filter (where lease_end > $2), max(took_at) filter (where relay <> $3), max(failed_at) filter (where relay <> $3)
		from outbox_relay where destination = $1`
	pgMine  = `select part, epoch from outbox_partition where destination = $1 and owner = $2 order by part for no key update`
	pgRenew = `update outbox_partition set lease_end = $3 where destination = $1 and part = any ($2::text::smallint[])`
	pgGive  = `update outbox_partition set owner = null, lease_end = 'epoch' where destination = $1 and part = any ($2::text::smallint[])`
	// A row that somebody else has locked is being taken or claimed from.
	pgFree = `update outbox_partition set owner = $2, epoch = epoch + 1, lease_end = $3
		where destination = $1 and part in (select part from outbox_partition
			where destination = $1 and (owner is null or lease_end <= $4) order by part limit $5 for no key update skip locked)
		returning part, epoch`
	pgLeaveParts = `update outbox_partition set owner = null, lease_end = 'epoch' where destination = $1 and part in (select part from outbox_partition
			where destination = $1 and owner = $2 order by part for no key update)`
	pgLeave = `delete from outbox_relay where destination = $1 and relay = $2`

	// forgetRelay is how long a relay that vanished stays in the table, for people.
	forgetRelay = time.Hour
)

var _ outbox.Fleet = (*Outbox)(nil)

// Hold implements Fleet.
func (s *Outbox) Hold(ctx context.Context, h outbox.Hold) (outbox.Held, error) {
	if err := h.Check(); err != nil {
		return outbox.Held{}, err
	}
	l := s.lookOf(h.Destination, h.By)
	l.mu.Lock()
	err := s.meet(ctx, l, h.Destination)
	l.mu.Unlock()
	if err != nil {
		return outbox.Held{}, fmt.Errorf("outbox: hold partitions: %w", err)
	}
	var held outbox.Held
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		held, err = hold(ctx, tx, h)
		return err
	})
	if err != nil {
		return outbox.Held{}, fmt.Errorf("outbox: hold partitions: %w", err)
	}
	return held, nil
}

func hold(ctx context.Context, tx *sql.Tx, h outbox.Hold) (outbox.Held, error) {
	held := outbox.Held{Now: h.Now}
	if h.Now.IsZero() {
		if err := tx.QueryRowContext(ctx, pgClock).Scan(&held.Now); err != nil {
			return held, err
		}
	}
	end := held.Now.Add(h.Lease)
	if _, err := tx.ExecContext(ctx, pgAlive, h.Destination, h.By, end, orNull(h.Took), orNull(h.Failed)); err != nil {
		return held, err
	}
	if _, err := tx.ExecContext(ctx, pgGone, h.Destination, held.Now.Add(-forgetRelay)); err != nil {
		return held, err
	}
	var took, failed sql.NullTime
	if err := tx.QueryRowContext(ctx, pgRelays, h.Destination, held.Now, h.By).Scan(&held.Relays, &took, &failed); err != nil {
		return held, err
	}
	held.Took, held.Failed = took.Time, failed.Time
	mine, err := partitions(ctx, tx, pgMine, h.Destination, h.By)
	if err != nil {
		return held, err
	}
	most := table.Share(held.Relays)
	kept := mine[:min(most, len(mine))]
	if extra := mine[len(kept):]; len(extra) > 0 {
		if _, err := tx.ExecContext(ctx, pgGive, h.Destination, partNumbers(extra)); err != nil {
			return held, err
		}
	}
	if len(kept) > 0 {
		if _, err := tx.ExecContext(ctx, pgRenew, h.Destination, partNumbers(kept), end); err != nil {
			return held, err
		}
	}
	held.Partitions = kept
	if len(kept) < most && len(kept) == len(mine) {
		taken, err := partitions(ctx, tx, pgFree, h.Destination, h.By, end, held.Now, most-len(kept))
		if err != nil {
			return held, err
		}
		held.Partitions = append(held.Partitions, taken...)
		slices.SortFunc(held.Partitions, func(a, b outbox.Partition) int { return a.Number - b.Number })
	}
	return held, nil
}

// orNull is null for the zero time.
func orNull(at time.Time) sql.NullTime { return sql.NullTime{Time: at, Valid: !at.IsZero()} }

func partitions(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]outbox.Partition, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
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

func partNumbers(parts []outbox.Partition) string {
	list := make([]int64, len(parts))
	for i, p := range parts {
		list[i] = int64(p.Number)
	}
	return table.Numbers(list, '{', '}')
}

// Leave implements Fleet.
func (s *Outbox) Leave(ctx context.Context, h outbox.Hold) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, pgLeaveParts, h.Destination, h.By); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, pgLeave, h.Destination, h.By)
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
