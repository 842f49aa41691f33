package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

var _ Desk = (*SQLite)(nil)

// List implements Desk.
func (s *SQLite) List(ctx context.Context, f Filter) ([]Entry, error) {
	list, err := deskSQL{DialectSQLite}.list(ctx, s.db, f)
	if err != nil {
		return nil, fmt.Errorf("outbox: list: %w", err)
	}
	return list, nil
}

// Retry implements Desk.
func (s *SQLite) Retry(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead, Parked}, Pending); err != nil {
		return 0, err
	}
	return s.desk(ctx, "retry", at, f, deskSQL{DialectSQLite}.reopen)
}

// Resend implements Desk.
func (s *SQLite) Resend(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Delivered}); err != nil {
		return 0, err
	}
	return s.desk(ctx, "resend", at, f, deskSQL{DialectSQLite}.resend)
}

// Purge implements Desk.
func (s *SQLite) Purge(ctx context.Context, at time.Time, f Filter) (int, error) {
	if err := f.only([]State{Dead}, Parked, Delivered); err != nil {
		return 0, err
	}
	return s.desk(ctx, "purge", at, f, deskSQL{DialectSQLite}.purge)
}

// Backlog implements Desk.
func (s *SQLite) Backlog(ctx context.Context) ([]Depth, error) {
	list, err := deskSQL{DialectSQLite}.backlog(ctx, s.db)
	if err != nil {
		return nil, fmt.Errorf("outbox: backlog: %w", err)
	}
	return list, nil
}

// desk does something in a transaction, which no claim runs beside.
func (s *SQLite) desk(ctx context.Context, what string, at time.Time, f Filter, do func(context.Context, runner, time.Time, Filter) (int, error)) (n int, err error) {
	err = s.write(ctx, func(tx *sql.Conn) error {
		n, err = do(ctx, tx, at, f)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: %s: %w", what, err)
	}
	return n, nil
}
