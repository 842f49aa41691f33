package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A plan is what a batch of writes does to the rows beside the log, as calls in
// the order of the kinds. Within a kind the rows are in the order of their
// keys: what two batches both wait for they take in the same order.
type plan struct {
	writes []store.Write
	keyed  []int // the writes in the order of their keys
	order  []int // the same in their own order
	floors *floors
	least  time.Time // see floors.least
	folded bool      // needs for a current token are checked where the row is changed
	known  func(queueTenant) bool

	calls []*call
	fresh []queueTenant // of this batch, not known before
}

// A badRow is a row that can never be written.
type badRow struct {
	index int
	err   error
}

func (b *badRow) Error() string { return b.err.Error() }

// add appends a statement if it has rows.
func (p *plan) add(text statement, t *table, counted bool) {
	if t.rows > 0 {
		p.calls = append(p.calls, t.call(text, counted))
	}
}

// addPlaced appends a statement that places its rows, see placed.
func (p *plan) addPlaced(text statement, t *table, counted bool) {
	if t.rows > 0 {
		p.calls = append(p.calls, p.floors.call(t, text, counted))
	}
}

// build makes the calls for everything but the log and new list rows.
func (p *plan) build() error {
	p.runs()
	if p.folded {
		p.needs()
	}
	p.tasks()
	if p.folded {
		p.claims()
	}
	p.timers()
	p.waits()
	for _, part := range []func() error{p.approvals, p.incidents} {
		if err := part(); err != nil {
			return err
		}
	}
	p.snapshots()
	p.audits()
	p.queues()
	return p.messages()
}

// logTable is the log rows of writes, each in its place.
func logTable(writes []store.Write, which []int) *table {
	tenant, run, first, last, commit, head, body, prev := ints(), uuids(), ints(), ints(), uuids(), bytesList(), bytesList(), bytesList()
	t := &table{columns: []*column{tenant, run, first, last, commit, head, body, prev}}
	bytes := 0
	for _, i := range which {
		bytes += len(writes[i].Body)
	}
	body.room(len(which), bytes)
	for _, i := range which {
		w := &writes[i]
		if w.Body == nil {
			continue
		}
		t.rows++
		addKey(tenant, run, w.Key)
		first.int(w.First)
		last.int(w.Last)
		commit.bytes(w.Commit[:])
		head.bytes(w.Head)
		body.bytes(w.Body)
		prev.bytesOrNull(w.Prev)
	}
	return t
}

// standTable is the places where claims must find their runs.
func standTable(writes []store.Write, which []int) *table {
	tenant, run, first, prev := ints(), uuids(), ints(), bytesList()
	t := &table{columns: []*column{tenant, run, first, prev}}
	for _, i := range which {
		w := &writes[i]
		if w.Body != nil {
			continue
		}
		t.rows++
		addKey(tenant, run, w.Key)
		first.int(w.First)
		prev.bytesOrNull(w.Prev)
	}
	return t
}

// claims come after the tasks. A run never goes back: one that stands where it
// was read now stood there too when the tasks were looked at. In the other
// order a commit between the two could make both true that never were at once.
func (p *plan) claims() { p.add(textStands, standTable(p.writes, p.keyed), true) }

// runTable is new list rows in the order of their start keys, since the unique
// index of those is what two batches wait on.
func runTable(writes []store.Write, which []int) (*table, error) {
	var starts []int
	for _, i := range which {
		if writes[i].Start != nil {
			starts = append(starts, i)
		}
	}
	slices.SortStableFunc(starts, func(a, b int) int { return compareStartKeys(&writes[a], &writes[b]) })
	tenant, id, name, version, digest, key, input, requester := ints(), uuids(), texts(), ints(), texts(), texts(), texts(), texts()
	title, labels, started, repair, status, waitsFor, waitsStep, ended := texts(), texts(), times(), uuids(), ints(), texts(), texts(), times()
	t := &table{rows: len(starts), columns: []*column{
		tenant, id, name, version, digest, key, input, requester, title, labels, started, repair, status, waitsFor, waitsStep, ended,
	}}
	for _, i := range starts {
		r := writes[i].Start
		addKey(tenant, id, writes[i].Key)
		name.text(r.Definition)
		version.int(int64(r.Version))
		digest.text(r.Digest)
		key.textOrNull(r.StartKey)
		input.text(r.InputDigest)
		requester.text(r.Requester)
		title.text(r.Title)
		if len(r.Labels) == 0 {
			labels.null()
		} else {
			raw, err := json.Marshal(r.Labels)
			if err != nil {
				return nil, &badRow{i, fmt.Errorf("%w: labels: %w", errEncode, err)}
			}
			labels.bytes(raw)
		}
		started.time(r.StartedAt)
		repair.run(r.RepairOf)
		addRunRow(status, waitsFor, waitsStep, ended, &r.RunRow)
	}
	return t, nil
}

