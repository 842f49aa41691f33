// Package mysql is the outbox in MariaDB and MySQL: the tables (Schema, Migrate), the
// insert (Insert) and what relays and operators use (Outbox). It works through
// database/sql with the driver github.com/go-sql-driver/mysql, whose parameter
// interpolateParams spares a round trip of nearly every statement.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/desk"
	"github.com/ringiflow/ringi/outbox/table"
)

// tries is how often a transaction of an Outbox is begun that the database gives up
// in favour of others.
const tries = 5

// Outbox is the Source, Fleet and Desk over the tables of Schema, in MariaDB 10.6 or
// MySQL 8.0.19, or newer. Transactions are short, READ COMMITTED, and hold one
// connection at a time; those that the database gives up because of a deadlock are
// done again. Safe for concurrent use, in any number of processes on one table.
//
// A claim locks the rows of its partitions until it commits, so that no two
// claims look at the same key at once; relays of one Fleet have different
// partitions and wait for nobody.
type Outbox struct {
	outbox.Desk
	db *sql.DB

	mu    sync.Mutex
	looks map[laneOf]*look
}

var _ outbox.Source = (*Outbox)(nil)

// New returns the source over db, which the caller opens and closes and on which
// Migrate has been run.
func New(db *sql.DB) *Outbox {
	s := &Outbox{db: db, looks: map[laneOf]*look{}}
	s.Desk = &desk.SQL{Dialect: desk.MySQL, DB: db, Alone: func(ctx context.Context, do func(desk.Tx) error) error {
		return s.write(ctx, func(tx *sql.Tx) error {
			if _, err := numbers(tx.QueryContext(ctx, lockAll)); err != nil {
				return err
			}
			return do(tx)
		})
	}}
	return s
}

const (
	anyDue = `select exists (select 1 from outbox o force index (outbox_due) where o.state = 0 and o.destination = ? and o.next_at <= ?
		and (o.lease_end is null or o.lease_end <= ?)`

	// Locks partitions in the order in which everybody locks them.
	lock    = `select part, epoch from outbox_partition where destination = ?`
	locking = ` order by part for update`
	lockAll = `select part from outbox_partition order by destination, part for update`

	countPartitions = `select count(*) from outbox_partition where destination = ?`
	makePartitions  = `insert ignore into outbox_partition (destination, part) values `

	// Rows are changed by their ids, and never by a search: a search would wait for
	// every row that a transaction has written and not committed.
	byID = `update outbox force index (primary) set `

	// Only a row that still is as it was chosen: a mark of its last claimer may
	// have come in between.
	claim  = byID + `attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = ?, lease_end = ? where state = 0 and `
	free   = ` and lease_end is null`
	lapsed = ` and lease_end is not null and claim_epoch = `

	payloads = `select id, payload from outbox where id in `

	delivered = byID + `state = 2, delivered_at = ?, last_error = null, claimed_by = null, lease_end = null where lease_end is not null and claim_epoch = ? and id in `
	settled   = byID + `state = ?, next_at = coalesce(?, next_at), attempts = attempts - ?, delivered_at = null, last_error = coalesce(?, last_error),
		claimed_by = null, lease_end = null where lease_end is not null and claim_epoch = ? and id = ?`
	fenced = ` and exists (select 1 from outbox_partition p where p.destination = outbox.destination and p.part = outbox.part and p.epoch = ?)`

	old   = `select id from outbox force index (outbox_delivered) where delivered_at < ? order by delivered_at limit ?`
	prune = `delete o from outbox o force index (primary) where o.delivered_at < ? and o.id in `

	stats = `select count(case when state = 0 and lease_end is null then 1 end), count(lease_end), count(case when state = -1 then 1 end),
		count(case when state = 0 and lease_end is null and attempts > 0 then 1 end), min(case when created_at between -62135596800000000 and 253402300799000000 then created_at end)
		from outbox force index (outbox_due) where state in (-1, 0)`
	dead = `select count(*) from outbox force index (outbox_due) where state = 3`

	// setBackAtOnce is how many rows one statement sets back.
	setBackAtOnce = 100
)

