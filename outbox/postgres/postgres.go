package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/desk"
	"github.com/ringiflow/ringi/outbox/table"
)

// Outbox is the Source, Fleet and Desk over the tables of Schema, in
// PostgreSQL 14 or newer. It works through database/sql; the driver is the
// caller's choice, and who has a pool of pgx passes stdlib.OpenDBFromPool of it.
// Transactions are short, READ COMMITTED, and hold one connection at a time.
// Safe for concurrent use, in any number of processes on one table.
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

// New returns the source over db, which the caller opens and closes and
// on which Schema has been run.
func New(db *sql.DB) *Outbox {
	s := &Outbox{db: db, looks: map[laneOf]*look{}}
	s.Desk = &desk.SQL{Dialect: desk.Postgres, DB: db, Alone: func(ctx context.Context, do func(desk.Tx) error) error {
		return s.write(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, pgLockAll); err != nil {
				return err
			}
			return do(tx)
		})
	}}
	return s
}

const (
	// pgSpare lets the commit of this transaction wait for the disk no longer than
	// that of the message itself did: when the server crashes, the last claims and
	// marks may be undone, one whole transaction after the other from the end, and
	// their messages are sent once more. And like pgBound it has the server end the
	// transaction of a process that is stopped in the middle.
	pgSpare = `spare as materialized (select set_config('synchronous_commit', 'off', true), ` + pgIdle + `)`

	// pgIdle lets no transaction stand still for more than ten seconds: one takes
	// milliseconds, and a process that is stopped in it would keep its locks from
	// all others.
	pgIdle  = `set_config('idle_in_transaction_session_timeout', '10000', true)`
	pgBound = `select ` + pgIdle

	pgPartitions = `insert into outbox_partition (destination, part) select $1, generate_series(0, $2 - 1) on conflict do nothing`

	// Locks the partitions that are still the claimer's, in the order in which
	// everybody locks them. Without a list it is all of them.
	pgLock = `with ` + pgSpare + ` select p.part, p.epoch from spare, outbox_partition p
		where p.destination = $1 and ($2 or (p.part, p.epoch) in (select * from unnest($3::text::smallint[], $4::text::bigint[])))
		order by p.part for no key update of p`

	pgLockAll = `select from outbox_partition order by destination, part for no key update`

	pgSetBack = `update outbox o set next_at = b.next_at from unnest($1::text::uuid[], $2::text::timestamptz[]) as b(id, next_at)
		where o.id = b.id and o.state + 0 = 0`

	// Only a row that still is as it was chosen: a mark of its last claimer may
	// have come in between.
	pgClaim = `update outbox set attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = $2, lease_end = $3
		where id = $1::text::uuid and claim_epoch = $4 and state = 0 and lease_end is not null`

	pgPayloads = `select id::text, payload from outbox where id = any ($1::text::uuid[])`

	pgFenced = ` and (m.fence = 0 or (o.destination, o.part, m.fence) in (select destination, part, epoch from outbox_partition))`

	// A row stands as it was claimed: by itself, or, with an epoch below zero, by a claim
	// that had written no rows, whose attempt is counted here. The sum keeps the planner
	// from the indexes of undelivered rows, all of which it reads when its statistics are
	// of a time with few of them.
	pgStands = `o.id = m.id and case when m.epoch < 0 then o.state + 0 = 0 and o.lease_end is null else o.claim_epoch = m.epoch and o.lease_end is not null end` + pgFenced
	pgCount  = `claim_epoch = o.claim_epoch + (m.epoch < 0)::int`

	pgDelivered = `update outbox o set state = 2, delivered_at = $4, attempts = o.attempts + (m.epoch < 0)::int, ` + pgCount + `, last_error = null, claimed_by = null, lease_end = null
		from unnest($1::text::uuid[], $2::text::bigint[], $3::text::bigint[]) as m(id, epoch, fence) where ` + pgStands

	pgMark = `update outbox o set state = m.state, next_at = coalesce(m.next_at, o.next_at), attempts = o.attempts + (m.epoch < 0)::int - m.back, ` + pgCount + `, delivered_at = null,
			last_error = coalesce(m.error, o.last_error), claimed_by = null, lease_end = null
		from jsonb_to_recordset($1::text::jsonb) as m(id uuid, epoch bigint, fence bigint, state smallint, back int, next_at timestamptz, error text) where ` + pgStands

	// sparing is pgSpare as a statement.
	sparing = `with ` + pgSpare + ` select from spare`

	pgPrune = `delete from outbox where id in (select id from outbox
		where state = 2 and delivered_at < $1 order by delivered_at limit $2 for update skip locked)`

	pgStats = `with held as (select count(*) as n, count(*) filter (where o.attempts > 0) as failing from outbox_claim c cross join lateral unnest(c.messages) as m(id)
			join outbox o on o.id = m.id where ` + pgUnheld + `)
		select count(*) filter (where state = 0 and lease_end is null) - (select n from held), count(lease_end) + (select n from held), count(*) filter (where state = -1),
			count(*) filter (where state = 0 and lease_end is null and attempts > 0) - (select failing from held), min(` + pgCreatedAt + `) from outbox o where state < 2`
	pgDead = `select count(*) from outbox where state = 3`
)

