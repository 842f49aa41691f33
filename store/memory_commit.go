package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
)

// Commit implements Store. It judges all writes first, then refuses the bad
// ones, then applies, so that nothing has to be taken back.
func (m *Memory) Commit(ctx context.Context, writes ...Write) (Committed, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Committed{}, err
	}
	defer unlock()
	if err := CheckBatch(writes); err != nil {
		return Committed{}, err
	}
	c := Committed{Now: m.now().UTC().Truncate(time.Microsecond), Incarnation: m.incarnation}
	winners := make([]int, 0, len(writes))
	taken := map[memoryStartKey]*Write{}
	for i := range writes {
		switch lost, verdict := m.judge(&writes[i], taken); verdict {
		case writeLost:
			lost.Index = i
			c.Lost = append(c.Lost, lost)
		case writeWins:
			winners = append(winners, i)
		}
	}
	read, err := rereadRows(writes, winners)
	if err != nil {
		return Committed{}, err
	}
	if err := m.send(writes, winners); err != nil {
		return Committed{}, err
	}
	for n, i := range winners {
		m.apply(&writes[i], read[n])
	}
	return c, nil
}

// verdict is what becomes of one write.
type verdict int

const (
	writeWins verdict = iota
	writeLost
	writeDone // it was applied before: this is its repetition after doubt
)

// judge looks at the conditions of a write. taken holds the start keys of the
// writes before it in the batch.
func (m *Memory) judge(w *Write, taken map[memoryStartKey]*Write) (LostWrite, verdict) {
	r := m.runs[w.Key]
	if r == nil {
		r = &memoryRun{}
	}
	if l := r.at(w.First); l != nil && w.Body != nil && l.Commit == w.Commit {
		return LostWrite{}, writeDone
	}
	if seq, head := r.end(); seq != w.First-1 || !bytes.Equal(head, w.Prev) {
		return LostWrite{What: CondSequence}, writeLost
	}
	if w.Start != nil && w.Start.StartKey != "" {
		key := memoryStartKey{w.Tenant, w.Start.Definition, w.Start.StartKey}
		if by := m.keys[key]; by != nil {
			last, _ := by.end()
			return lostKey(by.key.Run, last, &by.row), writeLost
		}
		if by := taken[key]; by != nil {
			return lostKey(by.Key.Run, by.Last, by.Start), writeLost
		}
		taken[key] = w
	}
	for _, n := range w.Needs {
		if row, lease := r.task(n.Lane); !Holds(n, row, lease) {
			return LostWrite{What: CondTask, Lost: ringi.Lost{Tasks: r.seen(w.Needs)}}, writeLost
		}
	}
	return LostWrite{}, writeWins
}

func lostKey(run ringi.RunID, last int64, row *StartRow) LostWrite {
	return LostWrite{What: CondStartKey, Lost: ringi.Lost{Holder: &ringi.Holder{
		Run: run, Seq: last, Version: row.Version, Status: row.Status, InputDigest: row.InputDigest,
	}}}
}

func (r *memoryRun) task(lane int) (ringi.TaskRow, TaskLease) {
	if t := r.tasks[lane]; t != nil {
		return t.row, t.lease
	}
	return ringi.TaskRow{}, TaskLease{}
}

// seen is what stood on the lanes that a lost write relied on.
func (r *memoryRun) seen(needs []ringi.Need) map[int]ringi.Seen {
	seen := make(map[int]ringi.Seen, len(needs))
	for _, n := range needs {
		_, lease := r.task(n.Lane)
		seen[n.Lane] = ringi.Seen{Token: lease.Token, Leased: lease.Leased}
	}
	return seen
}

// readRows are the rows of a write that a database keeps as JSON.
type readRows struct {
	approvals []ringi.ApprovalRow
	incidents []ringi.Incident
}

// rereadRows makes the rows that a database would give back. A row that cannot
// be written as JSON makes its write a bad one.
func rereadRows(writes []Write, winners []int) ([]readRows, error) {
	read := make([]readRows, len(winners))
	for n, i := range winners {
		for _, a := range writes[i].Approvals {
			row, err := ringi.ApprovalRow{}, error(nil)
			if a.Row != nil {
				row, err = reread(*a.Row)
			}
			if err != nil {
				return nil, &BadWrite{Index: i, Err: fmt.Errorf("approval of step %s: %w", a.Step, err)}
			}
			read[n].approvals = append(read[n].approvals, row)
		}
		for _, in := range writes[i].Incidents {
			row, err := ringi.Incident{}, error(nil)
			if in.Row != nil {
				row, err = reread(*in.Row)
			}
			if err != nil {
				return nil, &BadWrite{Index: i, Err: fmt.Errorf("incident %d: %w", in.ID, err)}
			}
			read[n].incidents = append(read[n].incidents, row)
		}
	}
	return read, nil
}

