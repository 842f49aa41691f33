package postgres

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	// pgTenants lists tenants by jumping from one to the next in the index, which
	// costs one look each, however many rows they have.
	pgTenants = `with recursive t(tenant) as (
			(select tenant from outbox where state < 2 and destination = $1 order by tenant limit 1)
			union all
			select (select o.tenant from outbox o where o.state < 2 and o.destination = $1 and o.tenant > t.tenant order by o.tenant limit 1) from t where t.tenant is not null)
		select tenant from t where tenant is not null order by tenant`

	// A row is read whole at once, since nearly all that are looked at are taken;
	// but not a large payload. A time that no calendar has, from another writer, is
	// null, or the nearest that there is.
	pgRow = `o.id::text, o.tenant, o.aggregatetype, o.aggregateid, o.seq, o.state, o.claim_epoch, ` + pgNextAt + `, case when o.lease_end is not null then least(o.lease_end, '9999-12-31 23:59:59Z') end, octet_length(o.payload),
			case when octet_length(o.payload) <= 4096 then o.payload end, o.type, o.contenttype, o.headers::text, ` + pgCreatedAt + `, o.attempts, o.part`
	pgCreatedAt = `case when o.created_at between '0001-01-01 00:00:00Z' and '9999-12-31 23:59:59Z' then o.created_at end`
	pgNextAt    = `greatest(least(o.next_at, '9999-12-31 23:59:59Z'), '0001-01-01 00:00:00Z')`

	// pgFirst reads the first due rows of many tenants at once.
	pgFirst = `select ` + pgRow + ` from unnest($1::text::bigint[], $2::text::timestamptz[]) as t(tenant, low) cross join lateral (
			select * from outbox where state < 2 and destination = $3 and tenant = t.tenant and next_at >= t.low and next_at <= $4 and (lease_end is null or lease_end <= $4)
				and ($5 = '' or part = any ((select nullif($5::text, '')::smallint[])::smallint[])) and id not in (select unnest($7::text::uuid[]))
			order by next_at, id limit $6) o order by o.next_at, o.id`

	pgDue = `select ` + pgRow + ` from outbox o where o.state < 2 and o.destination = $1 and o.tenant = $2 and o.next_at <= $3 and (o.lease_end is null or o.lease_end <= $3)
			and ($4 = '' or o.part = any ((select nullif($4::text, '')::smallint[])::smallint[])) and o.id not in (select unnest($8::text::uuid[]))
			and (o.next_at, o.id) > (coalesce($5, timestamptz '-infinity'), $6::text::uuid) order by o.next_at, o.id limit $7`

	// pgHeads reads the number of the first undelivered message of many keys at once.
	pgHeads = `select k.ord - 1, o.seq from unnest($1::text::bigint[], $2::text::text[], $3::text::text[], $4::text::bigint[]) with ordinality as k(tenant, aggregatetype, aggregateid, head, ord) cross join lateral (
			select seq from outbox where state < 2 and seq > 0 and seq >= k.head and tenant = k.tenant and aggregatetype = k.aggregatetype and aggregateid = k.aggregateid
				and destination = $5 order by seq limit 1) o`

	// pgRuns reads the fronts of many keys at once.
	pgRuns = `select ` + pgRow + ` from unnest($1::text::bigint[], $2::text::text[], $3::text::text[], $4::text::bigint[], $5::text::bigint[]) as k(tenant, aggregatetype, aggregateid, head, n) cross join lateral (
			select * from outbox where state < 2 and seq > 0 and seq >= k.head and tenant = k.tenant and aggregatetype = k.aggregatetype and aggregateid = k.aggregateid
				and destination = $6 order by seq limit k.n) o order by o.tenant, o.aggregatetype, o.aggregateid, o.seq`

	// morePerTenant is how many rows of each tenant the first look takes beyond
	// its share of the claim, for those that turn out not to be claimable.
	morePerTenant = 16

	// mostHeads bounds the keys whose heads are remembered.
	mostHeads = 100_000
)

// pgShelf reads for a choice inside the claim's transaction. A round trip costs
// more than the rows that it brings, so the first look asks for the first rows of
// every tenant whose turn can come in this claim.
type pgShelf struct {
	tx          *sql.Tx
	destination string
	parts       string // those that are claimed from, as partList writes them
	now         int64
	limit       int
	look        *look
	hands       table.Hands // what living claims have
	skip        string      // the same as an array of ids

	ahead map[int64][]table.Row // first rows, read but not handed out
	most  int                   // how many of each were asked for
	page  []table.Row           // the last that were handed out
}

func (sh *pgShelf) Tenants(ctx context.Context) ([]int64, error) {
	if sh.look.tenants == nil {
		list, err := sh.allTenants(ctx)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		sh.look.tenants = list
	}
	return sh.look.tenants, sh.first(ctx, table.InTurn(sh.look.tenants, sh.look.turn))
}

func (sh *pgShelf) allTenants(ctx context.Context) ([]int64, error) {
	rows, err := sh.tx.QueryContext(ctx, pgTenants, sh.destination)
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

// first reads the first due rows of the tenants whose turn comes first.
func (sh *pgShelf) first(ctx context.Context, turns []int64) error {
	turns = turns[:min(len(turns), sh.limit)]
	sh.most = min(table.Page, morePerTenant+sh.limit/len(turns))
	sh.ahead = make(map[int64][]table.Row, len(turns))
	from := pgArrays(2, len(turns), 24)
	for _, t := range turns {
		sh.ahead[t] = nil
		from[0].number(t)
		if low, known := sh.look.low[t]; known {
			from[1].time(table.Time(low))
		} else {
			from[1].plain("-infinity")
		}
	}
	rows, err := sh.list(ctx, pgFirst, from[0].String(), from[1].String(), sh.destination, table.Time(sh.now), sh.parts, sh.most, sh.skip)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t := r.Key.Tenant
		if len(sh.ahead[t]) == 0 {
			sh.look.low[t] = r.NextAt
		}
		sh.ahead[t] = append(sh.ahead[t], r)
	}
	return nil
}

