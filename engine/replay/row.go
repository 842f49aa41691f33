package replay

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/rows"
	"github.com/ringiflow/ringi/store"
)

// slack is how far a column that sweeps move may lie in the future beside what
// the log says: a sweep puts off by a minute what it can do nothing about, and
// the clock of this machine is not the database's.
const slack = 2 * time.Minute

func rowName(table, row string) string {
	if row == "" {
		return "the row"
	}
	return "the row of " + table + " " + row
}

// compareRows compares what stands with what the state asks for. Of a run
// without a log nothing may stand.
func (p *replay) compareRows() {
	want := ringi.Standing(p.state)
	if p.state.Seq == 0 {
		want = ringi.Rows{}
	}
	p.compareList(want.Run)
	tasks := make([]ringi.TaskRow, len(p.have.Tasks))
	for i, t := range p.have.Tasks {
		tasks[i] = t.Row
	}
	timers := make([]ringi.TimerRow, len(p.have.Timers))
	for i, t := range p.have.Timers {
		timers[i] = t.TimerRow
	}
	// A hand-over that lapsed moves the time, which is no fact of the log.
	sameButReady := func(a, b *ringi.TaskRow) bool {
		x := *b
		x.ReadyAt = a.ReadyAt
		return rows.SameTask(a, &x)
	}
	differ(p, "task", rows.Differ(want.Tasks, tasks, rows.Lane, sameButReady))
	differ(p, "timer", rows.Differ(want.Timers, timers, rows.TimerID, rows.SameTimer))
	differ(p, "wait", rows.Differ(want.Waits, p.have.Waits, rows.WaitStep, rows.SameWait))
	differ(p, "approval", rows.Differ(want.Approvals, p.have.Approvals, rows.ApprovalStep, rows.SameJSON))
	differ(p, "incident", rows.Differ(want.Incidents, p.have.Incidents, rows.IncidentID, rows.SameJSON))
	for _, t := range p.have.Tasks {
		i := slices.IndexFunc(want.Tasks, func(w ringi.TaskRow) bool { return w.Lane == t.Row.Lane })
		if i < 0 {
			continue
		}
		p.taskTimes(t, want.Tasks[i])
	}
	for _, t := range p.have.Timers {
		if latest := later(t.FireAt, p.now.Add(slack)); t.Due.Before(t.FireAt) || t.Due.After(latest) {
			p.mismatch("timer", rowName("timer", t.ID)+fmt.Sprintf(" is found at %s, and fires at %s", stamp(t.Due), stamp(t.FireAt)))
		}
	}
}

func (p *replay) compareList(want ringi.RunRow) {
	have := p.have.Run
	switch {
	case have == nil && p.state.Seq == 0:
	case have == nil:
		p.mismatch("list", "the row is missing")
	case p.state.Seq == 0:
		p.mismatch("log", "the run is in the list and has no events")
	case p.bad("list", ""):
	case !sameStart(rows.Start(p.state, want), &have.StartRow):
		p.mismatch("list", "the row is not what the events say")
	}
}

// bad reports whether a row is known to be unreadable, which says enough.
func (p *replay) bad(table, row string) bool {
	return slices.ContainsFunc(p.have.Bad, func(b store.BadRow) bool { return b.Table == table && b.Row == row })
}

// differ names rows that are not as they should be.
func differ[K comparable, R any](p *replay, table string, list []rows.Diff[K, R]) {
	for _, c := range list {
		row := fmt.Sprint(c.Key)
		if p.bad(table, row) {
			continue
		}
		name, seq := rowName(table, row), p.state.Seq
		if table == "incident" {
			if id, ok := any(c.Key).(int64); ok {
				seq = id
			}
		}
		switch {
		case c.Was == nil:
			p.at(table, seq, name+" is left over")
		case c.Row == nil:
			p.at(table, seq, name+" is missing")
		default:
			p.at(table, seq, name+" is not what the events say")
		}
	}
}

// taskTimes checks the columns of a task that hand-outs and sweeps change: as
// far as they may, and no sweep too late.
func (p *replay) taskTimes(t store.InspectedTask, want ringi.TaskRow) {
	wrong := func(format string, args ...any) {
		p.mismatch("task", rowName("task", strconv.Itoa(t.Row.Lane))+" "+fmt.Sprintf(format, args...))
	}
	if seq := ringi.TokenSeq(t.Lease.Token); seq != want.Seq {
		wrong("has a token of event %d, its attempt is of event %d", seq, want.Seq)
	}
	untouched := t.Lease.Token == want.Token(0)
	most := later(want.ReadyAt, p.now.Add(slack))
	if ready := t.Row.ReadyAt; ready.Before(want.ReadyAt) || untouched && !ready.Equal(want.ReadyAt) || ready.After(most) {
		wrong("is ready at %s, the events say %s", stamp(ready), stamp(want.ReadyAt))
	}
	first := store.FirstCheck(t.Row, t.Lease)
	most = later(later(first, t.Lease.LeaseEnd), p.now.Add(t.Row.Heartbeat+slack))
	if !first.IsZero() && (t.Check.IsZero() || t.Check.After(most)) {
		wrong("is looked at %s, too late for its limit of %s", stamp(t.Check), stamp(first))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// sameStart compares list rows. Instants are compared as such, whatever the
// zone that a database gives them back in.
func sameStart(a, b *store.StartRow) bool {
	x, y := *a, *b
	same := x.StartedAt.Equal(y.StartedAt) && rows.SameRun(x.RunRow, y.RunRow) && len(x.Labels) == len(y.Labels)
	for k, v := range x.Labels {
		same = same && y.Labels[k] == v
	}
	return same && x.Definition == y.Definition && x.Version == y.Version && x.Digest == y.Digest &&
		x.StartKey == y.StartKey && x.InputDigest == y.InputDigest && x.Requester == y.Requester &&
		x.Title == y.Title && x.RepairOf == y.RepairOf
}
