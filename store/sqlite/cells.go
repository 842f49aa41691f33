package sqlite

import (
	"math"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// cells is a row as the driver read it: int64, string, []byte or nil. The
// tables are strict, so a cell of another type can only be a null.
type cells []any

func (c cells) num(i int) int64 {
	n, _ := c[i].(int64)
	return n
}

func (c cells) text(i int) string {
	s, _ := c[i].(string)
	return s
}

func (c cells) blob(i int) []byte {
	b, _ := c[i].([]byte)
	return b
}

func (c cells) time(i int) time.Time { return fromMicro(c.num(i)) }

func (c cells) run(i int) ringi.RunID { return store.RunText(c.blob(i)) }

// micro is a time as a column: 0 is none.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// never is the check time of a row that no sweep has to look at.
const never = math.MaxInt64

// checkAt is a check time as a column: zero is never.
func checkAt(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMicro()
}

// fromCheck is the reverse of checkAt.
func fromCheck(us int64) time.Time {
	if us == never {
		return time.Time{}
	}
	return fromMicro(us)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// textOrNull is a text that is null when it is empty.
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// blobOf is a blob that is not null when it is empty.
func blobOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// runBlob is a run id as a column; nil for a text that is no run id, which
// matches no row.
func runBlob(id ringi.RunID) []byte {
	raw, ok := store.RunBytes(id)
	if !ok {
		return nil
	}
	return raw[:]
}

// statusCodes are the statuses as columns; the final ones are 10 and above,
// which the index of open runs relies on.
// constant: only read
var statusCodes = map[ringi.Status]int64{
	ringi.Running: 1, ringi.Waiting: 2, ringi.Paused: 3, ringi.Compensating: 4, ringi.InIncident: 5,
	ringi.Completed: 10, ringi.Failed: 11, ringi.Compensated: 12, ringi.Cancelled: 13, ringi.Terminated: 14,
}

// statusOf is the status of a code; "" for one that this program does not know.
func statusOf(code int64) ringi.Status {
	for _, s := range ringi.Statuses() {
		if statusCodes[s] == code {
			return s
		}
	}
	return ""
}

// taskColumns are the columns that readTask reads, in its order.
const taskColumns = `tenant, run, lane, step, direction, attempt, seq, input_seq, activity, queue, ready_at, give_up_at, total_at,
	timeout, heartbeat, begin, begun, held, state, token, confirmed, worker, lease_end, attempt_end, lapsed, check_at`

// readTask reads a row of taskColumns.
func readTask(c cells) store.DueTask {
	return store.DueTask{
		Key: store.Key{Tenant: ringi.Tenant(c.num(0)), Run: c.run(1)},
		Row: ringi.TaskRow{
			Lane: int(c.num(2)), Step: c.text(3), Direction: ringi.Direction(c.text(4)), Attempt: int(c.num(5)),
			Seq: c.num(6), InputSeq: c.num(7), Activity: c.text(8), Queue: c.text(9),
			ReadyAt: c.time(10), GiveUpAt: c.time(11), TotalAt: c.time(12),
			Timeout: time.Duration(c.num(13)), Heartbeat: time.Duration(c.num(14)),
			Begin: c.num(15) != 0, Begun: c.num(16), Held: c.num(17) != 0, Awaited: c.num(17) == heldAwaited,
		},
		TaskLease: store.TaskLease{
			Leased: c.num(18) != 0, Token: c.num(19), Confirmed: c.num(20) != 0, Worker: c.text(21),
			LeaseEnd: c.time(22), AttemptEnd: c.time(23), Lapsed: int(c.num(24)),
		},
	}
}

// taskArgs are the arguments of the row's own columns, from step to held.
func taskArgs(args []any, r *ringi.TaskRow) []any {
	return append(args,
		r.Step, string(r.Direction), int64(r.Attempt), r.Seq, r.InputSeq, r.Activity, r.Queue,
		micro(r.ReadyAt), micro(r.GiveUpAt), micro(r.TotalAt), int64(r.Timeout), int64(r.Heartbeat),
		flag(r.Begin), r.Begun, heldCode(r))
}

// What the column held says. An awaited row is held too; the index of ready
// tasks knows only that it is not 0.
const (
	heldNot     = 0
	heldPaused  = 1
	heldAwaited = 2
)

func heldCode(r *ringi.TaskRow) int64 {
	switch {
	case r.Awaited:
		return heldAwaited
	case r.Held:
		return heldPaused
	}
	return heldNot
}

// leaseArgs are the arguments of the columns from state to lapsed.
func leaseArgs(args []any, l store.TaskLease) []any {
	return append(args, flag(l.Leased), l.Token, flag(l.Confirmed), l.Worker, micro(l.LeaseEnd), micro(l.AttemptEnd), int64(l.Lapsed))
}
