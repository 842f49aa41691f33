package postgres

import (
	"encoding/binary"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// cells is a row of a result in the binary format; nil is null. They belong to
// the connection and are overwritten by its next row.
type cells [][]byte

// num reads an integer of any size; null is 0.
func (c cells) num(i int) int64 {
	switch b := c[i]; len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	}
	return 0
}

func (c cells) bool(i int) bool { return len(c[i]) == 1 && c[i][0] != 0 }

func (c cells) null(i int) bool { return c[i] == nil }

func (c cells) text(i int) string { return string(c[i]) }

// blob copies bytes; null is nil.
func (c cells) blob(i int) []byte {
	if c[i] == nil {
		return nil
	}
	return append([]byte{}, c[i]...)
}

// time is zero for null.
func (c cells) time(i int) time.Time {
	if len(c[i]) != 8 {
		return time.Time{}
	}
	return time.UnixMicro(c.num(i) + epoch).UTC()
}

func (c cells) run(i int) ringi.RunID { return store.RunText(c[i]) }

func (c cells) tenant(i int) ringi.Tenant { return ringi.Tenant(c.num(i)) }

// key reads tenant and run.
func (c cells) key(i int) store.Key { return store.Key{Tenant: c.tenant(i), Run: c.run(i + 1)} }

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

// taskColumns are the columns that readTask reads, in its order, of a task
// that is named t.
const taskColumns = `t.tenant, t.run, t.lane, t.step, t.direction, t.attempt, t.seq, t.input_seq, t.activity, t.queue,
	t.ready_at, t.give_up_at, t.total_at, t.timeout, t.heartbeat, t.begin, t.begun, t.held,
	t.state, t.token, t.confirmed, t.worker, t.lease_end, t.attempt_end, t.lapsed`

// taskCells is how many columns they are.
const taskCells = 25

// readTask reads a row of taskColumns.
func readTask(c cells) store.DueTask {
	return store.DueTask{
		Key: c.key(0),
		Row: ringi.TaskRow{
			Lane: int(c.num(2)), Step: c.text(3), Direction: ringi.Direction(c.text(4)), Attempt: int(c.num(5)),
			Seq: c.num(6), InputSeq: c.num(7), Activity: c.text(8), Queue: c.text(9),
			ReadyAt: c.time(10), GiveUpAt: c.time(11), TotalAt: c.time(12),
			Timeout: time.Duration(c.num(13)), Heartbeat: time.Duration(c.num(14)),
			Begin: c.bool(15), Begun: c.num(16), Held: c.num(17) != 0, Awaited: c.num(17) == heldAwaited,
		},
		TaskLease: store.TaskLease{
			Leased: c.num(18) != 0, Token: c.num(19), Confirmed: c.bool(20), Worker: c.text(21),
			LeaseEnd: c.time(22), AttemptEnd: c.time(23), Lapsed: int(c.num(24)),
		},
	}
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
