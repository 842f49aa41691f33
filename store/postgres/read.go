package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// textLoad reads snapshots and log rows in one statement, so that both are of
// one moment. The log is read from the row that holds the event behind the
// snapshot, or else the last one, whose head is wanted even when the snapshot
// covers it.
const textLoad statement = `with s as materialized (
		select w.n, w.tenant, w.run, x.seq, x.format, x.body from unnest($1::bigint[], $2::uuid[]) with ordinality w(tenant, run, n)
		left join lateral (select seq, format, body from snapshot x where x.tenant = w.tenant and x.run = w.run
			and x.seq <= (select l.last from log l where l.tenant = w.tenant and l.run = w.run order by l.seq desc limit 1) offset 0) x on true)
	select s.n, true, s.seq, s.seq, s.format, null::uuid, null::bytea, s.body from s where s.seq is not null
	union all
	select s.n, false, l.seq, l.last, null, l.commit_id, l.head, l.body from s cross join lateral (
		select l.seq, l.last, l.commit_id, l.head, l.body from log l where l.tenant = s.tenant and l.run = s.run
			and l.seq >= coalesce((select f.seq from log f where f.tenant = s.tenant and f.run = s.run and f.seq <= s.seq + 1 order by f.seq desc limit 1), 1)
		order by l.seq) l`

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	loaded := make([]store.Loaded, len(keys))
	if len(keys) == 0 {
		return loaded, nil
	}
	tenant, run := ints(), uuids()
	for i, key := range keys {
		loaded[i].Key = key
		addKey(tenant, run, key)
	}
	c := &call{statement: textLoad, row: func(row cells) error {
		l := &loaded[row.num(0)-1]
		if row.bool(1) {
			l.Snapshot = &store.Snapshot{Seq: row.num(2), Format: int(row.num(4)), Body: row.blob(7)}
			return nil
		}
		r := store.LogRow{First: row.num(2), Last: row.num(3), Head: row.blob(6), Body: row.blob(7)}
		copy(r.Commit[:], row[5])
		l.Rows = append(l.Rows, r)
		return nil
	}}
	c.list(tenant, run)
	if err := s.read(ctx, c); err != nil {
		return nil, err
	}
	for i := range loaded {
		finish(&loaded[i])
	}
	return loaded, nil
}

// finish orders the rows, takes the head, and leaves out the row that the
// snapshot covers.
func finish(l *store.Loaded) {
	slices.SortFunc(l.Rows, func(a, b store.LogRow) int { return cmp.Compare(a.First, b.First) })
	n := len(l.Rows)
	if n == 0 {
		return
	}
	l.Head = l.Rows[n-1].Head
	if l.Snapshot != nil && l.Rows[0].First <= l.Snapshot.Seq {
		l.Rows = l.Rows[1:]
	}
	if len(l.Rows) == 0 {
		l.Rows = nil
	}
}

// textLogAfter reads log rows, from the one that holds the event behind a sequence;
// the bodies before each row are added up, and reading ends with the row that
// passes the limit, but not before the first.
const textLogAfter statement = `select seq, commit_id, head, body, last from (
		select l.seq, l.last, l.commit_id, l.head, l.body, sum(octet_length(l.body)) over (order by l.seq) as total, row_number() over (order by l.seq) as n
		from log l where l.tenant = $1::bigint and l.run = $2::uuid and l.last > $3::bigint
			and l.seq >= coalesce((select f.seq from log f where f.tenant = $1::bigint and f.run = $2::uuid and f.seq <= $3::bigint + 1 order by f.seq desc limit 1), 1)
		order by l.seq limit $5::bigint) x where n = 1 or total <= $4::bigint order by seq`

// logPage is the most log rows of one read: what passes the limit of bytes is
// looked at before it is left away.
const logPage = 1000

// Log implements store.Records.
func (s *Store) Log(ctx context.Context, key store.Key, after int64, maxBytes int) ([]store.LogRow, error) {
	var list []store.LogRow
	c := &call{statement: textLogAfter, row: func(row cells) error {
		l := store.LogRow{First: row.num(0), Last: row.num(4), Head: row.blob(2), Body: row.blob(3)}
		copy(l.Commit[:], row[1])
		list = append(list, l)
		return nil
	}}
	c.int(int64(key.Tenant))
	c.run(key.Run)
	c.int(after)
	c.int(int64(max(maxBytes, 0)))
	c.int(logPage)
	err := s.read(ctx, c)
	return list, err
}

// Standing implements store.Records.
func (s *Store) Standing(ctx context.Context, key store.Key) (ringi.Rows, error) {
	x, err := s.Inspect(ctx, key)
	if err != nil {
		return ringi.Rows{}, err
	}
	if x.Run == nil {
		return ringi.Rows{}, store.ErrNotFound
	}
	rows := ringi.Rows{Run: x.Run.RunRow, Waits: x.Waits, Approvals: x.Approvals, Incidents: x.Incidents}
	for _, t := range x.Tasks {
		rows.Tasks = append(rows.Tasks, t.Row)
	}
	for _, t := range x.Timers {
		rows.Timers = append(rows.Timers, t.TimerRow)
	}
	return rows, unreadable(x.Bad)
}

// Audit implements store.Records.
func (s *Store) Audit(ctx context.Context, key store.Key, limit int) ([]store.AuditRecord, error) {
	if limit <= 0 || limit > store.AuditPage {
		limit = store.AuditPage
	}
	c := &call{statement: `select at, actor, kind, run, answer, data, head from audit where tenant = $1::bigint order by n limit $2::bigint`}
	c.int(int64(key.Tenant))
	c.int(int64(limit))
	if key.Run != "" {
		c.statement = `select at, actor, kind, run, answer, data, head from audit where tenant = $1::bigint and run = $3::uuid order by n limit $2::bigint`
		c.run(key.Run)
	}
	var list []store.AuditRecord
	c.row = func(row cells) error {
		list = append(list, store.AuditRecord{
			At: row.time(0), Actor: row.text(1), Kind: row.text(2), Run: row.run(3),
			Answer: row.text(4), Data: row.blob(5), Head: row.blob(6),
		})
		return nil
	}
	err := s.read(ctx, c)
	return slices.Clip(list), err
}
