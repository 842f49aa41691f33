package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/sim/story"
	"github.com/ringiflow/ringi/store"
)

// A watch knows every run from its log alone, folded as it grows, and compares
// with that whatever anybody else says: the rows beside the log, the states in
// the memory of nodes, the answers that senders get.
type watch struct {
	w          *world
	runs       map[store.Key]*shadow
	order      []*shadow // as they appeared
	committing *tap      // whose commit is under way
	keys       map[string]ringi.RunID
	handOuts   int
	reports    map[reportName]int
	twice      map[reportName]bool            // reports for ended runs that were repeated
	said       map[reportName]ringi.Failure   // what workers said of failures
	outputs    map[reportName]json.RawMessage // what they said of the others
	lapsed     map[sweptName]bool             // hand-outs that were given back
	events     []storedEvent
	keep       map[string]time.Time    // until when a wait may open and still find an event, by its id
	extended   map[sweptName]time.Time // when a worker's sign of life was taken last
}

// A shadow is one run as its log tells it.
type shadow struct {
	promise.Books
	key     store.Key
	state   *ringi.State
	head    []byte
	heads   map[int64][]byte   // of each row, by its first event
	sums    map[int64][32]byte // of the state at the end of each transition
	keys    map[string]string  // the idempotency key of each call
	tokens  map[string]int64   // the largest token handed out for each call
	taken   map[int64]string   // tokens that were answered for, and how
	given   map[string]bool    // events by id and step
	ordered map[string]bool    // steps about which a person gave an order
	excused map[string]bool    // steps whose contract takes a guess for the truth
	denied  map[string]bool    // steps whose service said a definite no last
	sent    []string           // ids of messages
	rewound bool               // a restore took events away
}

func newWatch(w *world) *watch {
	return &watch{w: w, runs: map[store.Key]*shadow{}, keys: map[string]ringi.RunID{}, reports: map[reportName]int{}, twice: map[reportName]bool{}, said: map[reportName]ringi.Failure{}, outputs: map[reportName]json.RawMessage{}, lapsed: map[sweptName]bool{}, extended: map[sweptName]time.Time{}, keep: map[string]time.Time{}}
}

func newShadow(key store.Key) *shadow {
	return &shadow{
		Books: promise.NewBooks(), heads: map[int64][]byte{}, key: key, state: &ringi.State{Tenant: key.Tenant, Run: key.Run}, sums: map[int64][32]byte{}, keys: map[string]string{},
		tokens: map[string]int64{}, taken: map[int64]string{}, given: map[string]bool{}, ordered: map[string]bool{}, excused: map[string]bool{}, denied: map[string]bool{},
	}
}

// all lists the runs that the database has, in the order of their appearance.
func (x *watch) all() []*shadow { return x.order }

func (x *watch) of(tenant ringi.Tenant, run ringi.RunID) *shadow {
	return x.runs[store.Key{Tenant: tenant, Run: run}]
}

// wrote looks at a run after a write was applied to it.
func (x *watch) wrote(w *store.Write, leases []store.DueTask) {
	ctx := context.Background()
	sh := x.runs[w.Key]
	if sh == nil {
		if w.Body == nil {
			return
		}
		sh = newShadow(w.Key)
		x.runs[w.Key] = sh
		x.order = append(x.order, sh)
	}
	rows, err := x.w.db.Log(ctx, w.Key, sh.state.Seq, 1<<30)
	if err != nil {
		x.w.fail("store", "the log of %s cannot be read: %v", short(w.Key.Run), err)
		return
	}
	if len(rows) > 1 {
		x.w.fail("sequence", "run %s grew by %d rows in one write", short(w.Key.Run), len(rows))
	}
	if len(rows) == 0 {
		x.claimed(sh, w)
		return
	}
	for _, row := range rows {
		x.fold(sh, row, leases)
	}
	for _, t := range w.Tasks {
		if t.Row != nil && !t.Begun.IsZero() {
			x.extend(w.Key, t.Row.Begun, t.Begun.Add(-t.Row.Heartbeat))
		}
		if t.Lease != nil && t.Row != nil {
			x.handedOut(w.Key, *t.Row, t.Row.Token(1), t.Lease.Worker, t.Lease.At)
		}
	}
	x.compareRows(sh)
	x.early(sh, w)
	if w.Snapshot != nil {
		if sum, ok := sh.sums[w.Snapshot.Seq]; !ok || sum != sha256.Sum256(w.Snapshot.Body) {
			x.w.fail("snapshot", "the snapshot of run %s at event %d is not what its log adds up to", short(w.Key.Run), w.Snapshot.Seq)
		}
	}
}

