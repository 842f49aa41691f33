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
	MySQL // and MariaDB
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

	// The same for MySQL.
	deskReleased = `select o.id from outbox o where o.next_at = ?` + deskRelease

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
// In MySQL every claim writes the rows.
func (d Dialect) inHand() string {
	if d == MySQL {
		return "false"
	}
	from, id := d.claims()
	return fmt.Sprintf("(lease_end is null and state = 0 and id in (select %s from %s))", id, from)
}

// state is the State of a row.
func (d Dialect) state() string {
	return "case when lease_end is not null or " + d.inHand() + " then 1 else state end"
}

// ofClaim is a column of the claim that has a row and wrote itself alone.
func (d Dialect) ofClaim(column string) string {
	if d == MySQL {
		return "null"
	}
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
	if at, ok := value.(time.Time); ok && q.dialect != Postgres {
		value = at.UnixMicro()
	}
	q.args = append(q.args, value)
	return q.place()
}

// place is the name of the last argument.
func (q *query) place() string {
	switch q.dialect {
	case SQLite:
		return "?" + strconv.Itoa(len(q.args))
	case MySQL:
		return "?" // the next that no place has named yet
	}
	return "$" + strconv.Itoa(len(q.args))
}

// among adds the condition that a column has one of some values, which travel as
// one JSON text, or in MySQL, where that would be of another collation, singly.
func among[T any](q *query, column string, values []T, cast string) error {
	if q.dialect == MySQL {
		if len(values) == 0 {
			q.text.WriteString(" and false")
			return nil
		}
		places := make([]string, len(values))
		for i, value := range values {
			places[i] = q.arg(value)
		}
		q.text.WriteString(" and " + column + " in (" + strings.Join(places, ", ") + ")")
		return nil
	}
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
		if err := among(q, "id", ids, "uuid"); err != nil {
			return err
		}
	}
	if len(f.States) > 0 {
		if err := among(q, q.dialect.state(), f.States, "smallint"); err != nil {
			return err
		}
	}
	if len(f.Destinations) > 0 {
		if err := among(q, "destination", f.Destinations, "text"); err != nil {
			return err
		}
	}
	if len(f.Tenants) > 0 {
		if err := among(q, "tenant", f.Tenants, "bigint"); err != nil {
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
	if d.Dialect != Postgres {
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
	case []byte: // a number as a text
		us, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return fmt.Errorf("outbox: %q is not a time", v)
		}
		m.Time = table.Time(us)
	case time.Time:
		m.Time = v.UTC()
	default:
		return fmt.Errorf("outbox: %v is not a time", value)
	}
	return nil
}

// reopen makes the selected messages due.
func (d *SQL) reopen(ctx context.Context, r Tx, at time.Time, f outbox.Filter) ([]string, error) {
	byID := ""
	if d.Dialect == MySQL {
		byID = "force index (primary) "
	}
	q := d.query("")
	q.text.WriteString("update outbox " + byID + "set state = 0, attempts = 0, next_at = " + q.arg(at) + ", delivered_at = null, lease_end = null, claimed_by = null where id in (")
	return d.change(ctx, r, at, f, q)
}

// purge deletes the selected messages.
func (d *SQL) purge(ctx context.Context, r Tx, at time.Time, f outbox.Filter) ([]string, error) {
	begin := "delete from outbox where id in ("
	if d.Dialect == MySQL {
		begin = "delete o from outbox o force index (primary) where o.id in ("
	}
	return d.change(ctx, r, at, f, d.query(begin))
}

// change runs a statement that ends before the selection, lets go on what waited for
// the selected messages, and returns their ids.
func (d *SQL) change(ctx context.Context, r Tx, at time.Time, f outbox.Filter, q *query) ([]string, error) {
	change := d.changeSelected
	if d.Dialect == MySQL {
		change = d.selectThenChange
	}
	ids, err := change(ctx, r, f, q)
	if err != nil || len(ids) == 0 || !slices.Contains(f.States, outbox.Parked) {
		return ids, err
	}
	if d.Dialect == MySQL {
		return ids, d.releaseByID(ctx, r, at)
	}
	release := d.query("")
	release.text.WriteString("update outbox as o set next_at = " + release.arg(at) + " where next_at = " + release.arg(table.Time(table.Never)) + deskRelease)
	_, err = r.ExecContext(ctx, release.text.String(), release.args...)
	return ids, err
}

// changeSelected selects and changes in one statement.
func (d *SQL) changeSelected(ctx context.Context, r Tx, f outbox.Filter, q *query) ([]string, error) {
	q.text.WriteString("select id from outbox where ")
	if err := q.where(f); err != nil {
		return nil, err
	}
	q.text.WriteString(") returning id")
	return listIDs(r.QueryContext(ctx, q.text.String(), q.args...))
}

// changeAtOnce is how many rows one statement of MySQL changes.
const changeAtOnce = 1000

// selectThenChange selects and then changes by the ids, for MySQL, whose statements
// return nothing, and where a search that locks would wait for every row that a
// transaction has written and not committed.
func (d *SQL) selectThenChange(ctx context.Context, r Tx, f outbox.Filter, q *query) ([]string, error) {
	selected := d.query("select id from outbox where ")
	if err := selected.where(f); err != nil {
		return nil, err
	}
	ids, err := listIDs(r.QueryContext(ctx, selected.text.String(), selected.args...))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	lock := d.query("select id from outbox force index (primary) where id in (") // some may have been pruned
	lock.list(ids)
	lock.text.WriteString(" order by id for update")
	ids, err = listIDs(r.QueryContext(ctx, lock.text.String(), lock.args...))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	q.list(ids)
	_, err = r.ExecContext(ctx, q.text.String(), q.args...)
	return ids, err
}

// list ends a list of ids that has begun.
func (q *query) list(ids []string) {
	for i, id := range ids {
		if i > 0 {
			q.text.WriteString(", ")
		}
		q.text.WriteString(q.arg(id))
	}
	q.text.WriteString(")")
}

// releaseByID lets go on, in MySQL, what waits behind a parked message that is no
// longer there.
func (d *SQL) releaseByID(ctx context.Context, r Tx, at time.Time) error {
	ids, err := listIDs(r.QueryContext(ctx, deskReleased, int64(table.Never)))
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, changeAtOnce) {
		q := d.query("update outbox force index (primary) set next_at = ")
		q.text.WriteString(q.arg(at) + " where state = 0 and id in (")
		q.list(some)
		if _, err := r.ExecContext(ctx, q.text.String(), q.args...); err != nil {
			return err
		}
	}
	return nil
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
	q.text.WriteString("select count(*) from outbox where delivered_at < " + q.arg(at.Add(-outbox.ResendWithin)) + " and id in (select id from (select id from outbox where ")
	if err := q.where(f); err != nil {
		return false, err
	}
	q.text.WriteString(") as selected)")
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
