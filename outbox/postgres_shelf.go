package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	// pgTenants lists tenants by jumping from one to the next in the index, which
	// costs one look each, however many rows they have.
	pgTenants = `with recursive t(tenant) as (
			(select tenant from outbox where state < 2 and destination = $1 order by tenant limit 1)
			union all
			select (select o.tenant from outbox o where o.state < 2 and o.destination = $1 and o.tenant > t.tenant order by o.tenant limit 1) from t where t.tenant is not null)
		select tenant from t where tenant is not null order by tenant`

	pgRow = `o.id::text, o.tenant, o.aggregatetype, o.aggregateid, o.seq, o.state, o.claim_epoch, o.next_at, octet_length(o.payload)`

	// pgFirst reads the first due rows of many tenants at once.
	pgFirst = `select ` + pgRow + ` from unnest(string_to_array($1, ',')::bigint[]) as t(tenant) cross join lateral (
			select * from outbox where state < 2 and destination = $2 and tenant = t.tenant and next_at <= $3
				and ($4 = '' or part = any (string_to_array($4, ',')::smallint[]))
			order by next_at, id limit $5) o order by o.next_at, o.id`

	pgDue = `select ` + pgRow + ` from outbox o where o.state < 2 and o.destination = $1 and o.tenant = $2 and o.next_at <= $3
			and ($4 = '' or o.part = any (string_to_array($4, ',')::smallint[]))
			and (o.next_at, o.id) > ($5, $6::text::uuid) order by o.next_at, o.id limit $7`

	// pgRuns reads the fronts of many keys at once.
	pgRuns = `select ` + pgRow + ` from jsonb_to_recordset($1::text::jsonb) as k(tenant bigint, aggregatetype text, aggregateid text, n int) cross join lateral (
			select * from outbox where state < 2 and seq > 0 and tenant = k.tenant and aggregatetype = k.aggregatetype and aggregateid = k.aggregateid
				and destination = $2 order by seq limit k.n) o order by o.tenant, o.aggregatetype, o.aggregateid, o.seq`

	// leastPerTenant is how many rows of each tenant the first look takes, at
	// least: enough to find a claimable one among a few that are not.
	leastPerTenant = 16
)

// pgShelf reads for a choice inside the claim's transaction. A round trip costs
// more than the rows that it brings, so the first look asks for the first rows of
// every tenant whose turn can come in this claim.
type pgShelf struct {
	tx          *sql.Tx
	destination string
	parts       map[int]int64 // nil: all
	now         int64
	limit       int
	after       int64 // the tenant that began the last claim

	ahead map[int64][]row // first rows, read but not handed out
	most  int             // how many of each were asked for
}

func (sh *pgShelf) tenants(ctx context.Context) ([]int64, error) {
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
	if err := rows.Err(); err != nil || len(list) == 0 {
		return nil, err
	}
	return list, sh.look(ctx, inTurn(list, sh.after))
}

// look reads the first due rows of the tenants whose turn comes first.
func (sh *pgShelf) look(ctx context.Context, turns []int64) error {
	turns = turns[:min(len(turns), sh.limit)]
	sh.most = min(page, max(leastPerTenant, 2*sh.limit/len(turns)))
	sh.ahead = make(map[int64][]row, len(turns))
	for _, t := range turns {
		sh.ahead[t] = nil
	}
	rows, err := sh.list(ctx, pgFirst, numbers(turns), sh.destination, fromMicro(sh.now), sh.partList(), sh.most)
	if err != nil {
		return err
	}
	for _, r := range rows {
		sh.ahead[r.key.Tenant] = append(sh.ahead[r.key.Tenant], r)
	}
	return nil
}

func (sh *pgShelf) due(ctx context.Context, tenant, now int64, last row) ([]row, bool, error) {
	if rows, ok := sh.ahead[tenant]; ok && last.id == "" {
		delete(sh.ahead, tenant)
		return rows, len(rows) < sh.most, nil
	}
	if last.id == "" {
		last.id = "00000000-0000-0000-0000-000000000000"
	}
	rows, err := sh.list(ctx, pgDue, sh.destination, tenant, fromMicro(now), sh.partList(), fromMicro(last.nextAt), last.id, page)
	return rows, len(rows) < page, err
}

func (sh *pgShelf) runs(ctx context.Context, most map[Key]int) (map[Key][]row, error) {
	if len(most) == 0 {
		return nil, nil
	}
	type want struct {
		Tenant        int64  `json:"tenant"`
		AggregateType string `json:"aggregatetype"`
		AggregateID   string `json:"aggregateid"`
		N             int    `json:"n"`
	}
	wants := make([]want, 0, len(most))
	for key, n := range most {
		wants = append(wants, want{key.Tenant, key.AggregateType, key.AggregateID, n})
	}
	list, err := json.Marshal(wants)
	if err != nil {
		return nil, err
	}
	rows, err := sh.list(ctx, pgRuns, string(list), sh.destination)
	if err != nil {
		return nil, err
	}
	runs := make(map[Key][]row, len(most))
	for _, r := range rows {
		runs[r.key] = append(runs[r.key], r)
	}
	return runs, nil
}

func (sh *pgShelf) list(ctx context.Context, query string, args ...any) ([]row, error) {
	rows, err := sh.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []row
	for rows.Next() {
		var r row
		var nextAt time.Time
		if err := rows.Scan(&r.id, &r.key.Tenant, &r.key.AggregateType, &r.key.AggregateID, &r.seq, &r.state, &r.epoch, &nextAt, &r.size); err != nil {
			return nil, err
		}
		r.nextAt = nextAt.UnixMicro()
		list = append(list, r)
	}
	return list, rows.Err()
}

// partList is the partitions as a list of numbers; empty means all.
func (sh *pgShelf) partList() string {
	if sh.parts == nil {
		return ""
	}
	list := make([]int64, 0, len(sh.parts))
	for p := range sh.parts {
		list = append(list, int64(p))
	}
	return numbers(list)
}

// numbers is a list as a text that PostgreSQL makes an array of.
func numbers(list []int64) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}
