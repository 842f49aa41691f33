package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
)

// MemoryConfig configures a Memory; its zero value works.
type MemoryConfig struct {
	// Now is the clock that Commit answers with; nil is the machine's.
	Now func() time.Time
	// Incarnation names this database in the answers of Commit; "" is "memory".
	Incarnation string
}

// Memory is the reference of the four contracts: all that a database would
// do, in a map behind one lock. Nothing outlives it. With an injected clock it
// is deterministic: the same calls in the same order give the same answers,
// whatever the order of maps. Safe for concurrent use.
type Memory struct {
	now         func() time.Time
	incarnation string
	outbox      memory.Outbox

	mu       sync.Mutex
	closed   bool
	runs     map[Key]*memoryRun
	open     map[Key]*memoryRun // those with rows that sweeps and claims look for
	keys     map[memoryStartKey]*memoryRun
	turn     ringi.Tenant    // that the last claim began with
	messages map[string]bool // ids in the outbox, also delivered ones
	audit    []memoryAudit
	audited  map[CommitID]bool
	catalog  map[memoryName][]Definition // by version
	events   map[memoryEventKey]*memoryEvent
	fleet    memoryFleet
}

type (
	// memoryStartKey is what the unique index of start keys is on.
	memoryStartKey struct {
		tenant     ringi.Tenant
		definition string
		key        string
	}

	// memoryRun is a run with the rows that stand beside its log.
	memoryRun struct {
		key       Key
		row       StartRow
		log       []LogRow
		snapshot  *Snapshot
		tasks     map[int]*memoryTask
		timers    map[string]*memoryTimer
		waits     map[string]ringi.WaitRow
		approvals map[string]ringi.ApprovalRow
		incidents map[int64]ringi.Incident
	}

	memoryTask struct {
		row   ringi.TaskRow
		lease TaskLease
		check time.Time // zero: never
	}

	memoryTimer struct {
		row ringi.TimerRow
		due time.Time // the fire time, or until when it is claimed
	}

	memoryAudit struct {
		tenant ringi.Tenant
		AuditRecord
	}
)

var (
	_ Store   = (*Memory)(nil)
	_ Records = (*Memory)(nil)
	_ Catalog = (*Memory)(nil)
	_ Events  = (*Memory)(nil)

	_ Inspector = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory(c MemoryConfig) *Memory {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Incarnation == "" {
		c.Incarnation = "memory"
	}
	return &Memory{
		now: c.Now, incarnation: c.Incarnation,
		runs: map[Key]*memoryRun{}, open: map[Key]*memoryRun{}, keys: map[memoryStartKey]*memoryRun{},
		messages: map[string]bool{}, audited: map[CommitID]bool{},
		catalog: map[memoryName][]Definition{}, events: map[memoryEventKey]*memoryEvent{},
	}
}

// Outbox returns the messages of the committed writes, for a relay.
func (m *Memory) Outbox() outbox.Source { return &m.outbox }

// Close makes every later call fail with ErrUnavailable. It is idempotent.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// lock takes the store for one call, as a transaction would; the returned
// function ends it.
func (m *Memory) lock(ctx context.Context) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
	}
	return m.mu.Unlock, nil
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, keys ...Key) ([]Loaded, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	loaded := make([]Loaded, len(keys))
	for i, key := range keys {
		loaded[i].Key = key
		r := m.runs[key]
		if r == nil {
			continue
		}
		after, last := int64(0), int64(0)
		last, loaded[i].Head = r.end()
		if r.snapshot != nil && r.snapshot.Seq <= last {
			s := *r.snapshot
			loaded[i].Snapshot, after = &s, s.Seq
		}
		loaded[i].Rows = r.rows(after, -1)
	}
	return loaded, nil
}

// rows lists log rows whose last event is after a sequence, until maxBytes of
// bodies are passed; below 0 is no limit.
func (r *memoryRun) rows(after int64, maxBytes int) []LogRow {
	var rows []LogRow
	size := 0
	for _, l := range r.log {
		if l.Last <= after {
			continue
		}
		if maxBytes >= 0 && len(rows) > 0 && size+len(l.Body) > maxBytes {
			break
		}
		size += len(l.Body)
		rows = append(rows, l)
	}
	return rows
}

// end returns the sequence and chain head of the last event.
func (r *memoryRun) end() (int64, []byte) {
	if len(r.log) == 0 {
		return 0, nil
	}
	l := r.log[len(r.log)-1]
	return l.Last, l.Head
}

// at returns the log row that begins with a sequence.
func (r *memoryRun) at(first int64) *LogRow {
	for i := len(r.log) - 1; i >= 0 && r.log[i].First >= first; i-- {
		if r.log[i].First == first {
			return &r.log[i]
		}
	}
	return nil
}

// holding returns the log row that holds an event, the largest first at or
// below its sequence.
func (r *memoryRun) holding(seq int64) LogRow {
	for i := len(r.log) - 1; i >= 0; i-- {
		if r.log[i].First <= seq {
			return r.log[i]
		}
	}
	return LogRow{}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Run, b.Run))
}

// reread returns a value as a database that keeps it as JSON gives it back.
func reread[T any](v T) (T, error) {
	var back T
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &back)
	}
	return back, err
}
