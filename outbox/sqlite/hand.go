package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	// The messages of claims that are known are not read again, unless some of them were
	// marked since and others not: the size of such a claim is 0.
	sqliteHands = `select id, lease_end, case when size = 0 or id not in (select value from json_each(?2)) then messages end from outbox_claim where destination = ?1`

	// A claim whose lease ended without a mark is written into the rows that it has.
	sqliteLapse = `update or fail outbox set attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = c.claimed_by, lease_end = c.lease_end
		from (select * from outbox_claim where destination = ?1 and lease_end <= ?2) c, json_each(c.messages) j
		where outbox.id = j.value and outbox.state = 0 and outbox.lease_end is null`
	sqliteForget = `delete from outbox_claim where destination = ?1 and lease_end <= ?2`

	// A number that no other claim has had, also before a restore.
	sqliteHold = `insert into outbox_claim (id, destination, claimed_by, lease_end, size, messages) values (abs(random() >> 1) + 1, ?, ?, ?, ?, ?) returning id`

	sqliteSettle = `delete from outbox_claim where id = ? and size = ?`
	sqliteHad    = `select messages from outbox_claim where id = ?`
	sqliteLeft   = `update outbox_claim set size = 0, messages = ?2 where id = ?1`
	sqliteDrop   = `delete from outbox_claim where id = ?`
)

// hand is what a claim has, and where its rows stood when it took them, if that is known.
type hand struct {
	ids  []string
	rows []int64
}

// knownHands are the claims that this source has made or read. What is remembered
// saves reading it again; which claims there are stands in the table alone.
type knownHands struct {
	mu sync.Mutex
	of map[string]map[int64]hand // by destination and claim
}

func (k *knownHands) put(destination string, claim int64, h hand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]map[int64]hand{}
	}
	if k.of[destination] == nil {
		k.of[destination] = map[int64]hand{}
	}
	k.of[destination][claim] = h
}

// list is the numbers of the claims that are known, as JSON.
func (k *knownHands) list(destination string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []int64
	for claim := range k.of[destination] {
		list = append(list, claim)
	}
	return table.Numbers(list, '[', ']')
}

// keep forgets claims that are no more and returns the others with until when they
// last.
func (k *knownHands) keep(destination string, until map[int64]int64) (hands table.Hands, rows []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	hands = table.Hands{}
	for claim, h := range k.of[destination] {
		lease, lives := until[claim]
		if !lives {
			delete(k.of[destination], claim)
			continue
		}
		for _, id := range h.ids {
			hands[id] = lease
		}
		rows = append(rows, h.rows...)
	}
	return hands, rows
}

// inHand returns what living claims have, after it has written those into the rows
// whose lease ended. rows are where some of it stands; who skips them reads less.
func (s *Outbox) inHand(ctx context.Context, tx *sqliteTx, c outbox.Claim) (hands table.Hands, rows []int64, err error) {
	until, lapsed, err := s.readHands(ctx, tx, c)
	if err != nil {
		return nil, nil, err
	}
	if lapsed {
		for _, query := range []string{sqliteLapse, sqliteForget} {
			if _, err := tx.stmt(ctx, query).ExecContext(ctx, c.Destination, c.Now.UnixMicro()); err != nil {
				return nil, nil, err
			}
		}
	}
	hands, rows = s.known.keep(c.Destination, until)
	return hands, rows, nil
}

func (s *Outbox) readHands(ctx context.Context, tx *sqliteTx, c outbox.Claim) (until map[int64]int64, lapsed bool, err error) {
	list, err := tx.stmt(ctx, sqliteHands).QueryContext(ctx, c.Destination, s.known.list(c.Destination))
	if err != nil {
		return nil, false, err
	}
	defer list.Close()
	until = map[int64]int64{}
	for list.Next() {
		var claim, end int64
		var messages sql.NullString
		if err := list.Scan(&claim, &end, &messages); err != nil {
			return nil, false, err
		}
		if end <= c.Now.UnixMicro() {
			lapsed = true
			continue
		}
		until[claim] = end
		if messages.Valid {
			var ids []string
			if err := json.Unmarshal([]byte(messages.String), &ids); err != nil {
				return nil, false, err
			}
			s.known.put(c.Destination, claim, hand{ids: ids})
		}
	}
	return until, lapsed, list.Err()
}

