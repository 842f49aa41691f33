package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// SQLite is the Source and Desk over the table of SQLiteSchema. It writes with BEGIN
// IMMEDIATE in short transactions and holds one connection at a time, so that it
// may share a pool of a single connection with the database's other writer,
// which is how SQLite writers wait for each other best. The pool should be opened
// with a busy_timeout; the driver is the caller's choice. Safe for concurrent use.
type SQLite struct {
	deskSQL
	db   *sql.DB
	turn atomic.Int64 // the tenant that began the last claim
}

var (
	_ Source = (*SQLite)(nil)
	_ Desk   = (*SQLite)(nil)
)

// NewSQLite returns the source over db, which the caller opens and closes and on
// which SQLiteSchema has been run.
func NewSQLite(db *sql.DB) *SQLite {
	s := &SQLite{db: db}
	s.deskSQL = deskSQL{DialectSQLite, db, func(ctx context.Context, do func(runner) error) error {
		return s.write(ctx, func(conn *sql.Conn) error { return do(conn) })
	}}
	return s
}

const (
	sqliteAnyDue = `select exists (select 1 from outbox indexed by outbox_due where state < 2 and destination = ? and next_at <= ?)`
	sqliteTenant = `select tenant from outbox indexed by outbox_due where state < 2 and destination = ? and tenant > ? order by tenant limit 1`

	sqliteRow = `select o.rowid, o.id, o.tenant, o.aggregatetype, o.aggregateid, o.seq, o.state, o.claim_epoch, o.next_at, length(o.payload)`
	// The last column tells whether an earlier row of the key is undelivered.
	sqliteDue = sqliteRow + `, o.seq > 0 and exists (select 1 from outbox e indexed by outbox_key where e.state < 2 and e.seq > 0 and e.tenant = o.tenant
			and e.aggregatetype = o.aggregatetype and e.aggregateid = o.aggregateid and e.destination = o.destination and e.seq < o.seq)
		from outbox o indexed by outbox_due where o.state < 2 and o.destination = ? and o.tenant = ?
		and o.next_at <= ? and (o.next_at, o.rowid) > (?, ?) order by o.next_at, o.rowid limit ?`
	sqliteRun = sqliteRow + `, 0 from outbox o indexed by outbox_key where o.state < 2 and o.seq > 0
		and o.tenant = ? and o.aggregatetype = ? and o.aggregateid = ? and o.destination = ? order by o.seq limit ?`

	// Or fail: after an error the transaction is rolled back anyway, and a statement
	// that can be undone alone keeps a journal of its own for that.
	sqliteSetBack = `update or fail outbox set next_at = j.value ->> 1 from json_each(?) j where outbox.rowid = j.value ->> 0`
	sqliteClaim   = `update or fail outbox set state = 1, attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = ?, next_at = ?
		where rowid in (select value from json_each(?))`
	sqliteClaimed = `select o.id, o.tenant, o.destination, o.aggregatetype, o.aggregateid, o.type, o.payload, o.contenttype, o.headers, o.seq, o.created_at,
		o.attempts, o.claim_epoch from json_each(?) j join outbox o on o.rowid = j.value order by j.key`

	sqliteMark = `update outbox set state = ?1, next_at = coalesce(?2, next_at), attempts = attempts - ?3, delivered_at = null,
		last_error = coalesce(?4, last_error), claimed_by = null
		where id = ?5 and claim_epoch = ?6 and state = 1`
	// Deliveries, which are nearly all marks, in one statement.
	sqliteDelivered = `update or fail outbox set state = 2, delivered_at = ?, last_error = null, claimed_by = null from json_each(?) j
		where outbox.id = j.value ->> 0 and outbox.claim_epoch = j.value ->> 1 and outbox.state = 1`

	sqlitePrune = `delete from outbox where rowid in (select rowid from outbox indexed by outbox_delivered
		where state = 2 and delivered_at < ? order by delivered_at limit ?)`
	sqliteStats = `select count(*) filter (where state = 0), count(*) filter (where state = 1), count(*) filter (where state = -1),
		count(*) filter (where state = 0 and attempts > 0), min(created_at) from outbox indexed by outbox_due where state < 2`
	sqliteDead = `select count(*) from outbox indexed by outbox_dead where state = 3`
)

