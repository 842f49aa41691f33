package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/table"
)

// Mark implements outbox.Source.
func (s *Outbox) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	// No row has another id. What was delivered under one epoch is one statement, and
	// rows are locked in the order of their ids.
	sorted := slices.DeleteFunc(slices.Clone(marks), func(m outbox.Mark) bool { return !outbox.IsID(m.ID) })
	slices.SortFunc(sorted, func(a, b outbox.Mark) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.ID, b.ID))
	})
	if len(sorted) == 0 {
		return 0, nil
	}
	var applied int64
	var err error
	if last := &sorted[len(sorted)-1]; sorted[0].Epoch == last.Epoch && sorted[0].Fence == last.Fence && !slices.ContainsFunc(sorted, notDelivered) {
		// One statement is a transaction by itself, in a quarter of the round trips, and
		// a relay that is stopped beside it keeps no lock.
		err = retried(func() (err error) {
			applied, err = settle(ctx, s.db, at, sorted)
			return err
		})
	} else {
		err = s.write(ctx, func(tx *sql.Tx) (err error) {
			applied, err = settle(ctx, tx, at, sorted)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	return int(applied), nil
}

func notDelivered(m outbox.Mark) bool { return m.Outcome != outbox.MarkDelivered }

// settle writes marks that are sorted by their epochs.
func settle(ctx context.Context, tx outbox.Tx, at time.Time, marks []outbox.Mark) (applied int64, err error) {
	for len(marks) > 0 {
		first := &marks[0]
		var ids []any
		n := 0
		for n < len(marks) && marks[n].Epoch == first.Epoch && marks[n].Fence == first.Fence {
			m := &marks[n]
			n++
			if m.Outcome == outbox.MarkDelivered {
				ids = append(ids, m.ID)
				continue
			}
			changed, err := settleOne(ctx, tx, m)
			if err != nil {
				return 0, fmt.Errorf("message %s: %w", m.ID, err)
			}
			applied += changed
		}
		marks = marks[n:]
		if len(ids) == 0 {
			continue
		}
		changed, err := fencedExec(ctx, tx, first.Fence, delivered+"("+repeat("?", len(ids))+")", append([]any{at.UnixMicro(), first.Epoch}, ids...)...)
		if err != nil {
			return 0, err
		}
		applied += changed
	}
	return applied, nil
}

// settleOne settles a message that was not delivered.
func settleOne(ctx context.Context, tx outbox.Tx, m *outbox.Mark) (int64, error) {
	state, nextAt, back := table.Settled(m)
	reason := sql.NullString{String: m.Error, Valid: m.Error != ""}
	var due sql.NullInt64
	if nextAt != nil {
		due = sql.NullInt64{Int64: nextAt.UnixMicro(), Valid: true}
	}
	n, err := fencedExec(ctx, tx, m.Fence, settled, int64(state), due, back, reason, m.Epoch, m.ID)
	if err == nil && state == outbox.Dead {
		crash.At(crash.DeadLetter)
	}
	return n, err
}

// fencedExec runs a mark, which changes only rows of partitions whose epoch is
// still the fence, if there is one, and returns how many.
func fencedExec(ctx context.Context, tx outbox.Tx, fence int64, query string, args ...any) (int64, error) {
	if fence != 0 {
		query += fenced
		args = append(args, fence)
	}
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
