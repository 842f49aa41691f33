// Package desk is the outbox.Desk of databases that speak SQL: what an operator does
// with messages, in statements that differ little from one database to the next.
package desk

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// Dialect is a database that the statements are written for.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	Postgres
)

// Tx is a transaction that a desk works in.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const (
	deskList = `select id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, %s, seq, %s,
		%s, attempts + case when %s then 1 else 0 end, %s, coalesce(claimed_by, %s, ''), %s, coalesce(last_error, '') from outbox where `

	// What waits behind a parked message that is no longer there.
	deskRelease = ` and state = 0 and lease_end is null and not exists (select 1 from outbox p where p.state = -1 and p.tenant = o.tenant
		and p.aggregatetype = o.aggregatetype and p.aggregateid = o.aggregateid and p.destination = o.destination)`

	deskBacklog = `select destination, tenant, count(case when at = 0 then 1 end), count(case when at = 1 then 1 end), count(case when at = -1 then 1 end),
			count(case when at = 0 and attempts > 0 then 1 end), count(case when at = 3 then 1 end), min(case when at < 2 then %[1]s end)
		from (select destination, tenant, %[2]s as at, attempts, created_at from outbox where state < 2
			union all select destination, tenant, state, attempts, created_at from outbox where state = 3) as w
		group by destination, tenant order by destination, tenant`
)

// claims are the claims that wrote a row of their own and none of those that they
// took, each with the id of each message that it has; see package table.
func (d Dialect) claims() (from, id string) {
	if d == SQLite {
		return "outbox_claim c, json_each(c.messages) j", "j.value"
	}
	return "outbox_claim c, unnest(c.messages) as j(id)", "j.id"
}

// inHand tells of a row that nobody has by what it says whether such a claim has it.
func (d Dialect) inHand() string {
	from, id := d.claims()
	return fmt.Sprintf("(lease_end is null and state = 0 and id in (select %s from %s))", id, from)
}

// state is the State of a row.
func (d Dialect) state() string {
	return "case when lease_end is not null or " + d.inHand() + " then 1 else state end"
}

// ofClaim is a column of the claim that has a row and wrote itself alone.
func (d Dialect) ofClaim(column string) string {
	from, id := d.claims()
	return fmt.Sprintf("case when lease_end is null and state = 0 then (select max(c.%s) from %s where %s = outbox.id) end", column, from, id)
}

// SQLiteHeaders is the column headers in SQLite as JSON that anybody reads: that of
// another writer's row may be JSON that only SQLite reads, such as names without
// quotes, which its own function makes plain.
const SQLiteHeaders = `iif(json_valid(headers), headers, json(headers))`

// SQL is the Desk of a database. Safe for concurrent use.
type SQL struct {
	Dialect Dialect
	DB      *sql.DB

	// Alone does something in a transaction that no claim runs beside: one that
	// has seen a parked message could set its followers back after they were let
	// go on.
	Alone func(ctx context.Context, do func(Tx) error) error
}

var _ outbox.Desk = (*SQL)(nil)

// List implements Desk.
func (d *SQL) List(ctx context.Context, f outbox.Filter) ([]outbox.Entry, error) {
	list, err := d.list(ctx, d.DB, f)
	if err != nil {
		return nil, fmt.Errorf("outbox: list: %w", err)
	}
	return list, nil
}

// Retry implements Desk.
func (d *SQL) Retry(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Dead, outbox.Parked}, outbox.Pending); err != nil {
		return 0, err
	}
	return d.do(ctx, "retry", at, f, d.reopen)
}

// Resend implements Desk.
func (d *SQL) Resend(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Delivered}); err != nil {
		return 0, err
	}
	return d.do(ctx, "resend", at, f, d.resend)
}

// Purge implements Desk.
func (d *SQL) Purge(ctx context.Context, at time.Time, f outbox.Filter) (int, error) {
	if err := f.Only([]outbox.State{outbox.Dead}, outbox.Parked, outbox.Delivered); err != nil {
		return 0, err
	}
	return d.do(ctx, "purge", at, f, d.purge)
}

// Backlog implements Desk.
func (d *SQL) Backlog(ctx context.Context) ([]outbox.Depth, error) {
	list, err := d.backlog(ctx, d.DB)
	if err != nil {
		return nil, fmt.Errorf("outbox: backlog: %w", err)
	}
	return list, nil
}

