package wal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// errTooMuch ends a slot that holds too much of the log.
var errTooMuch = errors.New("the slot held too much of the write-ahead log and was given up")

const (
	lookAtSlot = `select coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(wal_status, ''), coalesce(safe_wal_size, -1)
		from pg_replication_slots where slot_name = $1`

	// The heartbeat's own commit waits for no disk; the log is written on within a
	// moment.
	writeHeartbeat = `with spare as materialized (select set_config('synchronous_commit', 'off', true))
		select pg_logical_emit_message(true, $1, $2) from spare`

	// warnShare is the part of the bound at which a warning is given.
	warnShare = 2

	megabyte = 1 << 20
)

// bound is the most log that the slot may hold: ours, or the server's if that is less.
func (s *session) bound() int64 {
	if keep := s.place.keepMB * megabyte; s.place.keepMB > 0 && keep < s.cfg.MostWAL {
		return keep
	}
	return s.cfg.MostWAL
}

// watch looks at the slot until ctx ends, also while it is being made, when it holds
// the log already. What is wrong with it ends the session.
func (s *session) watch(ctx context.Context, stop context.CancelCauseFunc) {
	for wait(ctx, s.cfg.Watch) {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			stop(err)
			return
		}
	}
}

func (s *session) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Behind)
	defer cancel()
	state := State(s.state.Load())
	r := Report{At: s.cfg.Now(), State: state, Slot: s.slot, Bound: s.bound()}
	var status string
	var safe int64
	err := s.cfg.DB.QueryRowContext(ctx, lookAtSlot, s.slot).Scan(&r.Retained, &status, &safe)
	switch {
	case errors.Is(err, sql.ErrNoRows) && state == Starting:
		return nil // the server has not begun to make it
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("outbox/wal: the slot %s is not on the server that takes writes: it was dropped, or another server is the primary now", s.slot)
	case err == nil && status == "lost":
		return fmt.Errorf("outbox/wal: the server has invalidated the slot %s, which held %d MiB of log (max_slot_wal_keep_size)", s.slot, r.Retained/megabyte)
	case err == nil && r.Retained+max(0, r.Retained-s.retained) >= r.Bound:
		return fmt.Errorf("outbox/wal: %w: %d MiB, and %d at most; a transaction that stays open, or a disk that is too slow to read the log from, does that", errTooMuch, r.Retained/megabyte, r.Bound/megabyte)
	}
	if err == nil {
		s.retained = r.Retained
	}
	r.Near = r.Retained >= r.Bound/warnShare || s.place.keepMB > 0 && safe >= 0 && safe < s.place.keepMB*megabyte/warnShare
	if err == nil && state == Streaming {
		_, err = s.cfg.DB.ExecContext(ctx, writeHeartbeat, heartbeat, fmt.Sprintf("%s %d", s.slot, r.At.UnixMicro()))
	}
	if state == Streaming {
		r.Behind = r.At.Sub(time.UnixMicro(s.beat.Load()))
		if r.Behind > s.cfg.Behind {
			return errors.Join(fmt.Errorf("outbox/wal: the slot %s is %s behind and was given up: what it has still to read is found by polling", s.slot, r.Behind.Round(time.Second)), err)
		}
	}
	r.Waiting, r.Overflow = s.desk.left()
	s.cfg.Observe(r)
	return nil
}
