package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/rows"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A group is the commands of one run in one batch: they are decided one after
// the other and become one write, so that they hold or are lost together.
type group struct {
	key      store.Key
	def      *workflow.Definition
	before   *standing    // what the first of them was decided on
	after    *ringi.State // what the last of them led to
	events   []ringi.Event
	needs    []ringi.Need
	audit    []store.AuditRecord
	answers  []verdict
	standing       // of the state after, once its write was made
	broken   error // the run was quarantined on the way
}

// A verdict is the answer to one request, held back until it is proved.
type verdict struct {
	*request
	settled
	repair *ringi.Start // to be started before the answer is given
}

// rounds is how often a command is decided anew against rows that its own
// batch has just made, before it has to wait for the next batch.
const rounds = 3

// take decides one request against what the group came to so far.
func (g *group) take(r *request, by *parts) {
	cmd := r.cmd
	cmd.Run = g.key.Run // a start of a key that this group's run holds
	if cmd.At.Before(g.after.At) {
		cmd.At = g.after.At
	}
	d, needs, err := g.decide(cmd, by)
	var broken *brokenRun
	if errors.As(err, &broken) {
		g.broken = err
	}
	if err != nil {
		err = storeFault(err)
	}
	if err == nil && len(d.Events) > 0 {
		g.after = d.After
		g.events = append(g.events, d.Events...)
	}
	if err == nil {
		for _, n := range needs {
			if !slices.Contains(g.needs, n) {
				g.needs = append(g.needs, n)
			}
		}
	}
	if audited(cmd, g.before.state) {
		g.audit = append(g.audit, auditRecord(cmd, d.Answer, err))
	}
	g.answers = append(g.answers, verdict{request: r, settled: g.result(r, d, err), repair: d.Repair})
}

// decide asks the rules, again when they relied on a task row that this very
// batch makes, which the store could not judge.
func (g *group) decide(cmd ringi.Command, by *parts) (d ringi.Decision, outside []ringi.Need, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &brokenRun{fmt.Errorf("deciding %s panicked: %v\n%s", kindOf(cmd.Do), p, debug.Stack())}
		}
	}()
	for range rounds {
		d, err = by.rules(g.def, g.after, cmd, by.ev)
		if err != nil {
			return ringi.Decision{}, nil, err
		}
		var inside map[int]ringi.Seen
		outside, inside = g.judge(d.Needs)
		if len(inside) == 0 {
			return d, outside, g.contiguous(d)
		}
		cmd.Lost = withSeen(cmd.Lost, &ringi.Lost{Tasks: inside})
	}
	return ringi.Decision{}, nil, &ringi.Error{
		Code: ringi.CodeUnavailable, Message: "the run changed while the command was decided", Hint: "send it again",
	}
}

// judge takes out the needs about rows that the write under construction makes
// or changes. Such a row was handed out to nobody yet, or has just begun.
func (g *group) judge(needs []ringi.Need) (outside []ringi.Need, lost map[int]ringi.Seen) {
	for _, n := range needs {
		base := ringi.TokenSeq(n.Token) << 16
		switch {
		case ringi.TokenSeq(n.Token) > g.before.state.Seq:
			if n.How == ringi.NeedToken || n.How == ringi.NeedExpired || n.Token != base {
				lost = seen(lost, n.Lane, ringi.Seen{Token: base})
			}
		case n.How == ringi.NeedExpired && g.begunMeanwhile(n.Lane):
			lost = seen(lost, n.Lane, ringi.Seen{Token: n.Token, Leased: true})
		default:
			outside = append(outside, n)
		}
	}
	return outside, lost
}

func seen(m map[int]ringi.Seen, lane int, s ringi.Seen) map[int]ringi.Seen {
	if m == nil {
		m = map[int]ringi.Seen{}
	}
	m[lane] = s
	return m
}

func (g *group) begunMeanwhile(lane int) bool {
	begun := func(rows []ringi.TaskRow) int64 {
		for _, r := range rows {
			if r.Lane == lane {
				return r.Begun
			}
		}
		return 0
	}
	return begun(ringi.Standing(g.after).Tasks) != begun(g.before.rows.Tasks)
}

