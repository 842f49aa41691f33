// Package sqlite is the outbox in SQLite: the tables (Schema, Migrate), the insert
// (Insert) and what relays and operators use (Outbox). It works through
// database/sql; the driver is the caller's choice.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/desk"
	"github.com/ringiflow/ringi/outbox/table"
)

// Outbox is the Source and Desk over the tables of Schema. It writes with BEGIN
// IMMEDIATE in short transactions and holds one connection at a time, so that it
// may share a pool of a single connection with the database's other writer,
// which is how SQLite writers wait for each other best. The pool should be opened
// with a busy_timeout; the driver is the caller's choice. Safe for concurrent use.
type Outbox struct {
	outbox.Desk
	db   *sql.DB
	turn atomic.Int64 // the tenant that began the last claim
	kept keptStmts

	known knownHands
}

var _ outbox.Source = (*Outbox)(nil)

// New returns the source over db, which the caller opens and closes and on
// which Schema has been run.
func New(db *sql.DB) *Outbox {
	s := &Outbox{db: db}
	s.Desk = &desk.SQL{Dialect: desk.SQLite, DB: db, Alone: func(ctx context.Context, do func(desk.Tx) error) error {
		return s.write(ctx, func(tx *sqliteTx) error { return do(tx.Tx) })
	}}
	return s
}

const (
	sqliteAnyDue = `select exists (select 1 from outbox indexed by outbox_due where state < 2 and destination = ?1 and next_at <= ?2
		and (lease_end is null or lease_end <= ?2))`
	sqliteTenant = `select tenant from outbox indexed by outbox_due where state < 2 and destination = ? and tenant > ? order by tenant limit 1`

	// A row is read whole at once, since nearly all that are looked at are taken;
	// but not a large payload.
	sqliteRow = `select o.rowid, o.id, o.tenant, o.aggregatetype, o.aggregateid, o.seq, o.state, o.claim_epoch, o.next_at, coalesce(o.lease_end, 0), length(o.payload),
		case when length(o.payload) <= 4096 then o.payload end, o.type, o.contenttype, ` + desk.SQLiteHeaders + `, o.created_at, o.attempts`
	// The last column tells whether an earlier row of the key is undelivered.
	sqliteDue = sqliteRow + `, o.seq > 0 and exists (select 1 from outbox e indexed by outbox_key where e.state < 2 and e.seq > 0 and e.tenant = o.tenant
			and e.aggregatetype = o.aggregatetype and e.aggregateid = o.aggregateid and e.destination = o.destination and e.seq < o.seq)
		from outbox o indexed by outbox_due where o.state < 2 and o.destination = ?1 and o.tenant = ?2
		and o.next_at <= ?3 and (o.lease_end is null or o.lease_end <= ?3) and (o.next_at, o.rowid) > (?4, ?5)
		and o.rowid not in (select value from json_each(?7)) order by o.next_at, o.rowid limit ?6`
	sqliteRun = sqliteRow + `, 0 from outbox o indexed by outbox_key where o.state < 2 and o.seq > 0
		and o.tenant = ? and o.aggregatetype = ? and o.aggregateid = ? and o.destination = ? order by o.seq limit ?`
	sqlitePayload = `select payload from outbox where rowid = ?`

	// Takes the write lock at the beginning of a transaction.
	sqliteLock = `update outbox set state = state where rowid = -1`

	// Or fail: after an error the transaction is rolled back anyway, and a statement
	// that can be undone alone keeps a journal of its own for that.
	sqliteSetBack = `update or fail outbox set next_at = j.value ->> 1 from json_each(?) j where outbox.rowid = j.value ->> 0`
	sqliteClaim   = `update or fail outbox set attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = ?, lease_end = ?
		where rowid = ?`

	// The attempt of a claim that wrote no rows is counted here.
	sqliteMark = `update outbox set state = ?1, next_at = coalesce(?2, next_at), attempts = attempts - ?3 + (?6 < 0), claim_epoch = claim_epoch + (?6 < 0),
		delivered_at = null, last_error = coalesce(?4, last_error), claimed_by = null, lease_end = null
		where id = ?5 and iif(?6 < 0, state = 0 and lease_end is null, claim_epoch = ?6 and lease_end is not null)`
	// Deliveries, which are nearly all marks, in one statement.
	sqliteLight = `update or fail outbox set state = 2, delivered_at = ?, attempts = attempts + 1, claim_epoch = claim_epoch + 1, last_error = null, claimed_by = null
		from json_each(?) j where outbox.id = j.value and outbox.state = 0 and outbox.lease_end is null`
	sqliteDelivered = `update or fail outbox set state = 2, delivered_at = ?, last_error = null, claimed_by = null, lease_end = null from json_each(?) j
		where outbox.id = j.value ->> 0 and outbox.claim_epoch = j.value ->> 1 and outbox.lease_end is not null`

	sqlitePrune = `delete from outbox where rowid in (select rowid from outbox indexed by outbox_delivered
		where state = 2 and delivered_at < ? order by delivered_at limit ?)`
	sqliteStats = `with held as (select count(*) as n, count(*) filter (where o.attempts > 0) as failing from outbox_claim c, json_each(c.messages) j
			join outbox o on o.id = j.value where o.state = 0 and o.lease_end is null)
		select count(*) filter (where state = 0 and lease_end is null) - (select n from held), count(lease_end) + (select n from held), count(*) filter (where state = -1),
			count(*) filter (where state = 0 and lease_end is null and attempts > 0) - (select failing from held),
			min(iif(created_at between -62135596800000000 and 253402300799000000, created_at, null)) from outbox indexed by outbox_due where state < 2`
	sqliteDead = `select count(*) from outbox indexed by outbox_dead where state = 3`
)