// claimed looks at a write that added nothing: one without events only claims
// that the run stands where it was decided on, and one with events must have
// been done before.
func (x *watch) claimed(sh *shadow, w *store.Write) {
	switch {
	case w.Body == nil && (w.First != sh.state.Seq+1 || !bytes.Equal(w.Prev, sh.head)):
		x.w.fail("sequence", "the store confirms that run %s stands at event %d, and it stands at %d", short(sh.key.Run), w.First-1, sh.state.Seq)
	case w.Body != nil && !bytes.Equal(w.Head, sh.heads[w.First]):
		x.w.fail("sequence", "the store says that it has done a write of run %s from event %d on, and has another there", short(sh.key.Run), w.First)
	}
}

// fold takes one row of the log in.
func (x *watch) fold(sh *shadow, row store.LogRow, leases []store.DueTask) {
	run := short(sh.key.Run)
	if row.First != sh.state.Seq+1 {
		x.w.fail("sequence", "run %s goes from event %d to %d", run, sh.state.Seq, row.First)
	}
	if sh.head = store.Chain(sh.head, row.Body); !bytes.Equal(sh.head, row.Head) {
		x.w.fail("chain", "the chain of run %s breaks at event %d", run, row.First)
		sh.head = row.Head
	}
	sh.heads[row.First] = row.Head
	events, err := ringi.DecodeEvents(row.First, row.Body)
	if err != nil || len(events) == 0 {
		x.w.fail("log", "row %d of run %s cannot be read: %v", row.First, run, err)
		return
	}
	x.w.trace("log ", string(sh.key.Run), " ", string(row.Head))
	t := transition{x: x, sh: sh, events: events, leases: leases, by: x.committing}
	t.begin()
	for i, e := range events {
		x.w.count.events[ringi.KindOf(e.Fact)]++
		if x.w.tracer.on {
			x.w.tell("run %s, event %d: %s", run, e.Seq, story.Fact(e.Fact))
		}
		t.check(i, e)
		was := sh.state
		sh.state = ringi.Fold(was, e)
		if _, ok := e.Fact.(ringi.RunResumed); ok {
			t.Resumed(was, sh.state, e)
		}
	}
	t.end()
	body, err := ringi.EncodeState(sh.state)
	if err != nil {
		x.w.fail("snapshot", "the state of run %s cannot be written: %v", run, err)
	}
	sh.sums[sh.state.Seq] = sha256.Sum256(body)
}

// compareRows compares what stands beside the log with what the log asks for.
func (x *watch) compareRows(sh *shadow) {
	got, err := x.w.db.Standing(context.Background(), sh.key)
	if err != nil {
		x.w.fail("store", "the rows of %s cannot be read: %v", short(sh.key.Run), err)
		return
	}
	want := ringi.Standing(sh.state)
	for i := range got.Tasks { // a hand-over that lapsed moves it, which is no fact of the log
		if i < len(want.Tasks) && got.Tasks[i].ReadyAt.After(want.Tasks[i].ReadyAt) {
			got.Tasks[i].ReadyAt = want.Tasks[i].ReadyAt
		}
	}
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		x.w.fail("rows", "the rows of run %s after event %d do not follow from its log:\n  have %s\n  want %s", short(sh.key.Run), sh.state.Seq, a, b)
	}
	if want.Run.Status == ringi.Running && sh.state.End == nil && len(want.Tasks)+len(want.Timers)+len(want.Waits)+len(want.Approvals)+len(want.Incidents) == 0 {
		x.w.fail("stuck", "run %s is running after event %d, and nothing will ever move it", short(sh.key.Run), sh.state.Seq)
	}
}

