package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A bareKind is a statement that writes one kind of row and nothing else: no
// condition is looked at, and nobody asks what was changed.
type bareKind int

const (
	bareLog      bareKind = iota // insert
	bareRun                      // insert
	bareRunEnd                   // update
	bareTask                     // insert
	bareTaskNext                 // update in place, with the next attempt
	bareClaim                    // update of the lease
	bareTaskEnd                  // delete
	bareKinds                    // how many there are
)

// A bareStatement is the text of a kind in parts. The first keys columns find
// the row; SQL is made of them for each database.
type bareStatement struct {
	verb    string // insert, update or delete
	table   string
	keys    int
	columns string // NAME:TYPE, a blank between them; TYPE as PostgreSQL calls it
}

const (
	leaseCells = "state:bigint token:bigint confirmed:bool worker:text lease_end:timestamptz attempt_end:timestamptz lapsed:bigint"
	taskKey    = "tenant:bigint run:uuid lane:bigint"
	taskCells  = taskKey + " step:text direction:text attempt:bigint seq:bigint input_seq:bigint activity:text queue:text" +
		" ready_at:timestamptz give_up_at:timestamptz total_at:timestamptz timeout:bigint heartbeat:bigint begin:bool begun:bigint held:bigint " + leaseCells
)

// bareStatements are the statements of the kinds. A column that W3 leaves null
// is left out, and so is one that is never changed in place.
// constant: only read
var bareStatements = [bareKinds]bareStatement{
	bareLog: {"insert", "log", 0, "tenant:bigint run:uuid seq:bigint last:bigint commit_id:uuid head:bytea body:bytea"},
	bareRun: {"insert", "run", 0, "tenant:bigint id:uuid name:text version:bigint digest:text input_digest:text requester:text title:text" +
		" started_at:timestamptz status:bigint waits_for:text waits_step:text ended_at:timestamptz"},
	bareRunEnd:   {"update", "run", 2, "tenant:bigint id:uuid status:bigint waits_for:text waits_step:text ended_at:timestamptz"},
	bareTask:     {"insert", "task", 0, taskCells + " check_at:timestamptz"},
	bareTaskNext: {"update", "task", 3, taskCells},
	bareClaim:    {"update", "task", 3, taskKey + " " + leaseCells},
	bareTaskEnd:  {"delete", "task", 3, taskKey},
}

// split returns the names and types of the columns.
func (s bareStatement) split() (names, types []string) {
	for _, column := range strings.Fields(s.columns) {
		name, kind, _ := strings.Cut(column, ":")
		names, types = append(names, name), append(types, kind)
	}
	return names, types
}

// sqlite is the statement for one row: values in the order of the columns, the
// keys of an update or delete last.
func (s bareStatement) sqlite() string {
	names, _ := s.split()
	switch s.verb {
	case "insert":
		return fmt.Sprintf("insert into %s (%s) values (%s)", s.table, strings.Join(names, ", "), strings.Join(repeated("?", len(names)), ", "))
	case "update":
		return fmt.Sprintf("update %s set %s = ? where %s = ?", s.table, strings.Join(names[s.keys:], " = ?, "), strings.Join(names[:s.keys], " = ? and "))
	}
	return fmt.Sprintf("delete from %s where %s = ?", s.table, strings.Join(names[:s.keys], " = ? and "))
}