func (d *SQL) do(ctx context.Context, what string, at time.Time, f outbox.Filter, do func(context.Context, Tx, time.Time, outbox.Filter) ([]string, error)) (n int, err error) {
	err = d.Alone(ctx, func(r Tx) error {
		ids, err := do(ctx, r, at, f)
		if err == nil && len(ids) > 0 {
			err = d.note(ctx, r, outbox.Change{At: at, Verb: what, Reason: outbox.Storable(f.Reason), Messages: ids})
		}
		n = len(ids)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: %s: %w", what, err)
	}
	return n, nil
}

// query is a statement that grows by conditions, with its arguments.
type query struct {
	dialect Dialect
	text    strings.Builder
	args    []any
}

// arg adds an argument and returns how the text names it.
func (q *query) arg(value any) string {
	if at, ok := value.(time.Time); ok && q.dialect == SQLite {
		value = at.UnixMicro()
	}
	q.args = append(q.args, value)
	return q.place()
}

// place is the name of the last argument.
func (q *query) place() string {
	if q.dialect == SQLite {
		return "?" + strconv.Itoa(len(q.args))
	}
	return "$" + strconv.Itoa(len(q.args))
}

// among adds the condition that a column has one of some values, which travel as
// one JSON text.
func (q *query) among(column string, values any, cast string) error {
	list, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if q.dialect == SQLite {
		fmt.Fprintf(&q.text, " and %s in (select value from json_each(%s))", column, q.arg(string(list)))
		return nil
	}
	fmt.Fprintf(&q.text, " and %s in (select jsonb_array_elements_text(%s::text::jsonb)::%s)", column, q.arg(string(list)), cast)
	return nil
}

// where adds the conditions of a filter.
func (q *query) where(f outbox.Filter) error {
	q.text.WriteString("1 = 1")
	if f.IDs != nil {
		// Others no row has, and PostgreSQL would refuse all for one of them.
		ids := slices.DeleteFunc(slices.Clone(f.IDs), func(id string) bool { return !outbox.IsID(id) })
		if err := q.among("id", ids, "uuid"); err != nil {
			return err
		}
	}
	if len(f.States) > 0 {
		if err := q.among(q.dialect.state(), f.States, "smallint"); err != nil {
			return err
		}
	}
	if len(f.Destinations) > 0 {
		if err := q.among("destination", f.Destinations, "text"); err != nil {
			return err
		}
	}
	if len(f.Tenants) > 0 {
		if err := q.among("tenant", f.Tenants, "bigint"); err != nil {
			return err
		}
	}
	for _, c := range []struct{ column, text string }{
		{"aggregatetype", f.AggregateType}, {"aggregateid", f.AggregateID}, {"type", f.Type},
	} {
		if c.text != "" {
			q.text.WriteString(" and " + c.column + " = " + q.arg(c.text))
		}
	}
	if f.After != "" {
		if err := f.Check(); err != nil {
			return err
		}
		cast := ""
		if q.dialect == Postgres {
			cast = "::text::uuid"
		}
		q.text.WriteString(" and id > " + q.arg(f.After) + cast)
	}
	q.text.WriteString(" order by id limit " + q.arg(f.Most()))
	return nil
}

func (d *SQL) query(begin string) *query {
	q := &query{dialect: d.Dialect}
	q.text.WriteString(begin)
	return q
}

// headers is the column of that name as JSON that anybody reads.
func (d *SQL) headers() string {
	if d.Dialect == SQLite {
		return SQLiteHeaders
	}
	return "headers"
}

// time is a column of times, and null where another writer put one that no calendar
// has, such as infinity.
func (d *SQL) time(column string) string {
	if d.Dialect == SQLite {
		return fmt.Sprintf("case when %s between %d and %d then %[1]s end", column, table.Dawn, table.Never)
	}
	return fmt.Sprintf("case when %s between '0001-01-01 00:00:00Z' and '9999-12-31 23:59:59Z' then %[1]s end", column)
}

func (d *SQL) list(ctx context.Context, r Tx, f outbox.Filter) ([]outbox.Entry, error) {
	q := d.query(fmt.Sprintf(deskList, d.headers(), d.time("created_at"), d.Dialect.state(), d.Dialect.inHand(),
		d.time("coalesce(lease_end, "+d.Dialect.ofClaim("lease_end")+", next_at)"), d.Dialect.ofClaim("claimed_by"), d.time("delivered_at")))
	if err := q.where(f); err != nil {
		return nil, err
	}
	rows, err := r.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []outbox.Entry
	for rows.Next() {
		var e outbox.Entry
		var headers string
		var created, next, delivered moment
		if err := rows.Scan(&e.ID, &e.Tenant, &e.Destination, &e.AggregateType, &e.AggregateID, &e.Type, &e.Payload, &e.ContentType, &headers,
			&e.Seq, &created, &e.State, &e.Attempts, &next, &e.ClaimedBy, &delivered, &e.LastError); err != nil {
			return nil, err
		}
		// What a relay says of headers that nobody can read is the last error.
		e.Headers, _ = table.DecodeHeaders(headers)
		e.CreatedAt, e.NextAt, e.DeliveredAt, e.Unordered = created.Time, next.Time, delivered.Time, e.Seq == 0
		list = append(list, e)
	}
	return list, rows.Err()
}

// moment reads a time from either dialect; null is the zero time.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		m.Time = time.Time{}
	case int64:
		m.Time = table.Time(v)
	case time.Time:
		m.Time = v.UTC()
	default:
		return fmt.Errorf("outbox: %v is not a time", value)
	}
	return nil
}