// Claim implements Source. An idle table is found idle without the write lock.
func (s *Outbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	if err := c.Check(); err != nil {
		return outbox.Batch{}, err
	}
	look, err := s.kept.get(ctx, s.db, sqliteAnyDue)
	var due bool
	if err == nil {
		err = look.QueryRowContext(ctx, c.Destination, c.Now.UnixMicro()).Scan(&due)
	}
	if err != nil {
		return outbox.Batch{}, fmt.Errorf("outbox: claim: look for due messages: %w", err)
	}
	if !due {
		return outbox.Batch{}, nil
	}
	var batch outbox.Batch
	err = s.write(ctx, func(tx *sqliteTx) error {
		hands, rows, err := s.inHand(ctx, tx, c)
		if err != nil {
			return err
		}
		ch, err := table.Choose(ctx, &sqliteShelf{tx: tx, destination: c.Destination, hands: hands, skip: table.Numbers(rows, '[', ']')}, c, s.turn.Load())
		if err != nil {
			return err
		}
		batch = outbox.Batch{More: ch.More}
		if err := setBack(ctx, tx, ch.Setbacks); err != nil || len(ch.Rows) == 0 {
			return err
		}
		s.turn.Store(ch.Rows[0].Key.Tenant)
		batch.Messages, err = s.takeRows(ctx, tx, c, ch.Rows)
		return err
	})
	if err != nil {
		return outbox.Batch{}, fmt.Errorf("outbox: claim: %w", err)
	}
	return batch, nil
}