// Claim implements outbox.Source. An idle table is found idle without a lock.
func (s *Outbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	batch, err := s.claim(ctx, c)
	if err != nil {
		return outbox.Batch{}, fmt.Errorf("outbox: claim: %w", err)
	}
	return batch, nil
}

func (s *Outbox) claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	if err := c.Check(); err != nil {
		return outbox.Batch{}, err
	}
	l := s.lookOf(c.Destination, c.By)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		asked := ""
		if n := len(c.Partitions); n > 0 && n < outbox.Partitions {
			asked = among("o.part", fencesOf(c.Partitions))
		}
		now := c.Now.UnixMicro()
		if err := s.db.QueryRowContext(ctx, anyDue+asked+")", c.Destination, now, now).Scan(&l.busy); err != nil {
			return outbox.Batch{}, fmt.Errorf("look for due messages: %w", err)
		}
		if !l.busy {
			return outbox.Batch{}, nil
		}
	}
	if err := s.meet(ctx, l, c.Destination); err != nil {
		return outbox.Batch{}, err
	}
	var batch outbox.Batch
	err := s.write(ctx, func(tx *sql.Tx) error {
		batch = outbox.Batch{}
		fences, err := lockPartitions(ctx, tx, c)
		if err != nil || len(fences) == 0 {
			l.busy = false
			return err
		}
		ch, err := l.choose(ctx, tx, c, fences)
		if err != nil {
			return err
		}
		batch.More = ch.More
		l.busy = ch.More || len(ch.Rows) > 0
		if err := setBack(ctx, tx, ch.Setbacks); err != nil || len(ch.Rows) == 0 {
			return err
		}
		l.turn = ch.Rows[0].Key.Tenant
		batch.Messages, err = take(ctx, tx, c, ch.Rows, fences)
		return err
	})
	if errors.Is(err, errMoved) {
		return outbox.Batch{More: true}, nil
	}
	return batch, err
}

// errMoved rolls a claim back whose rows were changed while it chose.
var errMoved = errors.New("a row was marked while it was being claimed")

// laneOf names whose claims remember something together: those of one relay.
type laneOf struct{ destination, by string }

// lookOf returns what a relay's claims of a destination remember.
func (s *Outbox) lookOf(destination, by string) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := laneOf{destination, by}
	l := s.looks[at]
	if l == nil {
		l = &look{}
		s.looks[at] = l
	}
	return l
}

// meet makes the rows of a destination's partitions, once per process.
func (s *Outbox) meet(ctx context.Context, l *look, destination string) error {
	if l.met {
		return nil
	}
	var n int
	err := s.db.QueryRowContext(ctx, countPartitions, destination).Scan(&n)
	if err == nil && n < outbox.Partitions {
		args := make([]any, 0, 2*outbox.Partitions)
		for part := range outbox.Partitions {
			args = append(args, destination, part)
		}
		err = s.write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, makePartitions+repeat("(?, ?)", outbox.Partitions), args...)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write the partitions of destination %q: %w", destination, err)
	}
	l.met = true
	return nil
}

// lockPartitions returns the partitions that are claimed from, with their epochs.
func lockPartitions(ctx context.Context, tx *sql.Tx, c outbox.Claim) (map[int]int64, error) {
	query := lock
	if c.Partitions != nil {
		if len(c.Partitions) == 0 {
			return nil, nil
		}
		query += among("part", fencesOf(c.Partitions))
	}
	held, err := partitions(tx.QueryContext(ctx, query+locking, c.Destination))
	if err != nil {
		return nil, err
	}
	fences := fencesOf(held)
	for _, p := range c.Partitions {
		if fences[p.Number] != p.Epoch {
			delete(fences, p.Number)
		}
	}
	return fences, nil
}

func fencesOf(parts []outbox.Partition) map[int]int64 {
	fences := make(map[int]int64, len(parts))
	for _, p := range parts {
		fences[p.Number] = p.Epoch
	}
	return fences
}

