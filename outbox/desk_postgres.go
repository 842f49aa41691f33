package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

var _ Desk = (*Postgres)(nil)

// List implements Desk.
func (s *Postgres) List(ctx context.Context, f Filter) ([]Entry, error) {
	list, err := deskSQL{DialectPostgres}.list(ctx, s.db, f)
	if err != nil {
		return nil, fmt.Errorf("outbox: list: %w", err)
	}
	return list, nil
}

// Retry implements Desk.
func (s *Postgres) Retry(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead, Parked}, Pending); err != nil {
		return 0, err
	}
	return s.desk(ctx, "retry", at, f, deskSQL{DialectPostgres}.reopen)
}

// Resend implements Desk.
func (s *Postgres) Resend(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Delivered}); err != nil {
		return 0, err
	}
	return s.desk(ctx, "resend", at, f, deskSQL{DialectPostgres}.resend)
}

// Purge implements Desk.
func (s *Postgres) Purge(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead}, Parked, Delivered); err != nil {
		return 0, err
	}
	return s.desk(ctx, "purge", at, f, deskSQL{DialectPostgres}.purge)
}

// Backlog implements Desk.
func (s *Postgres) Backlog(ctx context.Context) ([]Depth, error) {
	list, err := deskSQL{DialectPostgres}.backlog(ctx, s.db)
	if err != nil {
		return nil, fmt.Errorf("outbox: backlog: %w", err)
	}
	return list, nil
}

// deskLock waits for every claim under way: one that has seen a parked message
// could set its followers back after they were let go on.
const deskLock = `select from outbox_partition order by destination, part for no key update`

// desk does something in a transaction, which no claim runs beside.
func (s *Postgres) desk(ctx context.Context, what string, at time.Time, f Filter, do func(context.Context, runner, time.Time, Filter) (int, error)) (n int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deskLock); err != nil {
			return err
		}
		n, err = do(ctx, tx, at, f)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: %s: %w", what, err)
	}
	return n, nil
}