func compareStartKeys(a, b *store.Write) int {
	if a.Tenant != b.Tenant {
		return compareKeys(a.Key, b.Key)
	}
	x, y := a.Start.Definition+"\x00"+a.Start.StartKey, b.Start.Definition+"\x00"+b.Start.StartKey
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func addRunRow(status, waitsFor, waitsStep, ended *column, r *ringi.RunRow) {
	status.int(statusCodes[r.Status])
	waitsFor.text(r.WaitsFor)
	waitsStep.text(r.WaitsStep)
	ended.time(r.EndedAt)
}

func (p *plan) runs() {
	tenant, run, status, waitsFor, waitsStep, ended := ints(), uuids(), ints(), texts(), texts(), times()
	t := &table{columns: []*column{tenant, run, status, waitsFor, waitsStep, ended}}
	for _, i := range p.keyed {
		if w := &p.writes[i]; w.Run != nil {
			t.rows++
			addKey(tenant, run, w.Key)
			addRunRow(status, waitsFor, waitsStep, ended, w.Run)
		}
	}
	p.add(textRunUpdate, t, false)
}

func (p *plan) timers() {
	tenant, run, id := ints(), uuids(), texts()
	gone := &table{columns: []*column{tenant, run, id}}
	putTenant, putRun, putID, generation, fire, due := ints(), uuids(), texts(), ints(), times(), times()
	put := &table{columns: []*column{putTenant, putRun, putID, generation, fire, due}}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for n, ch := range w.Timers {
			switch {
			case replaced(w.Timers, n, func(c *store.TimerChange) string { return c.ID }):
			case ch.Row == nil:
				gone.rows++
				addKey(tenant, run, w.Key)
				id.text(ch.ID)
			default:
				put.rows++
				addKey(putTenant, putRun, w.Key)
				putID.text(ch.ID)
				generation.int(int64(ch.Row.Generation))
				fire.time(ch.Row.FireAt)
				due.time(place(ch.Row.FireAt, p.least))
			}
		}
	}
	p.add(textTimerDelete, gone, false)
	p.addPlaced(textTimerPut, put, false)
}

func (p *plan) waits() {
	tenant, run, step := ints(), uuids(), texts()
	gone := &table{columns: []*column{tenant, run, step}}
	putTenant, putRun, putStep, name, key, generation, opened, not := ints(), uuids(), texts(), texts(), texts(), ints(), times(), texts()
	put := &table{columns: []*column{putTenant, putRun, putStep, name, key, generation, opened, not}}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for n, ch := range w.Waits {
			switch {
			case replaced(w.Waits, n, func(c *store.WaitChange) string { return c.Step }):
			case ch.Row == nil:
				gone.rows++
				addKey(tenant, run, w.Key)
				step.text(ch.Step)
			default:
				put.rows++
				addKey(putTenant, putRun, w.Key)
				putStep.text(ch.Step)
				name.text(ch.Row.Event)
				key.text(ch.Row.Key)
				generation.int(ch.Row.Generation)
				opened.time(ch.Row.OpenedAt)
				not.text(ch.Row.NotEvent)
			}
		}
	}
	p.add(textWaitDelete, gone, false)
	p.add(textWaitPut, put, false)
}

func (p *plan) approvals() error {
	tenant, run, step := ints(), uuids(), texts()
	gone := &table{columns: []*column{tenant, run, step}}
	putTenant, putRun, putStep, requester, opened, body := ints(), uuids(), texts(), texts(), times(), texts()
	put := &table{columns: []*column{putTenant, putRun, putStep, requester, opened, body}}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for n, ch := range w.Approvals {
			switch {
			case replaced(w.Approvals, n, func(c *store.ApprovalChange) string { return c.Step }):
			case ch.Row == nil:
				gone.rows++
				addKey(tenant, run, w.Key)
				step.text(ch.Step)
			default:
				raw, err := encode("approval of step", ch.Step, ch.Row.Approval)
				if err != nil {
					return &badRow{i, err}
				}
				put.rows++
				addKey(putTenant, putRun, w.Key)
				putStep.text(ch.Step)
				requester.text(ch.Row.Requester)
				opened.time(ch.Row.OpenedAt)
				body.bytes(raw)
			}
		}
	}
	p.add(textApprovalDelete, gone, false)
	p.add(textApprovalPut, put, false)
	return nil
}