func setBack(ctx context.Context, tx *sql.Tx, setbacks []table.Setback) error {
	for len(setbacks) > 0 {
		now := setbacks[:min(len(setbacks), setBackAtOnce)]
		setbacks = setbacks[len(now):]
		var text strings.Builder
		text.WriteString(byID + "next_at = case id")
		args := make([]any, 0, 3*len(now))
		for _, b := range now {
			text.WriteString(" when ? then ?")
			args = append(args, b.Row.ID, b.NextAt)
		}
		text.WriteString(" else next_at end where state = 0 and id in (" + repeat("?", len(now)) + ")")
		for _, b := range now {
			args = append(args, b.Row.ID)
		}
		if _, err := tx.ExecContext(ctx, text.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// take marks the chosen rows as claimed and returns them as messages, in order.
func take(ctx context.Context, tx *sql.Tx, c outbox.Claim, chosen []table.Row, fences map[int]int64) ([]outbox.ClaimedMessage, error) {
	query := claim + "id in (" + repeat("?", len(chosen)) + ")" + free
	if chosen[0].State == outbox.Claimed { // it is alone
		query = claim + "id in (?)" + lapsed + strconv.FormatInt(chosen[0].Epoch, 10)
	}
	args := []any{c.By, c.Now.Add(c.Lease).UnixMicro()}
	for i := range chosen {
		args = append(args, chosen[i].ID)
	}
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	if n, err := res.RowsAffected(); err != nil || n < int64(len(chosen)) {
		return nil, cmp.Or(err, errMoved)
	}
	if err := load(ctx, tx, chosen); err != nil {
		return nil, err
	}
	msgs := make([]outbox.ClaimedMessage, len(chosen))
	for i := range chosen {
		whole := chosen[i].Whole.(*table.Whole)
		msgs[i] = whole.Message(&chosen[i], c.Destination)
		if c.Partitions != nil {
			msgs[i].Fence = fences[whole.Part]
		}
	}
	return msgs, nil
}

// load reads the large payloads.
func load(ctx context.Context, tx *sql.Tx, chosen []table.Row) error {
	large := map[string]*table.Whole{}
	var ids []any
	for i := range chosen {
		if w := chosen[i].Whole.(*table.Whole); w.Payload == nil && chosen[i].Size > 0 {
			large[chosen[i].ID] = w
			ids = append(ids, chosen[i].ID)
		}
	}
	if len(large) == 0 {
		return nil
	}
	rows, err := tx.QueryContext(ctx, payloads+"("+repeat("?", len(ids))+")", ids...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var payload []byte
		if err := rows.Scan(&id, &payload); err != nil {
			return err
		}
		large[id].Payload = payload
	}
	return rows.Err()
}

// Prune implements outbox.Source.
func (s *Outbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		n = 0
		ids, err := texts(tx.QueryContext(ctx, old, before.UnixMicro(), limit))
		if err != nil || len(ids) == 0 {
			return err
		}
		args := []any{before.UnixMicro()}
		for _, id := range ids {
			args = append(args, id)
		}
		res, err := tx.ExecContext(ctx, prune+"("+repeat("?", len(ids))+")", args...)
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

// Stats implements outbox.Source.
func (s *Outbox) Stats(ctx context.Context) (outbox.Stats, error) {
	var st outbox.Stats
	var oldest sql.NullInt64
	err := s.db.QueryRowContext(ctx, stats).Scan(&st.Pending, &st.Claimed, &st.Parked, &st.Failing, &oldest)
	if err == nil {
		err = s.db.QueryRowContext(ctx, dead).Scan(&st.Dead)
	}
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	if oldest.Valid {
		st.Oldest = table.Time(oldest.Int64)
	}
	return st, nil
}

// write runs do in a transaction, and again if the database gave it up in favour of
// others.
func (s *Outbox) write(ctx context.Context, do func(*sql.Tx) error) error {
	return retried(func() error { return s.once(ctx, do) })
}

// retried runs a whole transaction until the database does not give it up, a few times.
func retried(transaction func() error) (err error) {
	for range tries {
		if err = again(transaction()); !errors.Is(err, ErrAgain) {
			return err
		}
	}
	return err
}

// once runs do in a transaction. READ COMMITTED locks no gaps between rows, into
// which writers insert.
func (s *Outbox) once(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	// After a commit it does nothing; its error says no more than the first one.
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
