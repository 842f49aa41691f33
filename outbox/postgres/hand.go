package postgres

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	// The messages of claims that are known are not read again, unless some of them were
	// marked since and others not: the size of such a claim is 0.
	pgHands = `select id, lease_end, case when size = 0 or id <> all ($2::text::bigint[]) then array_to_string(messages, ',') end from outbox_claim where destination = $1`

	// pgUnheld tells of a row that nobody has by what it says. It is a case, whose value the
	// planner does not guess at: it would take both conditions for rare, where there are
	// no statistics, and read the whole table.
	pgUnheld = `case when o.state = 0 then o.lease_end is null else false end`

	// A claim whose lease ended without a mark is written into the rows that it has.
	// Who deletes it first, this or a mark of it, is the one that it counts for.
	pgLapse = `with gone as (delete from outbox_claim where destination = $1 and lease_end <= $2 returning claimed_by, lease_end, messages)
		update outbox o set attempts = attempts + 1, claim_epoch = claim_epoch + 1, claimed_by = gone.claimed_by, lease_end = gone.lease_end
		from gone cross join lateral unnest(gone.messages) as m(id)
		where o.id = m.id and ` + pgUnheld

	// A number that no other claim has had, also before a restore.
	pgHold = `insert into outbox_claim (id, destination, claimed_by, lease_end, size, messages)
		values ((hashtextextended(gen_random_uuid()::text, 0) & 9223372036854775806) + 1, $1, $2, $3, $4, $5::text::uuid[]) returning id`

	// Deliveries of all that a claim has, which nearly all marks are.
	pgAllOf = `with ` + pgSpare + `, gone as (delete from outbox_claim where id = $3 and size = $4 returning id)
		update outbox o set state = 2, delivered_at = $5, attempts = attempts + 1, claim_epoch = claim_epoch + 1, last_error = null, claimed_by = null
		from spare, unnest($1::text::uuid[], $2::text::bigint[]) as m(id, fence)
		where (select id from gone) is not null and o.id = m.id and ` + pgUnheld + pgFenced

	pgHad  = `select array_to_string(messages, ',') from outbox_claim where id = $1 for update`
	pgLeft = `update outbox_claim set size = 0, messages = $2::text::uuid[] where id = $1`
	pgDrop = `delete from outbox_claim where id = $1`
)

// hands returns what living claims of the destination have, after it has written those
// into the rows whose lease ended.
func (l *look) hands(ctx context.Context, tx *sql.Tx, c outbox.Claim) (table.Hands, error) {
	until, lapsed, err := l.readHands(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	if lapsed {
		if _, err := tx.ExecContext(ctx, pgLapse, c.Destination, c.Now); err != nil {
			return nil, err
		}
	}
	hands := table.Hands{}
	for claim, ids := range l.known {
		lease, lives := until[claim]
		if !lives {
			delete(l.known, claim)
			continue
		}
		for _, id := range ids {
			hands[id] = lease
		}
	}
	return hands, nil
}

// skipped is what living claims have as an array.
func skipped(hands table.Hands) string {
	list := pgArrays(1, len(hands), 37)
	for id := range hands {
		list[0].plain(id)
	}
	return list[0].String()
}

func (l *look) readHands(ctx context.Context, tx *sql.Tx, c outbox.Claim) (until map[int64]int64, lapsed bool, err error) {
	known := pgArrays(1, len(l.known), 20)
	for claim := range l.known {
		known[0].number(claim)
	}
	rows, err := tx.QueryContext(ctx, pgHands, c.Destination, known[0].String())
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	until = map[int64]int64{}
	for rows.Next() {
		var claim int64
		var end time.Time
		var messages sql.NullString
		if err := rows.Scan(&claim, &end, &messages); err != nil {
			return nil, false, err
		}
		if !end.After(c.Now) {
			lapsed = true
			continue
		}
		until[claim] = end.UnixMicro()
		if messages.Valid {
			l.known[claim] = strings.Split(messages.String, ",")
		}
	}
	return until, lapsed, rows.Err()
}

// hold writes a claim of rows that nobody has into a row of its own.
func (l *look) hold(ctx context.Context, tx *sql.Tx, c outbox.Claim, chosen []table.Row) (claim int64, err error) {
	ids := make([]string, len(chosen))
	list := pgArrays(1, len(chosen), 37)
	for i := range chosen {
		ids[i] = chosen[i].ID
		list[0].plain(ids[i])
	}
	err = tx.QueryRowContext(ctx, pgHold, c.Destination, c.By, c.Now.Add(c.Lease), len(chosen), list[0].String()).Scan(&claim)
	if err == nil {
		l.known[claim] = ids
	}
	return claim, err
}

// markWhole settles deliveries if they are all that one claim has. It is one statement,
// and so a transaction by itself, in a third of the round trips. Of a claim that has
// more, or is gone, it settles nothing.
func (s *Outbox) markWhole(ctx context.Context, at time.Time, marks []outbox.Mark) (applied int64, err error) {
	rows := pgArrays(2, len(marks), 40)
	for i := range marks {
		rows[0].plain(marks[i].ID)
		rows[1].number(marks[i].Fence)
	}
	claim, _ := table.ClaimOf(&marks[0])
	size := len(table.ByClaim(marks)[claim])
	res, err := s.db.ExecContext(ctx, pgAllOf, append(pgParams(rows), claim, size, at)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// settle takes what is marked out of the claims that have it, and returns the marks
// that stand.
func settle(ctx context.Context, tx *sql.Tx, marks []outbox.Mark) ([]outbox.Mark, error) {
	by := table.ByClaim(marks)
	claims := make([]int64, 0, len(by))
	for claim := range by {
		claims = append(claims, claim)
	}
	slices.Sort(claims) // the order in which everybody locks them
	stands := map[int64]map[string]bool{}
	for _, claim := range claims {
		var err error
		if stands[claim], err = settleClaim(ctx, tx, claim, by[claim]); err != nil {
			return nil, err
		}
	}
	return table.Standing(marks, stands), nil
}

// settleClaim takes messages out of a claim, and returns which it had.
func settleClaim(ctx context.Context, tx *sql.Tx, claim int64, ids []string) (map[string]bool, error) {
	var had string
	err := tx.QueryRowContext(ctx, pgHad, claim).Scan(&had)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	left, stands := table.Without(strings.Split(had, ","), ids)
	if len(left) == 0 {
		_, err = tx.ExecContext(ctx, pgDrop, claim)
		return stands, err
	}
	list := pgArrays(1, len(left), 37)
	for _, id := range left {
		list[0].plain(id)
	}
	_, err = tx.ExecContext(ctx, pgLeft, claim, list[0].String())
	return stands, err
}