// Claim implements Source. An idle table is found idle without the write lock.
func (s *SQLite) Claim(ctx context.Context, c Claim) (Batch, error) {
	if err := c.check(); err != nil {
		return Batch{}, err
	}
	var due bool
	if err := s.db.QueryRowContext(ctx, sqliteAnyDue, c.Destination, c.Now.UnixMicro()).Scan(&due); err != nil {
		return Batch{}, fmt.Errorf("outbox: claim: look for due messages: %w", err)
	}
	if !due {
		return Batch{}, nil
	}
	var batch Batch
	err := s.write(ctx, func(conn *sql.Conn) error {
		ch, err := choose(ctx, &sqliteShelf{conn: conn, destination: c.Destination}, c, s.turn.Load())
		if err != nil {
			return err
		}
		batch = Batch{More: ch.more}
		if err := setBack(ctx, conn, ch.setbacks); err != nil || len(ch.rows) == 0 {
			return err
		}
		s.turn.Store(ch.rows[0].key.Tenant)
		batch.Messages, err = takeRows(ctx, conn, c, ch.rows)
		return err
	})
	if err != nil {
		return Batch{}, fmt.Errorf("outbox: claim: %w", err)
	}
	return batch, nil
}

func setBack(ctx context.Context, conn *sql.Conn, setbacks []setback) error {
	if len(setbacks) == 0 {
		return nil
	}
	pairs := make([][2]int64, len(setbacks))
	for i, b := range setbacks {
		pairs[i] = [2]int64{b.row.n, b.nextAt}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, sqliteSetBack, string(list))
	return err
}

// takeRows marks the chosen rows as claimed and reads them whole, in order.
func takeRows(ctx context.Context, conn *sql.Conn, c Claim, chosen []row) ([]ClaimedMessage, error) {
	ids := make([]int64, len(chosen))
	for i, r := range chosen {
		ids[i] = r.n
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, sqliteClaim, c.By, c.Now.Add(c.Lease).UnixMicro(), string(list)); err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, sqliteClaimed, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var msgs []ClaimedMessage
	for rows.Next() {
		var m ClaimedMessage
		var headers string
		var created int64
		if err := rows.Scan(&m.ID, &m.Tenant, &m.Destination, &m.AggregateType, &m.AggregateID, &m.Type, &m.Payload, &m.ContentType, &headers, &m.Seq, &created,
			&m.Attempt, &m.Epoch); err != nil {
			return nil, err
		}
		if m.Headers, err = decodeHeaders(headers); err != nil {
			return nil, fmt.Errorf("message %s: column headers is not a JSON object of texts, repair it: %w", m.ID, err)
		}
		m.CreatedAt, m.Unordered = fromMicro(created), m.Seq == 0
		msgs = append(msgs, m)
	}
	return msgs, rows.Err()
}