// Claim implements Source. An idle table is found idle without a lock.
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
	if !l.busy && len(c.IDs) == 0 {
		var err error
		if l.busy, err = l.anyDue(ctx, s.db, c); err != nil {
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
	err := s.spare(ctx, func(tx *sql.Tx) error {
		fences, err := lockPartitions(ctx, tx, c)
		if err != nil || len(fences) == 0 {
			l.busy = false
			return err
		}
		hands, err := l.hands(ctx, tx, c)
		if err != nil {
			return err
		}
		look := l.choose
		if len(c.IDs) > 0 {
			look = l.chooseNamed
		}
		ch, err := look(ctx, tx, c, fences, hands)
		if err != nil {
			return err
		}
		batch = outbox.Batch{More: ch.More}
		if len(c.IDs) == 0 {
			l.busy = ch.More || len(ch.Rows) > 0
		}
		if err := pgSetBacks(ctx, tx, ch.Setbacks); err != nil || len(ch.Rows) == 0 {
			return err
		}
		l.took(ch.Rows)
		batch.Messages, err = l.take(ctx, tx, c, ch.Rows, fences)
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
		l = &look{known: map[int64][]string{}, past: map[int64]int64{}}
		s.looks[at] = l
	}
	return l
}

// meet makes the rows of a destination's partitions, once per process.
func (s *Outbox) meet(ctx context.Context, l *look, destination string) error {
	if l.met {
		return nil
	}
	if _, err := s.db.ExecContext(ctx, pgPartitions, destination, outbox.Partitions); err != nil {
		return fmt.Errorf("write the partitions of destination %q: %w", destination, err)
	}
	l.met = true
	return nil
}

// lockPartitions returns the partitions that are claimed from, with their epochs.
func lockPartitions(ctx context.Context, tx *sql.Tx, c outbox.Claim) (map[int]int64, error) {
	mine := pgArrays(2, len(c.Partitions), 4)
	for _, p := range c.Partitions {
		mine[0].number(int64(p.Number))
		mine[1].number(p.Epoch)
	}
	rows, err := tx.QueryContext(ctx, pgLock, c.Destination, c.Partitions == nil, mine[0].String(), mine[1].String())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	fences := map[int]int64{}
	for rows.Next() {
		var part int
		var epoch int64
		if err := rows.Scan(&part, &epoch); err != nil {
			return nil, err
		}
		fences[part] = epoch
	}
	return fences, rows.Err()
}

func pgSetBacks(ctx context.Context, tx *sql.Tx, setbacks []table.Setback) error {
	if len(setbacks) == 0 {
		return nil
	}
	list := pgArrays(2, len(setbacks), 40)
	for _, b := range setbacks {
		list[0].plain(b.Row.ID)
		list[1].time(table.Time(b.NextAt))
	}
	_, err := tx.ExecContext(ctx, pgSetBack, pgParams(list)...)
	return err
}

// take claims the chosen rows and returns them as messages, in order. One that was
// claimed before and not marked is alone, and is written; so is each that comes back
// from a claim whose lease ended, and so a row that kills its relay counts its claims.
func (l *look) take(ctx context.Context, tx *sql.Tx, c outbox.Claim, chosen []table.Row, fences map[int]int64) ([]outbox.ClaimedMessage, error) {
	var epoch int64
	if first := &chosen[0]; first.State == outbox.Claimed {
		res, err := tx.ExecContext(ctx, pgClaim, first.ID, c.By, c.Now.Add(c.Lease), first.Epoch)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return nil, cmp.Or(err, errMoved)
		}
		epoch = first.Epoch + 1
	} else {
		claim, err := l.hold(ctx, tx, c, chosen)
		if err != nil {
			return nil, err
		}
		epoch = table.Epoch(claim)
	}
	if err := pgLoad(ctx, tx, chosen); err != nil {
		return nil, err
	}
	msgs := make([]outbox.ClaimedMessage, len(chosen))
	for i := range chosen {
		whole := chosen[i].Whole.(*pgWhole)
		msgs[i] = whole.message(&chosen[i], c.Destination, epoch)
		if c.Partitions != nil {
			msgs[i].Fence = fences[whole.part]
		}
	}
	return msgs, nil
}

// pgLoad reads the large payloads.
func pgLoad(ctx context.Context, tx *sql.Tx, chosen []table.Row) error {
	large := map[string]*pgWhole{}
	ids := pgArrays(1, 0, 0)
	for i := range chosen {
		if w := chosen[i].Whole.(*pgWhole); w.payload == nil && chosen[i].Size > 0 {
			large[chosen[i].ID] = w
			ids[0].plain(chosen[i].ID)
		}
	}
	if len(large) == 0 {
		return nil
	}
	rows, err := tx.QueryContext(ctx, pgPayloads, ids[0].String())
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
		large[id].payload = payload
	}
	return rows.Err()
}