func (p *plan) incidents() error {
	tenant, run, id := ints(), uuids(), ints()
	gone := &table{columns: []*column{tenant, run, id}}
	putTenant, putRun, putID, since, body := ints(), uuids(), ints(), times(), texts()
	put := &table{columns: []*column{putTenant, putRun, putID, since, body}}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for n, ch := range w.Incidents {
			switch {
			case replaced(w.Incidents, n, func(c *store.IncidentChange) int64 { return c.ID }):
			case ch.Row == nil:
				gone.rows++
				addKey(tenant, run, w.Key)
				id.int(ch.ID)
			default:
				raw, err := encode("incident", strconv.FormatInt(ch.ID, 10), ch.Row)
				if err != nil {
					return &badRow{i, err}
				}
				put.rows++
				addKey(putTenant, putRun, w.Key)
				putID.int(ch.ID)
				since.time(ch.Row.Since)
				body.bytes(raw)
			}
		}
	}
	p.add(textIncidentDelete, gone, false)
	p.add(textIncidentPut, put, false)
	return nil
}

func (p *plan) snapshots() {
	tenant, run, seq, format, body := ints(), uuids(), ints(), ints(), bytesList()
	t := &table{columns: []*column{tenant, run, seq, format, body}}
	for _, i := range p.keyed {
		if w := &p.writes[i]; w.Snapshot != nil {
			t.rows++
			addKey(tenant, run, w.Key)
			seq.int(w.Snapshot.Seq)
			format.int(int64(w.Snapshot.Format))
			body.bytes(w.Snapshot.Body)
		}
	}
	p.add(textSnapshotPut, t, false)
}

// audits are written in the order of the batch, which is the order of reading.
func (p *plan) audits() {
	a := newAuditTable()
	for _, i := range p.order {
		w := &p.writes[i]
		for part := range w.Audit {
			a.record(w.Tenant, w.Commit, part, &w.Audit[part])
		}
	}
	p.add(textAudit, &a.table, false)
}

// auditTable is audit records.
type auditTable struct {
	table
	tenant, at, actor, kind, run, answer, data, head, commit, part *column
}

func newAuditTable() *auditTable {
	a := &auditTable{
		tenant: ints(), at: times(), actor: texts(), kind: texts(), run: uuids(), answer: texts(),
		data: bytesList(), head: bytesList(), commit: uuids(), part: ints(),
	}
	a.columns = []*column{a.tenant, a.at, a.actor, a.kind, a.run, a.answer, a.data, a.head, a.commit, a.part}
	return a
}

// record adds a record; commit is zero when there is no write around it.
func (a *auditTable) record(tenant ringi.Tenant, commit store.CommitID, part int, r *store.AuditRecord) {
	a.rows++
	a.tenant.int(int64(tenant))
	a.at.time(r.At)
	a.actor.text(r.Actor)
	a.kind.text(r.Kind)
	a.run.run(r.Run)
	a.answer.text(r.Answer)
	a.data.bytesOrNull(r.Data)
	a.head.bytesOrNull(r.Head)
	if commit == (store.CommitID{}) {
		a.commit.null()
	} else {
		a.commit.bytes(commit[:])
	}
	a.part.int(int64(part))
}

// queues notes which tenants have tasks in which queue, once per node.
func (p *plan) queues() {
	fresh := map[queueTenant]bool{}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for _, ch := range w.Tasks {
			if ch.Row == nil {
				continue
			}
			if q := (queueTenant{ch.Row.Queue, w.Tenant}); !p.known(q) {
				fresh[q] = true
			}
		}
	}
	p.fresh = slices.SortedFunc(maps.Keys(fresh), compareQueues)
	name, tenant := texts(), ints()
	t := &table{rows: len(p.fresh), columns: []*column{name, tenant}}
	for _, q := range p.fresh {
		name.text(q.queue)
		tenant.int(int64(q.tenant))
	}
	p.add(textQueue, t, false)
}