// send inserts the messages of all winners, or refuses the write whose message
// cannot be inserted.
func (m *Memory) send(writes []Write, winners []int) error {
	ids := map[string]bool{}
	var messages []outbox.Message
	for _, i := range winners {
		for _, msg := range writes[i].Messages {
			if m.messages[msg.ID] || ids[msg.ID] {
				return &BadWrite{Index: i, Err: fmt.Errorf("message %s: %w", msg.ID, outbox.ErrDuplicate)}
			}
			ids[msg.ID] = true
			if err := msg.Check(); err != nil {
				return &BadWrite{Index: i, Err: err}
			}
			if msg.Seq != 0 {
				return &BadWrite{Index: i, Err: fmt.Errorf("message %s has number %d before the insert; leave it 0", msg.ID, msg.Seq)}
			}
			messages = append(messages, msg)
		}
	}
	if err := m.outbox.Insert(messages...); err != nil {
		return &BadWrite{Index: winners[0], Err: err}
	}
	maps.Copy(m.messages, ids)
	return nil
}

func (m *Memory) apply(w *Write, read readRows) {
	r := m.runs[w.Key]
	if w.Start != nil {
		r = newMemoryRun(w.Key, *w.Start)
		m.runs[w.Key] = r
		if w.Start.StartKey != "" {
			m.keys[memoryStartKey{w.Tenant, w.Start.Definition, w.Start.StartKey}] = r
		}
	}
	m.record(w.Tenant, w.Commit, w.Body == nil, w.Audit)
	if r == nil {
		return // a claim that no such run exists
	}
	if w.Body != nil {
		r.log = append(r.log, LogRow{First: w.First, Last: w.Last, Commit: w.Commit, Head: w.Head, Body: w.Body})
	}
	if w.Run != nil {
		r.row.RunRow = *w.Run
	}
	for _, c := range w.Tasks {
		r.changeTask(c)
	}
	for _, c := range w.Timers {
		if c.Row == nil {
			delete(r.timers, c.ID)
			continue
		}
		r.timers[c.ID] = &memoryTimer{row: *c.Row, due: c.Row.FireAt}
	}
	for _, c := range w.Waits {
		if c.Row == nil {
			delete(r.waits, c.Step)
			continue
		}
		r.waits[c.Step] = *c.Row
	}
	r.applyRead(w, read)
	if w.Snapshot != nil && (r.snapshot == nil || r.snapshot.Seq < w.Snapshot.Seq) {
		s := *w.Snapshot
		r.snapshot = &s
	}
	m.reopen(r)
}

func (r *memoryRun) applyRead(w *Write, read readRows) {
	for i, c := range w.Approvals {
		if c.Row == nil {
			delete(r.approvals, c.Step)
			continue
		}
		r.approvals[c.Step] = read.approvals[i]
	}
	for i, c := range w.Incidents {
		if c.Row == nil {
			delete(r.incidents, c.ID)
			continue
		}
		r.incidents[c.ID] = read.incidents[i]
	}
}

func newMemoryRun(key Key, row StartRow) *memoryRun {
	row.Labels = maps.Clone(row.Labels)
	return &memoryRun{
		key: key, row: row, tasks: map[int]*memoryTask{}, timers: map[string]*memoryTimer{},
		waits: map[string]ringi.WaitRow{}, approvals: map[string]ringi.ApprovalRow{}, incidents: map[int64]ringi.Incident{},
	}
}

// reopen keeps the set of runs that sweeps look at.
func (m *Memory) reopen(r *memoryRun) {
	if len(r.tasks)+len(r.timers)+len(r.waits)+len(r.approvals)+len(r.incidents) > 0 {
		m.open[r.key] = r
	} else {
		delete(m.open, r.key)
	}
}

// record keeps audit records. Those of a write without events are known by its
// commit id, since nothing else tells its repetition from a new one.
func (m *Memory) record(tenant ringi.Tenant, commit CommitID, once bool, records []AuditRecord) {
	if len(records) == 0 {
		return
	}
	if once && commit != (CommitID{}) {
		if m.audited[commit] {
			return
		}
		m.audited[commit] = true
	}
	for _, a := range records {
		m.audit = append(m.audit, memoryAudit{tenant, a})
	}
}

// openRuns lists the runs that have rows, in the order of their keys.
func (m *Memory) openRuns() []*memoryRun {
	runs := slices.Collect(maps.Values(m.open))
	slices.SortFunc(runs, func(a, b *memoryRun) int { return compareKeys(a.key, b.key) })
	return runs
}
