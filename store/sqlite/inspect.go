package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// runTables are the tables whose rows name a run, under the name that people
// know them by, with the column that does.
// constant: only read
var runTables = [...]struct{ name, table, run string }{
	{"log", "log", "run"},
	{"list", "run", "id"},
	{"snapshot", "snapshot", "run"},
	{"task", "task", "run"},
	{"timer", "timer", "run"},
	{"wait", "wait", "run"},
	{"approval", "approval", "run"},
	{"incident", "incident", "run"},
}

// ofRunTables joins one read of each of those tables.
func ofRunTables(read string) string {
	parts := make([]string, len(runTables))
	for i, t := range runTables {
		parts[i] = strings.NewReplacer("NAME", t.name, "TABLE", t.table, "RUN", t.run).Replace(read)
	}
	return strings.Join(parts, " union ")
}

// Traces implements store.Inspector. Each table gives its next runs in the
// order of its index.
func (s *Store) Traces(ctx context.Context, after store.Key, limit int) ([]store.Key, error) {
	text := ofRunTables(`select * from (select distinct tenant, RUN as run from TABLE
		where (tenant, RUN) > (?1, ?2) and length(RUN) = 16 order by tenant, RUN limit ?3)`) + ` order by 1, 2 limit ?3`
	var keys []store.Key
	err := s.each(ctx, text, func(row cells) error {
		keys = append(keys, store.Key{Tenant: ringi.Tenant(row.num(0)), Run: row.run(1)})
		return nil
	}, int64(after.Tenant), blobOf(runBlob(after.Run)), int64(max(limit, 0)))
	return keys, err
}

// Strays implements store.Inspector.
func (s *Store) Strays(ctx context.Context, limit int) ([]store.BadRow, error) {
	text := ofRunTables(`select 'NAME', tenant, hex(RUN) from TABLE where length(RUN) <> 16`) + ` limit ?`
	var bad []store.BadRow
	err := s.each(ctx, text, func(row cells) error {
		bad = append(bad, store.BadRow{
			Key: store.Key{Tenant: ringi.Tenant(row.num(1))}, Table: row.text(0), Err: fmt.Errorf("x'%s' is no run id", row.text(2)),
		})
		return nil
	}, int64(max(limit, 0)))
	return bad, err
}

// Inspect implements store.Inspector.
func (s *Store) Inspect(ctx context.Context, key store.Key) (store.Inspected, error) {
	var x store.Inspected
	if runBlob(key.Run) == nil {
		return x, nil
	}
	err := s.view(ctx, func(v view) error {
		if err := v.ends(&x, key); err != nil {
			return err
		}
		return v.beside(&x, key)
	})
	if err != nil {
		return store.Inspected{}, err
	}
	return x, nil
}

// ends reads where the log ends, the list row, the snapshot and the heads that
// the audit trail names.
func (v view) ends(x *store.Inspected, key store.Key) error {
	tenant, run := int64(key.Tenant), runBlob(key.Run)
	err := v.each(`select seq from log where tenant = ? and run = ? order by seq desc limit 1`, func(row cells) error {
		x.Last = row.num(0)
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	err = v.each(runColumns+textRunOf, func(row cells) error {
		r, err := readRun(row)
		if x.Run = &r; err != nil {
			x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "list", Err: err})
		}
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	err = v.each(`select seq, format, body from snapshot where tenant = ? and run = ?`, func(row cells) error {
		x.Snapshot = &store.Snapshot{Seq: row.num(0), Format: int(row.num(1)), Body: row.blob(2)}
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	return v.each(`select distinct head from audit where tenant = ? and run = ? and length(head) > 0`, func(row cells) error {
		x.AuditHeads = append(x.AuditHeads, row.blob(0))
		return nil
	}, tenant, run)
}

// beside reads the rows that the log fixes, each kind in the order of its key.
func (v view) beside(x *store.Inspected, key store.Key) error {
	tenant, run := int64(key.Tenant), runBlob(key.Run)
	err := v.each(`select `+taskColumns+` from task where tenant = ? and run = ? order by lane`, func(row cells) error {
		t := readTask(row)
		x.Tasks = append(x.Tasks, store.InspectedTask{Row: t.Row, Lease: t.TaskLease, Check: fromCheck(row.num(25))})
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	err = v.each(`select id, generation, fire_at, due_at from timer where tenant = ? and run = ? order by id`, func(row cells) error {
		x.Timers = append(x.Timers, store.InspectedTimer{
			TimerRow: ringi.TimerRow{ID: row.text(0), Generation: int(row.num(1)), FireAt: row.time(2)}, Due: row.time(3),
		})
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	err = v.each(`select step, name, key, generation, opened_at, not_event from wait where tenant = ? and run = ? order by step`, func(row cells) error {
		x.Waits = append(x.Waits, ringi.WaitRow{
			Step: row.text(0), Event: row.text(1), Key: row.text(2), Generation: row.num(3), OpenedAt: row.time(4), NotEvent: row.text(5),
		})
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	err = v.each(`select step, requester, opened_at, body from approval where tenant = ? and run = ? order by step`, func(row cells) error {
		a, err := readApproval(row)
		if err != nil {
			x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "approval", Row: a.Step, Err: err})
			return nil
		}
		x.Approvals = append(x.Approvals, a)
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	return v.each(`select id, since, body from incident where tenant = ? and run = ? order by id`, func(row cells) error {
		in, err := readIncident(row)
		if err != nil {
			x.Bad = append(x.Bad, store.BadRow{Key: key, Table: "incident", Row: strconv.FormatInt(row.num(0), 10), Err: err})
			return nil
		}
		x.Incidents = append(x.Incidents, in)
		return nil
	}, tenant, run)
}
