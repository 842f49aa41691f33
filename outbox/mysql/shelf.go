package mysql

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	// tenants lists tenants by jumping from one to the next in the index, which costs
	// one look each, however many rows they have; so many at a time, since the depth
	// of a recursion has a limit.
	tenants = `with recursive t(tenant, n) as (
			select (select min(tenant) from outbox force index (outbox_due) where state = 0 and destination = ? and tenant > ?), 1
			union all
			select (select min(o.tenant) from outbox o force index (outbox_due) where o.state = 0 and o.destination = ? and o.tenant > t.tenant), n + 1 from t where t.tenant is not null and n < 500)
		select tenant from t where tenant is not null order by tenant`

	// A row is read whole at once, since nearly all that are looked at are taken;
	// but not a large payload.
	columns = `select o.id, o.tenant, o.aggregatetype, o.aggregateid, o.seq, o.state, o.claim_epoch, o.next_at, coalesce(o.lease_end, 0), length(o.payload),
		if(length(o.payload) <= 4096, o.payload, null), o.type, o.contenttype, o.headers, o.created_at, o.attempts, o.part`

	// The last column is the number of the key's head.
	due = columns + `, if(o.seq > 0, (select e.open_seq from outbox e force index (outbox_key) where e.tenant = o.tenant and e.aggregatetype = o.aggregatetype
			and e.aggregateid = o.aggregateid and e.destination = o.destination and e.open_seq > 0 order by e.open_seq limit 1), 0)
		from outbox o force index (outbox_due) where o.state = 0 and o.destination = ? and o.tenant = ? and o.next_at >= ? and o.next_at <= ?
		and (o.lease_end is null or o.lease_end <= ?)`
	behindLast = ` and (o.next_at > ? or o.id > ?)`
	inTurn     = ` order by o.next_at, o.id limit ?`

	front = columns + `, 0 from outbox o force index (outbox_key) where o.tenant = ? and o.aggregatetype = ? and o.aggregateid = ?
		and o.destination = ? and o.open_seq > 0 order by o.open_seq limit ?`

	// keysPerRead is how many keys' fronts are read by one statement.
	keysPerRead = 64

	// fullLookShare times as much as a full look took passes before the next, unless
	// a short one finds nothing.
	fullLookShare = 20
)

// look is what claims of one relay for one destination remember from one to the
// next. All of it only saves work. Rows that were delivered leave entries in the
// indexes that the database cannot remove while any transaction is older, and
// whoever begins at the front reads all of them at every claim. So a claim begins
// where the last one found something: nothing undelivered was in front of that, and
// what a commit or an operator put there since is found by the next full look, which
// comes at once when a short one finds nothing.
type look struct {
	mu   sync.Mutex
	met  bool  // the rows of the partitions are there
	busy bool  // the last claim found something
	turn int64 // the tenant that began the last claim

	parts   string          // the partitions that the rest is about
	tenants []int64         // nil: nothing is remembered
	low     map[int64]int64 // when each tenant's first due row was due
	again   time.Time       // by the clock of the claims, when everything is to be looked at again
}

// choose chooses what to claim, with a short look if one will do.
func (l *look) choose(ctx context.Context, tx *sql.Tx, c outbox.Claim, fences map[int]int64) (table.Choice, error) {
	sh := &shelf{tx: tx, destination: c.Destination, parts: among("o.part", fences), look: l}
	if l.tenants != nil && l.parts == sh.parts && c.Now.Before(l.again) {
		ch, err := table.Choose(ctx, sh, c, l.turn)
		if err != nil || len(ch.Rows) > 0 {
			return ch, err
		}
	}
	l.parts, l.tenants, l.low = sh.parts, nil, map[int64]int64{}
	begun := time.Now()
	ch, err := table.Choose(ctx, sh, c, l.turn)
	l.again = c.Now.Add(fullLookShare * time.Since(begun))
	return ch, err
}

// shelf reads for a choice inside the claim's transaction.
type shelf struct {
	tx          *sql.Tx
	destination string
	parts       string // the condition for those that are claimed from; "" is all
	look        *look

	page  []table.Row          // the last that was handed out
	heads map[outbox.Key]int64 // the numbers of the heads of its keys
}