func (sh *pgShelf) Due(ctx context.Context, tenant, now int64, last table.Row) ([]table.Row, bool, error) {
	if rows, ok := sh.ahead[tenant]; ok && last.ID == "" {
		delete(sh.ahead, tenant)
		sh.page = rows
		return rows, len(rows) < sh.most, nil
	}
	from := sql.NullTime{Time: table.Time(last.NextAt), Valid: last.ID != ""}
	if last.ID == "" {
		last.ID = "00000000-0000-0000-0000-000000000000"
	}
	rows, err := sh.list(ctx, pgDue, sh.destination, tenant, table.Time(now), sh.parts, from, last.ID, table.Page, sh.skip)
	sh.page = rows
	return rows, len(rows) < table.Page, err
}

// runs reads of a key that the page has one row of, which is the usual case, only
// whether that row is its head, and of all others the rows.
func (sh *pgShelf) Runs(ctx context.Context, most map[outbox.Key]int) (map[outbox.Key][]table.Row, error) {
	if len(most) == 0 {
		return nil, nil
	}
	if len(sh.look.heads) > mostHeads {
		clear(sh.look.heads)
	}
	runs, err := sh.single(ctx, most)
	if err != nil || len(runs) == len(most) {
		return runs, err
	}
	wants := pgArrays(5, len(most)-len(runs), 16)
	for key, n := range most {
		if runs[key] != nil {
			continue
		}
		sh.want(wants, key)
		wants[4].number(int64(n))
	}
	rows, err := sh.list(ctx, pgRuns, append(pgParams(wants), sh.destination)...)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(runs[r.Key]) == 0 {
			sh.look.heads[r.Key] = r.Seq
		}
		runs[r.Key] = append(runs[r.Key], r)
	}
	return runs, nil
}

// want adds a key, and where its head is looked for, to the arrays of a query.
func (sh *pgShelf) want(wants []pgArray, key outbox.Key) {
	wants[0].number(key.Tenant)
	wants[1].text(key.AggregateType)
	wants[2].text(key.AggregateID)
	wants[3].number(sh.look.heads[key])
}

// single returns the runs of those keys whose head is their only row of the page.
func (sh *pgShelf) single(ctx context.Context, most map[outbox.Key]int) (map[outbox.Key][]table.Row, error) {
	runs := make(map[outbox.Key][]table.Row, len(most))
	asked := make([]*table.Row, 0, len(most))
	wants := pgArrays(4, len(most), 16)
	for i := range sh.page {
		if r := &sh.page[i]; r.Seq > 0 && most[r.Key] == 1 {
			sh.want(wants, r.Key)
			asked = append(asked, r)
		}
	}
	if len(asked) == 0 {
		return runs, nil
	}
	rows, err := sh.tx.QueryContext(ctx, pgHeads, append(pgParams(wants), sh.destination)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var seq int64
		if err := rows.Scan(&n, &seq); err != nil {
			return nil, err
		}
		r := asked[n]
		sh.look.heads[r.Key] = seq
		if seq == r.Seq {
			runs[r.Key] = []table.Row{*r}
		}
	}
	return runs, rows.Err()
}

// pgWhole is what a row of PostgreSQL has besides that by which it is chosen.
type pgWhole struct {
	payload                    []byte // nil if it is large
	kind, contentType, headers string
	created                    sql.NullTime
	attempts, part             int
}

// message is the row as it is after its claim.
func (w *pgWhole) message(r *table.Row, destination string, epoch int64) outbox.ClaimedMessage {
	m := outbox.ClaimedMessage{
		Message: outbox.Message{
			ID: r.ID, Tenant: r.Key.Tenant, AggregateType: r.Key.AggregateType, AggregateID: r.Key.AggregateID, Type: w.kind, Payload: w.payload,
			ContentType: w.contentType, Destination: destination, Unordered: r.Seq == 0, Seq: r.Seq, CreatedAt: w.created.Time.UTC(),
		},
		Attempt: w.attempts + 1, Orphaned: r.State == outbox.Claimed, Epoch: epoch,
	}
	table.Read(&m, w.headers, w.created.Valid)
	return m
}

func (sh *pgShelf) list(ctx context.Context, query string, args ...any) ([]table.Row, error) {
	rows, err := sh.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []table.Row
	for rows.Next() {
		w := new(pgWhole)
		r := table.Row{Whole: w}
		var nextAt time.Time
		var lease sql.NullTime
		if err := rows.Scan(&r.ID, &r.Key.Tenant, &r.Key.AggregateType, &r.Key.AggregateID, &r.Seq, &r.State, &r.Epoch, &nextAt, &lease, &r.Size,
			&w.payload, &w.kind, &w.contentType, &w.headers, &w.created, &w.attempts, &w.part); err != nil {
			return nil, err
		}
		r.NextAt = nextAt.UnixMicro()
		if lease.Valid {
			r.State, r.Lease = outbox.Claimed, lease.Time.UnixMicro()
		}
		sh.hands.Show(&r)
		list = append(list, r)
	}
	return list, rows.Err()
}

// partList is partitions as a list of numbers; empty means all.
func partList(parts map[int]int64) string {
	if len(parts) == outbox.Partitions {
		return ""
	}
	list := make([]int64, 0, len(parts))
	for p := range parts {
		list = append(list, int64(p))
	}
	slices.Sort(list)
	if len(list) == 0 {
		return ""
	}
	return table.Numbers(list, '{', '}')
}