// holdRows writes a claim of rows that nobody has into a row of its own.
func (s *Outbox) holdRows(ctx context.Context, tx *sqliteTx, c outbox.Claim, chosen []table.Row) (claim int64, err error) {
	h := hand{ids: make([]string, len(chosen)), rows: make([]int64, len(chosen))}
	for i := range chosen {
		h.ids[i], h.rows[i] = chosen[i].ID, chosen[i].N
	}
	list, err := json.Marshal(h.ids)
	if err != nil {
		return 0, err
	}
	err = tx.stmt(ctx, sqliteHold).QueryRowContext(ctx, c.Destination, c.By, c.Now.Add(c.Lease).UnixMicro(), len(chosen), string(list)).Scan(&claim)
	if err == nil {
		s.known.put(c.Destination, claim, h)
	}
	return claim, err
}

// settle takes what is marked out of the claims that have it, and returns the marks
// that stand.
func settle(ctx context.Context, tx *sqliteTx, marks []outbox.Mark) ([]outbox.Mark, error) {
	by := table.ByClaim(marks)
	if len(by) == 0 {
		return marks, nil
	}
	stands := map[int64]map[string]bool{}
	for claim, ids := range by {
		res, err := tx.stmt(ctx, sqliteSettle).ExecContext(ctx, claim, len(ids))
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil {
			return nil, err
		} else if n == 0 {
			if stands[claim], err = settlePart(ctx, tx, claim, ids); err != nil {
				return nil, err
			}
			continue
		}
		stands[claim] = make(map[string]bool, len(ids))
		for _, id := range ids {
			stands[claim][id] = true
		}
	}
	return table.Standing(marks, stands), nil
}

// settlePart takes some of its messages out of a claim, and returns which it had.
func settlePart(ctx context.Context, tx *sqliteTx, claim int64, ids []string) (map[string]bool, error) {
	var messages string
	err := tx.stmt(ctx, sqliteHad).QueryRowContext(ctx, claim).Scan(&messages)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var had []string
	if err == nil {
		err = json.Unmarshal([]byte(messages), &had)
	}
	if err != nil {
		return nil, err
	}
	left, stands := table.Without(had, ids)
	if len(left) == 0 {
		_, err = tx.stmt(ctx, sqliteDrop).ExecContext(ctx, claim)
		return stands, err
	}
	list, err := json.Marshal(left)
	if err == nil {
		_, err = tx.stmt(ctx, sqliteLeft).ExecContext(ctx, claim, string(list))
	}
	return stands, err
}

// split parts deliveries of rows that were written when they were claimed from those
// of rows that were not, each as the JSON of a statement; others are left out.
func split(marks []outbox.Mark) (heavy, light []byte, err error) {
	heavy, light = []byte{'['}, []byte{'['}
	for i := range marks {
		m := &marks[i]
		if m.Outcome != outbox.MarkDelivered {
			continue
		}
		id, err := json.Marshal(m.ID) // that of another writer's row may be any text
		if err != nil {
			return nil, nil, err
		}
		if _, ok := table.ClaimOf(m); ok {
			light = append(append(light, id...), ',')
			continue
		}
		heavy = append(append(append(heavy, '['), id...), ',')
		heavy = append(strconv.AppendInt(heavy, m.Epoch, 10), ']', ',')
	}
	return finish(heavy), finish(light), nil
}

// finish ends a list; it is nil if nothing is in it.
func finish(list []byte) []byte {
	if len(list) == 1 {
		return nil
	}
	return append(slices.Clip(list[:len(list)-1]), ']')
}