// Tenants implements table.Shelf.
func (sh *shelf) Tenants(ctx context.Context) ([]int64, error) {
	for last := int64(-1); sh.look.tenants == nil || last >= 0; {
		list, err := numbers(sh.tx.QueryContext(ctx, tenants, sh.destination, last, sh.destination))
		if err != nil {
			return nil, err
		}
		last = -1
		if len(list) == 500 {
			last = list[len(list)-1]
		}
		sh.look.tenants = append(sh.look.tenants, list...)
		if len(sh.look.tenants) == 0 {
			return nil, nil
		}
	}
	return sh.look.tenants, nil
}

// Due implements table.Shelf.
func (sh *shelf) Due(ctx context.Context, tenant, now int64, last table.Row) ([]table.Row, bool, error) {
	low, known := sh.look.low[tenant]
	query := due + sh.parts
	args := []any{sh.destination, tenant, low, now, now}
	if last.ID != "" {
		args[2] = last.NextAt
		query += behindLast
		args = append(args, last.NextAt, last.ID)
	} else if !known {
		args[2] = int64(math.MinInt64) // another writer may give any number
	}
	sh.heads = map[outbox.Key]int64{}
	rows, err := sh.list(sh.tx.QueryContext(ctx, query+inTurn, append(args, table.Page)...))
	sh.page = rows
	if last.ID == "" && len(rows) > 0 {
		sh.look.low[tenant] = rows[0].NextAt
	}
	return rows, len(rows) < table.Page, err
}

// Runs implements table.Shelf. Numbers have no gaps, so that rows of the page which
// follow the head one after the other are the front of their key; only of other keys
// the rows are read.
func (sh *shelf) Runs(ctx context.Context, most map[outbox.Key]int) (map[outbox.Key][]table.Row, error) {
	runs := make(map[outbox.Key][]table.Row, len(most))
	for _, r := range sh.page {
		if most[r.Key] > 0 && r.Seq > 0 {
			runs[r.Key] = append(runs[r.Key], r)
		}
	}
	var others []outbox.Key
	for key, run := range runs {
		slices.SortFunc(run, func(a, b table.Row) int { return int(a.Seq - b.Seq) })
		if run[0].Seq != sh.heads[key] || run[len(run)-1].Seq != run[0].Seq+int64(len(run)-1) {
			others = append(others, key)
			delete(runs, key)
		}
	}
	for some := range slices.Chunk(others, keysPerRead) {
		query := strings.TrimSuffix(strings.Repeat("("+front+") union all ", len(some)), " union all ")
		args := make([]any, 0, 5*len(some))
		for _, key := range some {
			args = append(args, key.Tenant, key.AggregateType, key.AggregateID, sh.destination, most[key])
		}
		rows, err := sh.list(sh.tx.QueryContext(ctx, query, args...))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			runs[r.Key] = append(runs[r.Key], r)
		}
	}
	for _, run := range runs { // a union keeps no order
		slices.SortFunc(run, func(a, b table.Row) int { return int(a.Seq - b.Seq) })
	}
	return runs, nil
}

func (sh *shelf) list(rows *sql.Rows, err error) ([]table.Row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []table.Row
	for rows.Next() {
		w := new(table.Whole)
		r := table.Row{Whole: w}
		var head int64
		if err := rows.Scan(&r.ID, &r.Key.Tenant, &r.Key.AggregateType, &r.Key.AggregateID, &r.Seq, &r.State, &r.Epoch, &r.NextAt, &r.Lease, &r.Size,
			&w.Payload, &w.Type, &w.ContentType, &w.Headers, &w.Created, &w.Attempts, &w.Part, &head); err != nil {
			return nil, err
		}
		if r.Lease > 0 {
			r.State = outbox.Claimed
		}
		if head > 0 {
			sh.heads[r.Key] = head
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// numbers reads a column.
func numbers(rows *sql.Rows, err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
}

// among is the condition that a column has the number of one of the partitions; ""
// if those are all.
func among(column string, parts map[int]int64) string {
	if len(parts) == outbox.Partitions {
		return ""
	}
	list := make([]int64, 0, len(parts))
	for p := range parts {
		list = append(list, int64(p))
	}
	slices.Sort(list)
	return " and " + column + " in " + table.Numbers(list, '(', ')')
}