// extend notes that a lease was extended just now. A node that stood still with
// its clock gives leases that are shorter than it thinks, until it has asked
// the database for the time; those are not held to their length.
func (x *watch) extend(key store.Key, token int64, at time.Time) {
	delete(x.extended, sweptName{key, token})
	if x.w.db.clock.now().Sub(at) < 2*time.Second {
		x.extended[sweptName{key, token}] = x.w.now
	}
}

// handedOut looks at a hand-out.
func (x *watch) handedOut(key store.Key, row ringi.TaskRow, token int64, worker string, at time.Time) {
	x.handOuts++
	x.extend(key, token, at)
	sh := x.runs[key]
	if sh == nil {
		return
	}
	x.w.trace("out ", string(key.Run), " ", row.Step, " ", worker)
	x.w.tell("run %s: %s%s, attempt %d, is handed to %s under token %s", short(key.Run), row.Step, promise.DirectionText(row.Direction), row.Attempt, worker, promise.TokenText(token))
	if sh.state.Paused != nil {
		x.w.fail("paused", "run %s is paused, and its step %s was handed out", short(key.Run), row.Step)
	}
	if last := sh.tokens[promise.Call(row.Step, row.Direction)]; token <= last && !sh.rewound {
		x.w.fail("token", "run %s: token %s of %s follows %s", short(key.Run), promise.TokenText(token), row.Step, promise.TokenText(last))
	}
	x.mayHandOut(sh, row, token, at)
	sh.tokens[promise.Call(row.Step, row.Direction)] = token
}

// lostSince counts the runs that a backup does not know all of.
func (x *watch) lostSince(backup *store.Memory) int {
	n := 0
	for _, sh := range x.order {
		if rows, err := backup.Log(context.Background(), sh.key, sh.state.Seq-1, 1); err != nil || len(rows) == 0 {
			n++
		}
	}
	return n
}

// restored reads everything anew: the runs that lost events are other runs now,
// and what was done for them outside is no longer in their logs.
func (x *watch) restored() {
	old := x.order
	x.order, x.runs = nil, map[store.Key]*shadow{}
	x.keys = map[string]ringi.RunID{}
	x.events = nil
	for _, was := range old {
		rows, err := x.w.db.Log(context.Background(), was.key, 0, 1<<30)
		if err != nil || len(rows) == 0 {
			continue
		}
		last := was.state.Seq
		sh := newShadow(was.key)
		sh.ordered, sh.excused, sh.rewound = was.ordered, was.excused, was.rewound
		x.runs[sh.key] = sh
		x.order = append(x.order, sh)
		telling := x.w.tracer.on
		x.w.tracer.on = false
		for _, row := range rows {
			x.refold(sh, row)
		}
		x.w.tracer.on = telling
		// Hand-outs are no events: an open run may have lost some although its
		// log is whole.
		sh.rewound = sh.rewound || sh.state.Seq < last || sh.state.End == nil
	}
}

// refold takes a row in that was checked when it was written.
func (x *watch) refold(sh *shadow, row store.LogRow) {
	events, err := ringi.DecodeEvents(row.First, row.Body)
	if err != nil {
		x.w.fail("log", "row %d of run %s cannot be read: %v", row.First, short(sh.key.Run), err)
		return
	}
	sh.head, sh.heads[row.First] = row.Head, row.Head
	t := transition{x: x, sh: sh, events: events}
	for _, e := range events {
		t.remember(e)
		sh.state = ringi.Fold(sh.state, e)
	}
	if body, err := ringi.EncodeState(sh.state); err == nil {
		sh.sums[sh.state.Seq] = sha256.Sum256(body)
	}
}