// postgres is the statement for any number of rows, one array per column.
func (s bareStatement) postgres() string {
	names, types := s.split()
	arrays := make([]string, len(types))
	for i, kind := range types {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	rows := fmt.Sprintf("unnest(%s) w(%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
	equal := func(names []string, with, between string) string {
		list := make([]string, len(names))
		for i, n := range names {
			list[i] = fmt.Sprintf(with, n, n)
		}
		return strings.Join(list, between)
	}
	switch s.verb {
	case "insert":
		return fmt.Sprintf("insert into %s (%s) select %s from %s", s.table, strings.Join(names, ", "), equal(names, "w.%[1]s", ", "), rows)
	case "update":
		return fmt.Sprintf("update %s t set %s from %s where %s", s.table, equal(names[s.keys:], "%s = w.%s", ", "), rows, equal(names[:s.keys], "t.%s = w.%s", " and "))
	}
	return fmt.Sprintf("delete from %s t using %s where %s", s.table, rows, equal(names[:s.keys], "t.%s = w.%s", " and "))
}

func repeated(text string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}

// A bareRow is one row of a kind: int64, string, []byte, [16]byte, bool or
// time.Time, in the order of its columns. The run's id is the second.
type bareRow struct {
	kind   bareKind
	values []any
}

// rowsOf are the rows of the log, the list and the tasks that a write changes.
func rowsOf(w *store.Write) []bareRow {
	tenant, run := int64(w.Tenant), rawRun(w.Key.Run)
	var rows []bareRow
	if w.Body != nil {
		rows = append(rows, bareRow{bareLog, []any{tenant, run, w.First, w.Last, [16]byte(w.Commit), w.Head, w.Body}})
	}
	if r := w.Start; r != nil {
		rows = append(rows, bareRow{bareRun, []any{
			tenant, run, r.Definition, int64(r.Version), r.Digest, r.InputDigest, r.Requester, r.Title,
			r.StartedAt, bareStatus(r.Status), r.WaitsFor, r.WaitsStep, r.EndedAt,
		}})
	}
	if r := w.Run; r != nil {
		rows = append(rows, bareRow{bareRunEnd, []any{tenant, run, bareStatus(r.Status), r.WaitsFor, r.WaitsStep, r.EndedAt}})
	}
	for i := range w.Tasks {
		rows = append(rows, taskRowOf(w, &w.Tasks[i]))
	}
	return rows
}

func taskRowOf(w *store.Write, ch *store.TaskChange) bareRow {
	key := []any{int64(w.Tenant), rawRun(w.Key.Run), int64(ch.Lane)}
	r := ch.Row
	if r == nil {
		return bareRow{bareTaskEnd, key}
	}
	lease := store.TaskLease{Token: r.Token(0)}
	if l := ch.Lease; l != nil {
		lease = store.HandOut(*r, r.Token(1), l.Worker, l.At, l.Until)
	}
	values := append(key, r.Step, string(r.Direction), int64(r.Attempt), r.Seq, r.InputSeq, r.Activity, r.Queue,
		r.ReadyAt, r.GiveUpAt, r.TotalAt, int64(r.Timeout), int64(r.Heartbeat), r.Begin, r.Begun, int64(0))
	values = append(values, leaseValues(lease)...)
	if len(w.Needs) > 0 {
		return bareRow{bareTaskNext, values}
	}
	return bareRow{bareTask, append(values, store.FirstCheck(*r, lease))}
}

func leaseValues(l store.TaskLease) []any {
	state := int64(0)
	if l.Leased {
		state = 1
	}
	return []any{state, l.Token, l.Confirmed, l.Worker, l.LeaseEnd, l.AttemptEnd, int64(l.Lapsed)}
}

func claimValues(out *store.Claimed, c store.Claim) []any {
	lease := store.HandOut(out.Row, out.Token, c.Worker, c.Now, c.Now.Add(c.Handover))
	return append([]any{int64(out.Key.Tenant), rawRun(out.Key.Run), int64(out.Row.Lane)}, leaseValues(lease)...)
}

// rawRun is the bytes of a run id that came from an engine.
func rawRun(run ringi.RunID) [16]byte {
	raw, _ := store.RunBytes(run)
	return raw
}

// bareStatus is a status as a column: for the floor only its index counts, in
// which final runs are not.
func bareStatus(s ringi.Status) int64 {
	if s.Final() {
		return 10
	}
	return 1
}

// freshRun is a run id of version 7 as the engine draws them: random behind the
// millisecond.
func freshRun(at time.Time, high, low uint64) (id [16]byte) {
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	for i := range 8 {
		id[8+i] = byte(low >> (8 * i))
	}
	id[6], id[7] = 0x70|byte(high)&0x0f, byte(high>>8)
	id[8] = 0x80 | id[8]&0x3f
	return id
}
