package postgres

import (
	"context"
	"database/sql"
	"maps"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	// Any due row of the destination, from the front of the index.
	pgAnyDue = `select exists (select 1 from outbox where state < 2 and destination = $1 and next_at <= $2 and (lease_end is null or lease_end <= $2)
		and ($3 = '' or part = any ((select nullif($3::text, '')::smallint[])::smallint[])))`

	// Tenants with a due row, from where their last claim began.
	pgDuePast = `select t.tenant from unnest($1::text::bigint[], $2::text::timestamptz[]) as t(tenant, low) where exists (select 1 from outbox
		where state < 2 and destination = $3 and tenant = t.tenant and next_at >= t.low and next_at <= $4 and (lease_end is null or lease_end <= $4)
			and ($5 = '' or part = any ((select nullif($5::text, '')::smallint[])::smallint[]))) order by t.tenant`

	// fullLookShare times as much as a full look took passes before the next, unless
	// a short one finds nothing.
	fullLookShare = 20

	// manyClaimed are so many messages that what they leave in the indexes makes full
	// looks slow until the next vacuum.
	manyClaimed = 5000

	// mostPast bounds the tenants that are remembered.
	mostPast = 1000
)

// look is what claims of one destination remember from one to the next. All of
// it only saves work. Rows that were delivered leave entries in the indexes that
// a vacuum cannot remove while any transaction in the database is older, and
// whoever begins at the front reads all of them at every claim. So a claim begins
// where the last one found something: nothing undelivered was in front of that,
// and what a commit or an operator put there since is found by the next full
// look. That comes at once when a short one finds nothing; behind a large backlog, which
// no vacuum has cleaned up after yet, it comes when its time has.
type look struct {
	mu   sync.Mutex
	met  bool  // the rows of the partitions are there
	busy bool  // the last claim found something
	turn int64 // the tenant that began the last claim

	parts   string               // the partitions that the rest is about
	tenants []int64              // nil: nothing is remembered
	low     map[int64]int64      // when each tenant's first due row was due
	heads   map[outbox.Key]int64 // the number of each key's head
	again   time.Time            // by the clock of the claims, when everything is to be looked at again

	claimed int             // messages so far
	past    map[int64]int64 // where the last claim of each tenant began, also when nothing is left

	known map[int64][]string // what claims have that wrote no rows, as far as it was made or read here
}

// choose chooses what to claim, with a short look if one will do.
func (l *look) choose(ctx context.Context, tx *sql.Tx, c outbox.Claim, fences map[int]int64, hands table.Hands) (table.Choice, error) {
	sh := &pgShelf{tx: tx, destination: c.Destination, now: c.Now.UnixMicro(), limit: c.Limit, parts: partList(fences), look: l, hands: hands, skip: skipped(hands)}
	if l.tenants != nil && l.parts == sh.parts && c.Now.Before(l.again) {
		ch, err := table.Choose(ctx, sh, c, l.turn)
		if err != nil || len(ch.Rows) > 0 || l.claimed >= manyClaimed {
			return ch, err
		}
	}
	if l.parts != sh.parts {
		clear(l.past) // what the relay got may have waited for longer
	}
	l.parts, l.tenants, l.low, l.heads = sh.parts, nil, map[int64]int64{}, map[outbox.Key]int64{}
	begun := time.Now()
	sh.ahead = nil
	ch, err := table.Choose(ctx, sh, c, l.turn)
	l.again = c.Now.Add(fullLookShare * time.Since(begun))
	return ch, err
}

// took remembers that something was claimed.
func (l *look) took(rows []table.Row) {
	l.turn = rows[0].Key.Tenant
	l.claimed += len(rows)
	if len(l.past) > mostPast {
		clear(l.past)
	}
	for i := range rows {
		t := rows[i].Key.Tenant
		if low, known := l.low[t]; known {
			l.past[t] = low
		}
	}
}

// anyDue tells whether it is worth to lock the partitions.
func (l *look) anyDue(ctx context.Context, db *sql.DB, c outbox.Claim) (bool, error) {
	parts := ""
	if n := len(c.Partitions); n > 0 && n < outbox.Partitions {
		parts = partNumbers(c.Partitions)
	}
	if l.claimed >= manyClaimed && len(l.past) > 0 && l.parts == parts && c.Now.Before(l.again) {
		tenants, err := l.duePast(ctx, db, c, parts)
		if err == nil && len(tenants) > 0 {
			l.tenants, l.low, l.heads = tenants, maps.Clone(l.past), map[outbox.Key]int64{}
		}
		return len(tenants) > 0, err
	}
	var due bool
	begun := time.Now()
	err := db.QueryRowContext(ctx, pgAnyDue, c.Destination, c.Now, parts).Scan(&due)
	l.again = c.Now.Add(fullLookShare * time.Since(begun))
	if due {
		l.tenants = nil // it may be of one that is not known
	}
	return due, err
}

// duePast lists the tenants that have a due row behind where their last claim began.
func (l *look) duePast(ctx context.Context, db *sql.DB, c outbox.Claim, parts string) ([]int64, error) {
	from := pgArrays(2, len(l.past), 24)
	for t, low := range l.past {
		from[0].number(t)
		from[1].time(table.Time(low))
	}
	rows, err := db.QueryContext(ctx, pgDuePast, from[0].String(), from[1].String(), c.Destination, c.Now, parts)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []int64
	for rows.Next() {
		var t int64
		if err := rows.Scan(&t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, rows.Err()
}