func setBack(ctx context.Context, tx *sqliteTx, setbacks []table.Setback) error {
	if len(setbacks) == 0 {
		return nil
	}
	pairs := make([][2]int64, len(setbacks))
	for i, b := range setbacks {
		pairs[i] = [2]int64{b.Row.N, b.NextAt}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	_, err = tx.stmt(ctx, sqliteSetBack).ExecContext(ctx, string(list))
	return err
}

// takeRows claims the chosen rows and returns them as messages, in order. One that was
// claimed before and not marked is alone, and is written; so is each that comes back
// from a claim whose lease ended, and so a row that kills its relay counts its claims.
func (s *Outbox) takeRows(ctx context.Context, tx *sqliteTx, c outbox.Claim, chosen []table.Row) ([]outbox.ClaimedMessage, error) {
	epoch := int64(0)
	if chosen[0].State == outbox.Claimed {
		if _, err := tx.stmt(ctx, sqliteClaim).ExecContext(ctx, c.By, c.Now.Add(c.Lease).UnixMicro(), chosen[0].N); err != nil {
			return nil, err
		}
		epoch = chosen[0].Epoch + 1
	} else {
		claim, err := s.holdRows(ctx, tx, c, chosen)
		if err != nil {
			return nil, err
		}
		epoch = table.Epoch(claim)
	}
	msgs := make([]outbox.ClaimedMessage, len(chosen))
	for i := range chosen {
		r := &chosen[i]
		whole := r.Whole.(*sqliteWhole)
		if whole.payload == nil && r.Size > 0 {
			if err := tx.stmt(ctx, sqlitePayload).QueryRowContext(ctx, r.N).Scan(&whole.payload); err != nil {
				return nil, err
			}
		}
		msgs[i] = whole.message(r, c.Destination, epoch)
	}
	return msgs, nil
}

// Mark implements Source.
func (s *Outbox) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	var applied int64
	err := s.write(ctx, func(tx *sqliteTx) error {
		marks, err := settle(ctx, tx, marks)
		if err != nil {
			return err
		}
		if applied, err = markDelivered(ctx, tx, at, marks); err != nil {
			return err
		}
		stmt := tx.stmt(ctx, sqliteMark)
		for _, m := range marks {
			if m.Outcome == outbox.MarkDelivered {
				continue
			}
			n, err := markRow(ctx, stmt, m)
			if err != nil {
				return fmt.Errorf("message %s: %w", m.ID, err)
			}
			applied += n
			if m.Outcome == outbox.MarkDead {
				crash.At(crash.DeadLetter)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	return int(applied), nil
}

func markDelivered(ctx context.Context, tx *sqliteTx, at time.Time, marks []outbox.Mark) (applied int64, err error) {
	heavy, light, err := split(marks)
	if err != nil {
		return 0, err
	}
	for query, list := range map[string][]byte{sqliteDelivered: heavy, sqliteLight: light} {
		if list == nil {
			continue
		}
		res, err := tx.stmt(ctx, query).ExecContext(ctx, at.UnixMicro(), string(list))
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		applied += n
	}
	return applied, nil
}

func markRow(ctx context.Context, stmt *sql.Stmt, m outbox.Mark) (int64, error) {
	var nextAt, reason any
	state, giveBack := outbox.Pending, 0
	if m.Error != "" {
		reason = m.Error
	}
	switch m.Outcome {
	case outbox.MarkDead:
		state = outbox.Dead
	case outbox.MarkParked:
		state, nextAt = outbox.Parked, table.Never
	case outbox.MarkFailed:
		nextAt = m.NextAt.UnixMicro()
	case outbox.MarkReleased:
		nextAt, giveBack = m.NextAt.UnixMicro(), 1
	}
	res, err := stmt.ExecContext(ctx, int64(state), nextAt, giveBack, reason, m.ID, m.Epoch)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Prune implements Source.
func (s *Outbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sqliteTx) error {
		res, err := tx.stmt(ctx, sqlitePrune).ExecContext(ctx, before.UnixMicro(), limit)
		if err != nil {
			return err
		}
		crash.At(crash.Pruning)
		n, err = res.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: prune: %w", err)
	}
	return int(n), nil
}

// Stats implements Source.
func (s *Outbox) Stats(ctx context.Context) (outbox.Stats, error) {
	var st outbox.Stats
	var oldest sql.NullInt64
	err := s.db.QueryRowContext(ctx, sqliteStats).Scan(&st.Pending, &st.Claimed, &st.Parked, &st.Failing, &oldest)
	if err == nil {
		err = s.db.QueryRowContext(ctx, sqliteDead).Scan(&st.Dead)
	}
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	if oldest.Valid {
		st.Oldest = table.Time(oldest.Int64)
	}
	return st, nil
}