// contiguous guards the log against a fault of the rules: events that do not
// follow the state, or do not lead to the one after them, would be stored for
// ever.
func (g *group) contiguous(d ringi.Decision) error {
	next := g.after.Seq + 1
	for _, e := range d.Events {
		if e.Seq != next {
			return &brokenRun{fmt.Errorf("the rules made event %d where %d was due", e.Seq, next)}
		}
		next++
	}
	if len(d.Events) > 0 && (d.After == nil || d.After.Seq != next-1) {
		return &brokenRun{fmt.Errorf("the rules made events up to %d and a state that is not the one after it", next-1)}
	}
	return nil
}

// result is what the sender is told if the group's write holds.
func (g *group) result(r *request, d ringi.Decision, err error) settled {
	res := ringi.Result{
		Run: g.key.Run, Seq: g.after.Seq, Version: g.after.Version, Answer: d.Answer, Err: err,
	}
	if g.after.Seq > 0 {
		res.Status = g.after.Status()
	}
	if _, ok := r.cmd.Do.(ringi.Start); ok {
		res.Created = err == nil && d.Answer.Outcome == ringi.Accepted
		if l := r.cmd.Lost; l != nil && l.Holder != nil {
			res.Run, res.Seq, res.Version, res.Status = l.Holder.Run, l.Holder.Seq, l.Holder.Version, l.Holder.Status
		}
	}
	return settled{Result: res, state: g.after}
}

// proved reports whether the answers rely on nothing that stands in the store:
// a start that did not happen is refused for what it is, or for a holder that
// the store itself named.
func (g *group) proved() bool {
	return g.before.state.Seq == 0 && len(g.events) == 0 && len(g.audit) == 0 && onlyStarts(g.answers)
}

func onlyStarts(vs []verdict) bool {
	for _, v := range vs {
		if _, ok := v.cmd.Do.(ringi.Start); !ok {
			return false
		}
	}
	return true
}

// write makes the one write of the group, and the standing that it leads to.
func (g *group) write(id store.CommitID, format int, snapshots int64) (w store.Write, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &brokenRun{fmt.Errorf("deriving rows panicked: %v\n%s", p, debug.Stack())}
		}
	}()
	seq := g.before.state.Seq
	w = store.Write{
		Key: g.key, Commit: id, First: seq + 1, Last: g.after.Seq,
		Prev: g.before.head, Head: g.before.head, Needs: g.needs, Audit: g.audit,
	}
	g.standing = *g.before
	if len(g.events) > 0 {
		if w.Body, err = ringi.EncodeEventsIn(format, g.events); err != nil {
			return w, &brokenRun{err}
		}
		w.Head = store.Chain(w.Prev, w.Body)
		g.standing = *newStanding(g.after, w.Head, g.before.snap)
		rows.Change(&w, g.before.rows, g.rows, g.after)
		for _, m := range ringi.Messages(g.key.Tenant, g.key.Run, g.events) {
			w.Messages = append(w.Messages, store.OutboxMessage(m))
		}
		if err := g.snapshot(&w, snapshots); err != nil {
			return w, err
		}
	}
	for i := range w.Audit {
		w.Audit[i].Head = w.Head
	}
	return w, nil
}

// snapshotEvery is the number of events after which a write carries a new
// snapshot: loading reads at most this many events beside it.
const snapshotEvery = 200

func (g *group) snapshot(w *store.Write, every int64) error {
	if g.after.Seq-g.snap < every {
		return nil
	}
	body, err := ringi.EncodeState(g.after)
	if err != nil {
		return &brokenRun{err}
	}
	g.snap = g.after.Seq
	w.Snapshot = &store.Snapshot{Seq: g.after.Seq, Format: ringi.Format, Body: body}
	return nil
}

// A brokenRun is a run that cannot be read or decided.
type brokenRun struct{ err error }

func (b *brokenRun) Error() string { return b.err.Error() }
func (b *brokenRun) Unwrap() error { return b.err }

// withSeen adds what stood in the store when a write was lost to what was
// known from losses before. What was seen last counts.
func withSeen(old, now *ringi.Lost) *ringi.Lost {
	out := &ringi.Lost{Holder: now.Holder}
	if out.Holder == nil && old != nil {
		out.Holder = old.Holder
	}
	for _, l := range []*ringi.Lost{old, now} {
		if l == nil {
			continue
		}
		for lane, s := range l.Tasks {
			out.Tasks = seen(out.Tasks, lane, s)
		}
	}
	return out
}
