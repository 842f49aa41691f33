package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// pgNamed reads the messages that a feed told of. The sum keeps the planner from the
// indexes of undelivered rows, as in pgStands: there is one way to a row by its id.
const pgNamed = `select ` + pgRow + ` from outbox o where o.id = any ($1::text::uuid[]) and o.state + 0 < 2 and o.destination = $2 and o.next_at <= $3
		and (o.lease_end is null or o.lease_end <= $3) and ($4 = '' or o.part = any ((select nullif($4::text, '')::smallint[])::smallint[])) order by o.next_at, o.id`

// pgNamedShelf begins at messages that are named; the fronts of their keys are read
// as ever.
type pgNamedShelf struct {
	*pgShelf
	of map[int64][]table.Row
}

// chooseNamed chooses among the messages that a feed told of. It reads no index that
// delivered rows have left entries in, but for the heads of keys.
func (l *look) chooseNamed(ctx context.Context, tx *sql.Tx, c outbox.Claim, fences map[int]int64, hands table.Hands) (table.Choice, error) {
	sh := &pgShelf{tx: tx, destination: c.Destination, now: c.Now.UnixMicro(), limit: c.Limit, parts: partList(fences), look: l, hands: hands}
	if l.tenants == nil || l.parts != sh.parts { // what is remembered of heads is about something else
		sh.look = &look{heads: map[outbox.Key]int64{}}
	}
	ids := pgArrays(1, len(c.IDs), 40)
	for _, id := range c.IDs {
		if outbox.IsID(id) {
			ids[0].plain(id)
		}
	}
	rows, err := sh.list(ctx, pgNamed, ids[0].String(), c.Destination, table.Time(sh.now), sh.parts)
	if err != nil {
		return table.Choice{}, err
	}
	of := map[int64][]table.Row{}
	for _, r := range hands.Free(rows) {
		of[r.Key.Tenant] = append(of[r.Key.Tenant], r)
	}
	return table.Choose(ctx, pgNamedShelf{sh, of}, c, l.turn)
}

func (sh pgNamedShelf) Tenants(context.Context) ([]int64, error) {
	list := make([]int64, 0, len(sh.of))
	for t := range sh.of {
		list = append(list, t)
	}
	slices.Sort(list)
	return list, nil
}

func (sh pgNamedShelf) Due(_ context.Context, tenant, _ int64, last table.Row) ([]table.Row, bool, error) {
	rows := sh.of[tenant]
	if last.ID != "" {
		at, _ := slices.BinarySearchFunc(rows, last, func(r, last table.Row) int {
			return cmp.Or(cmp.Compare(r.NextAt, last.NextAt), cmp.Compare(r.ID, last.ID), -1)
		})
		rows = rows[at:]
	}
	rows = rows[:min(table.Page, len(rows))]
	sh.page = rows
	return rows, len(rows) < table.Page, nil
}
