package bench

import (
	"context"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// The tables that a tap counts, in the order of a tally.
const (
	tableLog = iota
	tableRun
	tableTask
	tableBeside // timers, waits, approvals, incidents, snapshots, messages and audit
	tables
)

// A tally is rows written and the bytes of their columns, by table.
type tally struct {
	rows  [tables]int64
	bytes [tables]int64
}

func (t *tally) add(table, bytes int) {
	t.rows[table]++
	t.bytes[table] += int64(bytes)
}

func (t *tally) sum() (rows, bytes int64) {
	for i := range t.rows {
		rows, bytes = rows+t.rows[i], bytes+t.bytes[i]
	}
	return rows, bytes
}

// What the columns of a row take beside texts and bytes of any length.
const (
	logBytes    = 4*8 + 2*16
	runBytes    = 5*8 + 16
	runEndBytes = 3*8 + 16
	taskBytes   = 20*8 + 16
	claimBytes  = 7*8 + 16
	goneBytes   = 2*8 + 16
)

// write counts the rows of the log, the list and the tasks that a write changes.
func (t *tally) write(w *store.Write) {
	if w.Body != nil {
		t.add(tableLog, logBytes+len(w.Head)+len(w.Body))
	}
	if r := w.Start; r != nil {
		t.add(tableRun, runBytes+len(r.Definition)+len(r.Digest)+len(r.InputDigest)+len(r.Requester)+len(r.Title)+len(r.WaitsFor)+len(r.WaitsStep))
	}
	if r := w.Run; r != nil {
		t.add(tableRun, runEndBytes+len(r.WaitsFor)+len(r.WaitsStep))
	}
	for i := range w.Tasks {
		ch := &w.Tasks[i]
		bytes := goneBytes
		if r := ch.Row; r != nil {
			bytes = taskBytes + len(r.Step) + len(r.Direction) + len(r.Activity) + len(r.Queue)
		}
		if ch.Lease != nil {
			bytes += len(ch.Lease.Worker)
		}
		t.add(tableTask, bytes)
	}
}

// sampled is how many runs a tap keeps whole, for the floor to write again.
const sampled = 256

// A tap stands between the engine and its store. It counts what is written, and
// keeps the rows of some runs from their first to their last.
type tap struct {
	store.Store
	now func() time.Time
	// ended is told of every run that completed, once that is durable.
	ended func(run ringi.RunID, at time.Time)

	mu      sync.Mutex
	commits int64
	writes  int64
	lost    int64
	tally   tally
	open    map[store.Key]sample // under way
	whole   []sample
}

// A sample is one run as its writes left it, transition by transition.
type sample [][]bareRow

// written is how much a store was asked to write.
type written struct{ commits, writes, lost, rows, bytes int64 }

func (w written) and(o written) written {
	return written{w.commits + o.commits, w.writes + o.writes, w.lost + o.lost, w.rows + o.rows, w.bytes + o.bytes}
}

func (w written) since(o written) written {
	return w.and(written{-o.commits, -o.writes, -o.lost, -o.rows, -o.bytes})
}

// written tells how much it was until now.
func (t *tap) written() written {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, bytes := t.tally.sum()
	return written{t.commits, t.writes, t.lost, rows, bytes}
}

// Commit implements store.Store.
func (t *tap) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	done, err := t.Store.Commit(ctx, writes...)
	if err != nil || len(writes) == 0 {
		return done, err
	}
	lost := map[int]bool{}
	for _, l := range done.Lost {
		lost[l.Index] = true
	}
	at := t.now()
	var ends []ringi.RunID
	t.mu.Lock()
	t.commits++
	t.lost += int64(len(lost))
	for i := range writes {
		if lost[i] {
			continue
		}
		t.writes++
		t.record(&writes[i])
		if r := writes[i].Run; r != nil && r.Status.Final() {
			ends = append(ends, writes[i].Key.Run)
		}
	}
	t.mu.Unlock()
	for _, run := range ends {
		t.ended(run, at)
	}
	return done, err
}

// Claim implements store.Store. Each hand-out changes a row.
func (t *tap) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	out, err := t.Store.Claim(ctx, c)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range out {
		t.tally.add(tableTask, claimBytes+len(c.Worker))
		if s, ok := t.open[out[i].Key]; ok {
			t.open[out[i].Key] = append(s, []bareRow{{bareClaim, claimValues(&out[i], c)}})
		}
	}
	return out, err
}

// Settle implements store.Store. Each part changes a row.
func (t *tap) Settle(ctx context.Context, s store.Settlement) error {
	t.mu.Lock()
	for range len(s.Lapses) + len(s.Checks) {
		t.tally.add(tableTask, 0)
	}
	for range s.Drops {
		t.tally.add(tableBeside, 0)
	}
	t.mu.Unlock()
	return t.Store.Settle(ctx, s)
}

// Beat implements store.Store. Each changes a row.
func (t *tap) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	t.mu.Lock()
	for range beats {
		t.tally.add(tableTask, 0)
	}
	t.mu.Unlock()
	return t.Store.Beat(ctx, beats...)
}

// record counts the rows of a write. The caller holds the lock.
func (t *tap) record(w *store.Write) {
	t.tally.write(w)
	for range len(w.Timers) + len(w.Waits) + len(w.Approvals) + len(w.Incidents) + len(w.Messages) + len(w.Audit) {
		t.tally.add(tableBeside, 0)
	}
	if w.Snapshot != nil {
		t.tally.add(tableBeside, len(w.Snapshot.Body))
	}
	if w.Start != nil && len(t.open)+len(t.whole) < sampled {
		t.open[w.Key] = nil
	}
	s, ok := t.open[w.Key]
	if !ok {
		return
	}
	t.open[w.Key] = append(s, rowsOf(w))
	if w.Run != nil && w.Run.Status.Final() {
		t.whole = append(t.whole, t.open[w.Key])
		delete(t.open, w.Key)
	}
}
