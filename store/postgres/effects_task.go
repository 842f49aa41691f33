package postgres

import (
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// What a change of a task does with its lease, as column how.
const (
	howFresh = 0
	howKeep  = 1
	howBegun = 2
)

// tasks are deletes, changes in place and new rows, in this order.
func (p *plan) tasks() {
	tenant, run, lane, need := ints(), uuids(), ints(), ints()
	gone := &table{columns: []*column{tenant, run, lane, need}}
	needed := 0
	change, put := newTaskTable(), newTaskTable()
	for _, i := range p.keyed {
		w := &p.writes[i]
		for _, ch := range changesOf(w) {
			token := p.needOf(w, ch.Lane)
			switch {
			case ch.Row == nil:
				gone.rows++
				addKey(tenant, run, w.Key)
				lane.int(int64(ch.Lane))
				if token == nil {
					need.null()
				} else {
					needed++
					need.int(*token)
				}
			case ch.Fresh && token == nil:
				put.add(p, w, &ch, nil)
			default:
				change.add(p, w, &ch, token)
			}
		}
	}
	if gone.rows > 0 {
		c := gone.call(textTaskDelete, false)
		c.int(int64(needed))
		p.calls = append(p.calls, c)
	}
	if p.folded {
		p.addPlaced(textTaskChange, &change.table, true)
	} else {
		p.addPlaced(textTaskChangeTry, &change.table, false)
	}
	p.addPlaced(textTaskPut, &put.table, false)
}

// changesOf are the changes of a write by lane, with several of one lane made
// into one.
func changesOf(w *store.Write) []store.TaskChange {
	if len(w.Tasks) < 2 {
		return w.Tasks
	}
	list := make([]store.TaskChange, 0, len(w.Tasks))
	for _, ch := range w.Tasks {
		at := slices.IndexFunc(list, func(c store.TaskChange) bool { return c.Lane == ch.Lane })
		if at < 0 {
			list = append(list, ch)
			continue
		}
		if before := list[at]; ch.Row != nil && !ch.Fresh && (before.Row == nil || before.Fresh) {
			ch.Fresh, ch.Lease = true, before.Lease
		}
		list[at] = ch
	}
	slices.SortFunc(list, func(a, b store.TaskChange) int { return a.Lane - b.Lane })
	return list
}

// needOf is the token that the change of a lane checks itself: that of the
// lane's only need, if it asks for the current token.
func (p *plan) needOf(w *store.Write, lane int) *int64 {
	if !p.folded {
		return nil
	}
	var found *ringi.Need
	for i := range w.Needs {
		if n := &w.Needs[i]; n.Lane == lane {
			if found != nil || n.How != ringi.NeedToken {
				return nil
			}
			found = n
		}
	}
	if found == nil {
		return nil
	}
	return &found.Token
}

// needs are the conditions that no change checks.
func (p *plan) needs() {
	tenant, run, lane, token, how, end := ints(), uuids(), ints(), ints(), ints(), times()
	t := &table{columns: []*column{tenant, run, lane, token, how, end}}
	for _, i := range p.keyed {
		w := &p.writes[i]
		for _, n := range w.Needs {
			changed := slices.ContainsFunc(w.Tasks, func(c store.TaskChange) bool { return c.Lane == n.Lane })
			if changed && p.needOf(w, n.Lane) != nil {
				continue
			}
			t.rows++
			addKey(tenant, run, w.Key)
			lane.int(int64(n.Lane))
			token.int(n.Token)
			how.int(int64(n.How))
			end.time(n.LeaseEnd)
		}
	}
	p.add(textNeeds, t, true)
}

// taskTable is task rows as taskRows reads them.
type taskTable struct {
	table
	tenant, run, lane, need, how, step, direction, attempt *column
	seq, input, activity, queue, ready, giveUp, total      *column
	timeout, heartbeat, begin, begun, held                 *column
	state, token, worker, leaseEnd, attemptEnd, check, due *column
}

func newTaskTable() *taskTable {
	t := &taskTable{
		tenant: ints(), run: uuids(), lane: ints(), need: ints(), how: ints(), step: texts(), direction: texts(), attempt: ints(),
		seq: ints(), input: ints(), activity: texts(), queue: texts(), ready: times(), giveUp: times(), total: times(),
		timeout: ints(), heartbeat: ints(), begin: bools(), begun: ints(), held: ints(),
		state: ints(), token: ints(), worker: texts(), leaseEnd: times(), attemptEnd: times(), check: times(), due: times(),
	}
	t.columns = []*column{
		t.tenant, t.run, t.lane, t.need, t.how, t.step, t.direction, t.attempt, t.seq, t.input, t.activity, t.queue,
		t.ready, t.giveUp, t.total, t.timeout, t.heartbeat, t.begin, t.begun, t.held,
		t.state, t.token, t.worker, t.leaseEnd, t.attemptEnd, t.check, t.due,
	}
	return t
}

func (t *taskTable) add(p *plan, w *store.Write, ch *store.TaskChange, need *int64) {
	r := ch.Row
	t.rows++
	addKey(t.tenant, t.run, w.Key)
	t.lane.int(int64(ch.Lane))
	if need == nil {
		t.need.null()
	} else {
		t.need.int(*need)
	}
	t.step.text(r.Step)
	t.direction.text(string(r.Direction))
	t.attempt.int(int64(r.Attempt))
	t.seq.int(r.Seq)
	t.input.int(r.InputSeq)
	t.activity.text(r.Activity)
	t.queue.text(r.Queue)
	t.ready.time(r.ReadyAt)
	t.giveUp.time(r.GiveUpAt)
	t.total.time(r.TotalAt)
	t.timeout.int(int64(r.Timeout))
	t.heartbeat.int(int64(r.Heartbeat))
	t.begin.bool(r.Begin)
	t.begun.int(r.Begun)
	t.held.int(heldCode(r))
	t.lease(p, ch)
	// A ready time of zero is before all others.
	ready := r.ReadyAt
	if ready.IsZero() {
		ready = beginning.AddDate(0, 0, 1)
	}
	t.due.time(place(ready, p.least))
}

// lease adds the columns from how to check_at.
func (t *taskTable) lease(p *plan, ch *store.TaskChange) {
	l := firstLease(ch)
	switch {
	case ch.Fresh:
		t.how.int(howFresh)
		t.check.time(place(store.FirstCheck(*ch.Row, l), p.least))
	case !ch.Begun.IsZero():
		t.how.int(howBegun)
		l.LeaseEnd = ch.Begun
		t.check.null()
	default:
		t.how.int(howKeep)
		t.check.time(place(store.FirstCheck(*ch.Row, store.TaskLease{}), p.least))
	}
	state := int64(0)
	if l.Leased {
		state = 1
	}
	t.state.int(state)
	t.token.int(l.Token)
	t.worker.text(l.Worker)
	t.leaseEnd.time(l.LeaseEnd)
	t.attemptEnd.time(l.AttemptEnd)
}

// firstLease is the lease that a new attempt is born with.
func firstLease(ch *store.TaskChange) store.TaskLease {
	if l := ch.Lease; l != nil {
		return store.HandOut(*ch.Row, ch.Row.Token(1), l.Worker, l.At, l.Until)
	}
	return store.TaskLease{Token: ch.Row.Token(0)}
}