// reopen makes the selected messages due.
func (d *SQL) reopen(ctx context.Context, r Tx, at time.Time, f outbox.Filter) ([]string, error) {
	q := d.query("")
	q.text.WriteString("update outbox set state = 0, attempts = 0, next_at = " + q.arg(at) + ", delivered_at = null, lease_end = null, claimed_by = null where id in (select id from outbox where ")
	return d.change(ctx, r, at, f, q)
}

// purge deletes the selected messages.
func (d *SQL) purge(ctx context.Context, r Tx, at time.Time, f outbox.Filter) ([]string, error) {
	return d.change(ctx, r, at, f, d.query("delete from outbox where id in (select id from outbox where "))
}

// change runs a statement that ends in the selection, lets go on what waited for
// the selected messages, and returns their ids.
func (d *SQL) change(ctx context.Context, r Tx, at time.Time, f outbox.Filter, q *query) ([]string, error) {
	if err := q.where(f); err != nil {
		return nil, err
	}
	q.text.WriteString(") returning id")
	ids, err := listIDs(r.QueryContext(ctx, q.text.String(), q.args...))
	if err != nil || len(ids) == 0 || !slices.Contains(f.States, outbox.Parked) {
		return ids, err
	}
	release := d.query("")
	release.text.WriteString("update outbox as o set next_at = " + release.arg(at) + " where next_at = " + release.arg(table.Time(table.Never)) + deskRelease)
	_, err = r.ExecContext(ctx, release.text.String(), release.args...)
	return ids, err
}

func listIDs(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, rows.Err()
}

// note writes down what is being done, and why.
func (d *SQL) note(ctx context.Context, r Tx, c outbox.Change) error {
	ids, err := json.Marshal(c.Messages)
	if err != nil {
		return err
	}
	q := d.query("insert into outbox_change (at, verb, reason, messages) values (")
	q.text.WriteString(q.arg(c.At) + ", " + q.arg(c.Verb) + ", " + q.arg(c.Reason) + ", " + q.arg(string(ids)))
	if d.Dialect == Postgres {
		q.text.WriteString("::text::jsonb")
	}
	q.text.WriteString(")")
	if _, err = r.ExecContext(ctx, q.text.String(), q.args...); err != nil {
		return fmt.Errorf("write the change down (the table outbox_change is part of the schema, which may run again): %w", err)
	}
	return nil
}

// Changes implements Desk.
func (d *SQL) Changes(ctx context.Context, limit int) ([]outbox.Change, error) {
	q := d.query("select at, verb, reason, messages from outbox_change order by id desc limit ")
	q.text.WriteString(q.arg((&outbox.Filter{Limit: limit}).Most()))
	rows, err := d.DB.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return nil, fmt.Errorf("outbox: changes: %w", err)
	}
	defer rows.Close()
	var list []outbox.Change
	for rows.Next() {
		var c outbox.Change
		var at moment
		var ids string
		if err = rows.Scan(&at, &c.Verb, &c.Reason, &ids); err == nil {
			err = json.Unmarshal([]byte(ids), &c.Messages)
		}
		if err != nil {
			return nil, fmt.Errorf("outbox: changes: %w", err)
		}
		c.At = at.Time
		list = append(list, c)
	}
	return list, rows.Err()
}

// anyOld tells whether a selected message was delivered too long ago.
func (d *SQL) anyOld(ctx context.Context, r Tx, at time.Time, f outbox.Filter) (bool, error) {
	q := d.query("")
	q.text.WriteString("select count(*) from outbox where delivered_at < " + q.arg(at.Add(-outbox.ResendWithin)) + " and id in (select id from outbox where ")
	if err := q.where(f); err != nil {
		return false, err
	}
	q.text.WriteString(")")
	rows, err := r.QueryContext(ctx, q.text.String(), q.args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var n int64
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return false, err
		}
	}
	return n > 0, rows.Err()
}

func (d *SQL) resend(ctx context.Context, r Tx, at time.Time, f outbox.Filter) ([]string, error) {
	if !f.Old {
		old, err := d.anyOld(ctx, r, at, f)
		if err != nil {
			return nil, err
		}
		if old {
			return nil, outbox.ErrResendOld
		}
	}
	return d.reopen(ctx, r, at, f)
}

func (d *SQL) backlog(ctx context.Context, r Tx) ([]outbox.Depth, error) {
	rows, err := r.QueryContext(ctx, fmt.Sprintf(deskBacklog, d.time("created_at"), d.Dialect.state()))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []outbox.Depth{}
	for rows.Next() {
		var p outbox.Depth
		var oldest moment
		if err := rows.Scan(&p.Destination, &p.Tenant, &p.Pending, &p.Claimed, &p.Parked, &p.Failing, &p.Dead, &oldest); err != nil {
			return nil, err
		}
		p.Oldest = oldest.Time
		list = append(list, p)
	}
	return list, rows.Err()
}
