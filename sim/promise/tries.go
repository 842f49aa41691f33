package promise

import (
	"math"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// tried holds a further attempt to the failure before it, and to the limits of
// its definition.
func (t *Turn) tried(at time.Time, f ringi.ActivityRetried) {
	l, u := t.Calls[Call(f.Step, f.Direction)], t.Undo(f.Step)
	what := f.Step + DirectionText(f.Direction)
	if l == nil {
		t.Fail("retry", "%s is tried again and was never begun", what)
		return
	}
	if f.Fresh || t.Rewound {
		return // a person ordered it
	}
	switch {
	case !l.failed:
		t.Fail("retry", "%s is tried again, and the attempt before has not failed", what)
	case l.final && f.Direction != ringi.Probe:
		t.Fail("retry", "%s is tried again, and the failure before said that this is pointless", what)
	case f.Direction == ringi.Undo && l.asks.Effect == string(workflow.AtMostOnce) && l.applied != ringi.AppliedNo:
		t.Fail("at_most_once", "%s is tried again, and nobody knows whether it has had its effect", what)
	case !l.total.IsZero() && !f.ReadyAt.Before(l.total):
		t.Fail("budget", "%s is to be tried again at %s, and its total time ends at %s", what, f.ReadyAt, l.total)
	case f.Direction == ringi.Undo && f.ReadyAt.Sub(l.first) > ringi.UndoWithin:
		t.Fail("budget", "%s is tried again %s after it failed first, and a person is to be asked after %s", what, f.ReadyAt.Sub(l.first), ringi.UndoWithin)
	}
	retry, ok := t.retryOf(f.Step, f.Direction)
	if !ok {
		return
	}
	tries := l.tries
	if f.Direction == ringi.Probe {
		tries = l.asked
	}
	if tries >= retry.Attempts && (u == nil || f.Direction != ringi.Undo || u.edition == 0) {
		t.Fail("budget", "%s is tried once more after %d tries, and may be %d times", what, tries, retry.Attempts)
	}
	if pause := leastPause(retry, tries); f.ReadyAt.Before(at.Add(max(pause, l.wish))) {
		t.Fail("retry", "%s is tried again after %s, and has to wait for %s at least", what, f.ReadyAt.Sub(at), max(pause, l.wish))
	}
}

// retryOf is what the definition says about tries in a direction.
func (t *Turn) retryOf(step string, d ringi.Direction) (workflow.Retry, bool) {
	def := t.Def
	if def == nil {
		return workflow.Retry{}, false
	}
	s := def.Step(step)
	switch {
	case s == nil || s.Activity == nil:
	case d == ringi.Forward:
		return s.Retry, true
	case d == ringi.Undo && s.Activity.Compensate != nil:
		return s.Activity.Compensate.Retry, true
	case d == ringi.Probe && s.Activity.Probe != nil:
		return s.Activity.Probe.Retry, true
	}
	return workflow.Retry{}, false
}

// leastPause is the shortest pause before the next try: a fifth below what the
// definition says.
func leastPause(r workflow.Retry, tries int) time.Duration {
	pause := float64(r.Initial) * math.Pow(max(r.Factor, 1), float64(max(tries-1, 0)))
	if r.Max > 0 {
		pause = min(pause, float64(r.Max))
	}
	return time.Duration(min(pause*0.8, float64(time.Hour))) - time.Millisecond
}

// put holds a call that is put into its queue to its total time, and an undo to
// its turn.
func (t *Turn) put(at time.Time, f ringi.ActivityScheduled) {
	def := t.Def
	if f.Direction == ringi.Forward && def != nil && def.Step(f.Step) != nil {
		if total := def.Step(f.Step).Timeouts.Total; total > 0 && (f.TotalAt == nil || !f.TotalAt.Equal(at.Add(total))) {
			t.Fail("budget", "%s has %s in all from %s on, and is told %v", f.Step, total, at, f.TotalAt)
		}
	}
	if f.Direction != ringi.Undo || t.Rewound {
		return
	}
	mine := t.Undo(f.Step)
	if mine == nil || !mine.open {
		t.Fail("undo", "%s is undone, and nothing of it is to be undone any more", f.Step)
		return
	}
	if mine.called {
		t.Fail("budget", "the undo of %s is begun anew, and nobody ordered it", f.Step)
	}
	if t.State.Unwind == nil {
		return
	}
	for i, u := range t.Undos {
		if u == mine {
			continue
		}
		if l := t.Calls[Call(u.step, ringi.Undo)]; u.open && u.called && l != nil && !l.failed {
			t.Fail("undo_order", "%s is undone while the undo of %s is under way", f.Step, u.step)
		}
		if u.open && slices.ContainsFunc(t.State.Incidents, func(i *ringi.Incident) bool { return i.Kind == ringi.IncidentUndo && i.Step == u.step }) {
			t.Fail("undo_order", "%s is undone while a person is asked about the undo of %s", f.Step, u.step)
		}
		if u.open && i > slices.Index(t.Undos, mine) {
			t.Fail("undo_order", "%s is undone before %s, which was completed after it", f.Step, u.step)
		}
	}
}

// registered holds an undo to a key of its own: an earlier one of the same step
// has done its work.
func (t *Turn) registered(f ringi.UndoRegistered) {
	name := Call(f.Step, ringi.Undo) + "/"
	for other, key := range t.Keys {
		if key == f.Key && other != name+Itoa(int64(f.Edition)) {
			t.Fail("key", "the undo of %s, edition %d, has the key %q of %s", f.Step, f.Edition, f.Key, other)
		}
	}
	if u := t.Undo(f.Step); u != nil && (u.open || f.Edition <= u.edition) {
		t.Fail("undo", "the undo of %s is registered as edition %d, and edition %d was before it (open: %v)", f.Step, f.Edition, u.edition, u.open)
	}
}

// permitted holds a permission to the newest hand-out, and to a question that
// nobody has answered yet.
func (t *Turn) permitted(f ringi.ActivityStarted) {
	sh := t
	if last := sh.Tokens[Call(f.Step, f.Direction)]; f.Token != last && !sh.Rewound {
		t.Fail("token", "%s may begin under token %s, and the latest is %s", f.Step, TokenText(f.Token), TokenText(last))
	}
	for _, i := range sh.State.Incidents {
		if i.Kind == ringi.IncidentTwoEffects && i.Step == f.Step && f.Direction == ringi.Forward {
			t.Fail("two_effects", "%s may begin, and a person is asked whether its effect stands already", f.Step)
		}
	}
	for _, c := range Calls(sh.State, f.Step, f.Direction) {
		if c.Begun != 0 && c.Begun != f.Token && c.Seq == ringi.TokenSeq(f.Token) {
			t.Fail("begin", "%s may begin under token %s, and has begun under %s", f.Step, TokenText(f.Token), TokenText(c.Begun))
		}
	}
}

// failedAs holds what the log says of a failure to what the worker said, and to
// the contract.
func (t *Turn) failedAs(f ringi.ActivityFailed) {
	l := t.Calls[Call(f.Step, f.Direction)]
	if l == nil {
		return
	}
	if def := t.Def; def != nil && f.Direction != ringi.Undo && f.Failure.Retryable {
		if s := def.Step(f.Step); s != nil && slices.Contains(s.Retry.StopOn, f.Failure.Code) {
			t.Fail("retry", "%s failed with %s, after which it must not be tried again, and is to be", f.Step, f.Failure.Code)
		}
	}
	said, known := t.Said(f.CallRef)
	if !known || f.Failure.Applied != ringi.AppliedNo || said.Applied == ringi.AppliedNo {
		return
	}
	switch effect := workflow.Effect(l.asks.Effect); {
	case effect == workflow.Pure:
	case effect == workflow.Idempotent && !f.Failure.Retryable:
	case MustBegin(l.asks.Effect) && !t.Permits[f.Token]:
	default:
		t.Fail("in_doubt", "%s%s is taken for not done, and its worker did not say so", f.Step, DirectionText(f.Direction))
	}
}

// lostAs holds what is taken for known of an attempt that was given up, and its
// limits.
func (t *Turn) lostAs(at time.Time, f ringi.ActivityTimedOut) {
	sh, l := t, t.Calls[Call(f.Step, f.Direction)]
	if l == nil || sh.Rewound {
		return
	}
	held := f.Token != ringi.TokenSeq(f.Token)<<16
	may := l.asks.Effect != string(workflow.Pure) && held && (!MustBegin(l.asks.Effect) || sh.Permits[f.Token])
	if may != (f.Applied == ringi.AppliedUnknown) {
		t.Fail("in_doubt", "%s%s is given up, its effect is called %q, and that it may have had one is %v", f.Step, DirectionText(f.Direction), f.Applied, may)
	}
	if t.has(func(x ringi.Fact) bool { s, ok := x.(ringi.ActivityStarted); return ok && s.CallRef == f.CallRef }) {
		t.Fail("lease", "%s is given up in the moment in which it may begin", f.Step)
	}
	if f.Why != ringi.ExpiryQueue && f.Why != ringi.ExpiryTotal {
		return
	}
	awaited := false
	for _, c := range Calls(sh.State, f.Step, f.Direction) {
		awaited = awaited || c.Awaited
	}
	if sh.State.Paused != nil && !awaited {
		t.Fail("paused", "%s is given up as %s while the run is paused", f.Step, f.Why)
	}
	if node, there, known := t.Reached(f.Token); known && !awaited && there < Handover-Tolerance {
		t.Fail("outage", "%s is given up as %s by node %s, which had reached the store for only %s: no worker could ask it", f.Step, f.Why, node, there)
	}
	limit := l.total
	if f.Why == ringi.ExpiryQueue {
		limit = l.Ready.Add(time.Duration(l.asks.QueueMS) * time.Millisecond)
	}
	if !awaited && !t.Jumped && at.Before(limit.Add(-Tolerance)) {
		t.Fail("lease", "%s is given up as %s at %s, and has time until %s", f.Step, f.Why, at, limit)
	}
}

// unknown holds a doubt to the question that comes before it, and to what the
// contract says comes after it.
func (t *Turn) unknown(f ringi.OutcomeUnknown) {
	def := t.Def
	if def == nil || def.Step(f.Step) == nil || def.Step(f.Step).Activity == nil {
		return
	}
	a := def.Step(f.Step).Activity
	if a.Effect == workflow.Probeable {
		if l := t.Calls[Call(f.Step, ringi.Probe)]; l == nil || l.asked < a.Probe.Retry.Attempts {
			t.Fail("probeable", "nobody knows what became of %s, and its service was not asked often enough", f.Step)
		}
	}
	if (f.Assume == ringi.AppliedNo) != (a.OnUnknown == workflow.UnknownAssumeNotApplied) {
		t.Fail("in_doubt", "nobody knows what became of %s, its contract says %s, and the log %q", f.Step, a.OnUnknown, f.Assume)
	}
	asked := t.has(func(x ringi.Fact) bool {
		i, ok := x.(ringi.IncidentOpened)
		return ok && i.Incident.Kind == ringi.IncidentUnknown && i.Incident.Step == f.Step
	})
	if a.OnUnknown == workflow.UnknownIncident && !asked {
		t.Fail("in_doubt", "nobody knows what became of %s, and no person is asked", f.Step)
	}
}

// believes holds what the state believes about effects, and the order of undoing,
// to the books.
func (t *Turn) believes() {
	sh, def := t, t.Def
	for _, st := range sh.State.Steps {
		if st.Doubt != sh.Doubt[st.ID] {
			t.Fail("in_doubt", "that %s may have had an effect which nothing has settled is %v by the log, and the run has %v", st.ID, sh.Doubt[st.ID], st.Doubt)
		}
		if st.Effect == "" || st.Effect == string(workflow.Pure) || st.Outcome == ringi.Open || def == nil || sh.Undo(st.ID) != nil {
			continue
		}
		stands := st.Outcome == ringi.Succeeded || st.Doubt && sh.State.End == nil
		if step := def.Step(st.ID); stands && step != nil && step.Activity != nil && step.Activity.Compensate != nil {
			t.Fail("undo", "%s has ended as %q and may have had its effect, and is not in the order of undoing", st.ID, st.Outcome)
		}
	}
}