// pgMarkRow is a row of pgMark's parameter.
type pgMarkRow struct {
	ID     string       `json:"id"`
	Epoch  int64        `json:"epoch"`
	Fence  int64        `json:"fence"`
	State  outbox.State `json:"state"`
	Back   int          `json:"back"`
	NextAt *time.Time   `json:"next_at"`
	Error  *string      `json:"error"`
}

// Mark implements Source.
func (s *Outbox) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	// Rows are locked in the order of their ids.
	sorted := slices.SortedFunc(slices.Values(marks), func(a, b outbox.Mark) int { return strings.Compare(a.ID, b.ID) })
	// No row has another id, and PostgreSQL would refuse the others with it.
	sorted = slices.DeleteFunc(sorted, func(m outbox.Mark) bool { return !outbox.IsID(m.ID) })
	applied, err := s.mark(ctx, at, sorted)
	if err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	return int(applied), nil
}

func (s *Outbox) mark(ctx context.Context, at time.Time, marks []outbox.Mark) (applied int64, err error) {
	if len(marks) == 0 {
		return 0, nil
	}
	first := marks[0].Epoch
	if !slices.ContainsFunc(marks, func(m outbox.Mark) bool { return m.Outcome != outbox.MarkDelivered || m.Epoch >= 0 || m.Epoch != first }) {
		applied, err = s.markWhole(ctx, at, marks)
		if err != nil || applied == int64(len(marks)) {
			return applied, err
		}
	}
	err = s.spare(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sparing); err != nil {
			return err
		}
		marks, err := settle(ctx, tx, marks)
		if err != nil {
			return err
		}
		delivered, err := pgMarkDelivered(ctx, tx, at, marks)
		if err != nil {
			return err
		}
		others, err := pgMarkOthers(ctx, tx, marks)
		applied += delivered + others
		return err
	})
	return applied, err
}

func pgMarkDelivered(ctx context.Context, tx outbox.Tx, at time.Time, marks []outbox.Mark) (int64, error) {
	rows := pgArrays(3, len(marks), 40)
	for i := range marks {
		if m := &marks[i]; m.Outcome == outbox.MarkDelivered {
			rows[0].plain(m.ID)
			rows[1].number(m.Epoch)
			rows[2].number(m.Fence)
		}
	}
	if len(rows[0]) == 0 {
		return 0, nil
	}
	res, err := tx.ExecContext(ctx, pgDelivered, append(pgParams(rows), at)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// pgMarkOthers settles what was not delivered.
func pgMarkOthers(ctx context.Context, tx *sql.Tx, marks []outbox.Mark) (int64, error) {
	var rows []pgMarkRow
	dead := false
	for i := range marks {
		m := &marks[i]
		if m.Outcome == outbox.MarkDelivered {
			continue
		}
		r := pgMarkRow{ID: m.ID, Epoch: m.Epoch, Fence: m.Fence}
		if m.Error != "" {
			r.Error = &m.Error
		}
		r.State, r.NextAt, r.Back = table.Settled(m)
		dead = dead || r.State == outbox.Dead
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx, pgMark, string(list))
	if err != nil {
		return 0, err
	}
	if dead {
		crash.At(crash.DeadLetter)
	}
	return res.RowsAffected()
}

// Prune implements Source.
func (s *Outbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, pgPrune, before, limit)
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
	var oldest sql.NullTime
	err := s.db.QueryRowContext(ctx, pgStats).Scan(&st.Pending, &st.Claimed, &st.Parked, &st.Failing, &oldest)
	if err == nil {
		err = s.db.QueryRowContext(ctx, pgDead).Scan(&st.Dead)
	}
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	if oldest.Valid {
		st.Oldest = oldest.Time.UTC()
	}
	return st, nil
}

// write runs do in a transaction.
func (s *Outbox) write(ctx context.Context, do func(*sql.Tx) error) error {
	return s.spare(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, pgBound); err != nil {
			return err
		}
		return do(tx)
	})
}

// spare is write for what begins with a statement that has pgSpare in it, which saves
// a round trip.
func (s *Outbox) spare(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
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