// Mark implements Source.
func (s *SQLite) Mark(ctx context.Context, at time.Time, marks []Mark) (int, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	var applied int64
	err := s.write(ctx, func(conn *sql.Conn) error {
		var err error
		if applied, err = markDelivered(ctx, conn, at, marks); err != nil {
			return err
		}
		stmt, err := conn.PrepareContext(ctx, sqliteMark)
		if err != nil {
			return err
		}
		defer stmt.Close()
		for _, m := range marks {
			if m.Outcome == MarkDelivered {
				continue
			}
			n, err := markRow(ctx, stmt, m)
			if err != nil {
				return fmt.Errorf("message %s: %w", m.ID, err)
			}
			applied += n
			if m.Outcome == MarkDead {
				crash(CrashDeadLetter)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	return int(applied), nil
}

func markDelivered(ctx context.Context, conn *sql.Conn, at time.Time, marks []Mark) (int64, error) {
	var pairs [][2]any
	for _, m := range marks {
		if m.Outcome == MarkDelivered {
			pairs = append(pairs, [2]any{m.ID, m.Epoch})
		}
	}
	if len(pairs) == 0 {
		return 0, nil
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return 0, err
	}
	res, err := conn.ExecContext(ctx, sqliteDelivered, at.UnixMicro(), string(list))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func markRow(ctx context.Context, stmt *sql.Stmt, m Mark) (int64, error) {
	var nextAt, reason any
	state, giveBack := Pending, 0
	if m.Error != "" {
		reason = m.Error
	}
	switch m.Outcome {
	case MarkDead:
		state = Dead
	case MarkParked:
		state, nextAt = Parked, never
	case MarkFailed:
		nextAt = m.NextAt.UnixMicro()
	case MarkReleased:
		nextAt, giveBack = m.NextAt.UnixMicro(), 1
	}
	res, err := stmt.ExecContext(ctx, int64(state), nextAt, giveBack, reason, m.ID, m.Epoch)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Prune implements Source.
func (s *SQLite) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.write(ctx, func(conn *sql.Conn) error {
		res, err := conn.ExecContext(ctx, sqlitePrune, before.UnixMicro(), limit)
		if err != nil {
			return err
		}
		crash(CrashPruning)
		n, err = res.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: prune: %w", err)
	}
	return int(n), nil
}

// Stats implements Source.
func (s *SQLite) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	var oldest sql.NullInt64
	err := s.db.QueryRowContext(ctx, sqliteStats).Scan(&st.Pending, &st.Claimed, &st.Parked, &st.Failing, &oldest)
	if err == nil {
		err = s.db.QueryRowContext(ctx, sqliteDead).Scan(&st.Dead)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	if oldest.Valid {
		st.Oldest = fromMicro(oldest.Int64)
	}
	return st, nil
}

// write runs do in a transaction that takes the write lock at its beginning: one
// that took it at its first write could find the rows that it chose changed.
func (s *SQLite) write(ctx context.Context, do func(*sql.Conn) error) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer func() {
		if err == nil {
			return
		}
		// Also when ctx has ended: a connection must not go back to the pool
		// with a transaction open. One that cannot roll back is thrown away;
		// that includes one whose begin failed, which may have begun all the same.
		if _, rollback := conn.ExecContext(context.WithoutCancel(ctx), `rollback`); rollback != nil {
			discard(conn)
		}
	}()
	if _, err := conn.ExecContext(ctx, `begin immediate`); err != nil {
		return err
	}
	if err := do(conn); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `commit`)
	return err
}

// discard closes the connection itself instead of giving it back to the pool.
func discard(conn *sql.Conn) {
	// The error is the one asked for: Raw drops the connection for it.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// sqliteShelf reads for a choice inside the claim's transaction.
type sqliteShelf struct {
	conn        *sql.Conn
	destination string
	heads       map[Key]row // rows of the last page that have no earlier one
}

func (sh *sqliteShelf) tenants(ctx context.Context) ([]int64, error) {
	var list []int64
	for last := int64(-1); ; {
		err := sh.conn.QueryRowContext(ctx, sqliteTenant, sh.destination, last).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, last)
	}
}

func (sh *sqliteShelf) due(ctx context.Context, tenant, now int64, last row) ([]row, bool, error) {
	sh.heads = map[Key]row{}
	rows, err := sh.list(sh.conn.QueryContext(ctx, sqliteDue, sh.destination, tenant, now, last.nextAt, last.n, page))
	return rows, len(rows) < page, err
}

// runs asks only about keys of which the page has a row that is not their head,
// or several: one query after the other, each dearer than all it brings.
func (sh *sqliteShelf) runs(ctx context.Context, most map[Key]int) (map[Key][]row, error) {
	stmt, err := sh.conn.PrepareContext(ctx, sqliteRun)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	// A statement that can be cancelled costs more than these take: the driver
	// and database/sql each begin a goroutine to watch for it.
	whole := context.WithoutCancel(ctx)
	runs := make(map[Key][]row, len(most))
	for key, n := range most {
		if head, is := sh.heads[key]; is && n == 1 {
			runs[key] = []row{head}
			continue
		}
		run, err := sh.list(stmt.QueryContext(whole, key.Tenant, key.AggregateType, key.AggregateID, sh.destination, n))
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		runs[key] = run
	}
	return runs, nil
}

func (sh *sqliteShelf) list(rows *sql.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []row
	for rows.Next() {
		var r row
		var behind bool
		if err := rows.Scan(&r.n, &r.id, &r.key.Tenant, &r.key.AggregateType, &r.key.AggregateID, &r.seq, &r.state, &r.epoch, &r.nextAt, &r.size, &behind); err != nil {
			return nil, err
		}
		if r.seq > 0 && !behind {
			sh.heads[r.key] = r
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
