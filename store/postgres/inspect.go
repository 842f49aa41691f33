package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// textTraces joins the next runs of every table whose rows name one, each in
// the order of its index.
// constant: only read
var textTraces = func() statement {
	parts := []string{}
	for _, t := range [...]struct{ table, run string }{
		{"log", "run"}, {"run", "id"}, {"snapshot", "run"}, {"task", "run"}, {"timer", "run"}, {"wait", "run"}, {"approval", "run"}, {"incident", "run"},
	} {
		parts = append(parts, strings.NewReplacer("TABLE", t.table, "RUN", t.run).Replace(
			`select * from (select distinct tenant, RUN as run from TABLE where (tenant, RUN) > ($1::bigint, $2::uuid) order by tenant, RUN limit $3::bigint) TABLE_`))
	}
	return statement(strings.Join(parts, " union ") + ` order by 1, 2 limit $3::bigint`)
}()

// Traces implements store.Inspector.
func (s *Store) Traces(ctx context.Context, after store.Key, limit int) ([]store.Key, error) {
	var keys []store.Key
	c := &call{statement: textTraces, row: func(row cells) error {
		keys = append(keys, row.key(0))
		return nil
	}}
	if after.Run == "" {
		after.Run = firstRun
	}
	c.int(int64(after.Tenant))
	c.run(after.Run)
	c.int(int64(max(limit, 0)))
	err := s.read(ctx, c)
	return keys, err
}

// Strays implements store.Inspector. There are none: the type of the columns
// lets nothing in but run ids.
func (s *Store) Strays(ctx context.Context, _ int) ([]store.BadRow, error) {
	return nil, s.read(ctx, &call{statement: `select 1`})
}

// Inspect implements store.Inspector. All is read in one transaction that sees
// one moment.
func (s *Store) Inspect(ctx context.Context, key store.Key) (store.Inspected, error) {
	var x store.Inspected
	if _, ok := store.RunBytes(key.Run); !ok {
		return x, nil
	}
	calls := append(ends(&x, key), beside(&x, key)...)
	for _, c := range calls {
		c.int(int64(key.Tenant))
		c.run(key.Run)
	}
	if err := s.view(ctx, calls...); err != nil {
		return store.Inspected{}, err
	}
	return x, nil
}

// ends reads where the log ends, the list row, the snapshot and the heads that
// the audit trail names.
func ends(x *store.Inspected, key store.Key) []*call {
	return []*call{
		{statement: `select seq from log where tenant = $1::bigint and run = $2::uuid order by seq desc limit 1`, row: func(row cells) error {
			x.Last = row.num(0)
			return nil
		}},
		{statement: runColumns + textRunOf, row: func(row cells) error {
			r, err := readRun(row)
			if x.Run = &r; err != nil {
				x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "list", Err: err})
			}
			return nil
		}},
		{statement: `select seq, format, body from snapshot where tenant = $1::bigint and run = $2::uuid`, row: func(row cells) error {
			x.Snapshot = &store.Snapshot{Seq: row.num(0), Format: int(row.num(1)), Body: row.blob(2)}
			return nil
		}},
		{statement: `select distinct head from audit where tenant = $1::bigint and run = $2::uuid and length(head) > 0 order by head`, row: func(row cells) error {
			x.AuditHeads = append(x.AuditHeads, row.blob(0))
			return nil
		}},
	}
}

// beside reads the rows that the log fixes, each kind in the order of its key.
func beside(x *store.Inspected, key store.Key) []*call {
	return []*call{
		{statement: `select ` + taskColumns + `, t.check_at from task t where tenant = $1::bigint and run = $2::uuid order by lane`, row: func(row cells) error {
			t := readTask(row)
			x.Tasks = append(x.Tasks, store.InspectedTask{Row: t.Row, Lease: t.TaskLease, Check: row.time(taskCells)})
			return nil
		}},
		{statement: `select id, generation, fire_at, due_at from timer where tenant = $1::bigint and run = $2::uuid order by id`, row: func(row cells) error {
			x.Timers = append(x.Timers, store.InspectedTimer{
				TimerRow: ringi.TimerRow{ID: row.text(0), Generation: int(row.num(1)), FireAt: row.time(2)}, Due: row.time(3),
			})
			return nil
		}},
		{statement: `select step, name, key, generation, opened_at, not_event from wait where tenant = $1::bigint and run = $2::uuid order by step`, row: func(row cells) error {
			x.Waits = append(x.Waits, ringi.WaitRow{
				Step: row.text(0), Event: row.text(1), Key: row.text(2), Generation: row.num(3), OpenedAt: row.time(4), NotEvent: row.text(5),
			})
			return nil
		}},
		{statement: `select step, requester, opened_at, body from approval where tenant = $1::bigint and run = $2::uuid order by step`, row: func(row cells) error {
			a, err := readApproval(row)
			if err != nil {
				x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "approval", Row: a.Step, Err: err})
				return nil
			}
			x.Approvals = append(x.Approvals, a)
			return nil
		}},
		{statement: `select id, since, body from incident where tenant = $1::bigint and run = $2::uuid order by id`, row: func(row cells) error {
			in, err := readIncident(row)
			if err != nil {
				x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "incident", Row: strconv.FormatInt(row.num(0), 10), Err: err})
				return nil
			}
			x.Incidents = append(x.Incidents, in)
			return nil
		}},
	}
}
