package promise

import (
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

// opens holds the begin of a step to the step before it: one that failed is
// behind it only if somebody has taken the failure.
func (t *Turn) opens(step, scope string, d ringi.Direction) {
	s, def := t.State, t.Def
	if d != ringi.Forward || def == nil || def.Step(step) == nil || StepOf(s, step) != nil {
		return
	}
	if s.Unwind != nil && !Afterwards(scope) {
		t.Fail("forward", "%s is begun although the run is being undone", step)
	}
	for _, st := range s.Steps {
		if st.Halt != nil && strings.HasPrefix(scope, st.Scope+"/"+st.ID+"/") {
			t.Fail("forward", "%s is begun although everything inside %s is being stopped", step, st.ID)
		}
	}
	place := def.Step(step)
	if place.Index == 0 {
		return
	}
	before := place.In.Steps[place.Index-1]
	st := StepOf(s, before.ID)
	passed := st != nil
	if passed {
		switch st.Outcome {
		case ringi.Succeeded, ringi.NotRun:
		case ringi.Rejected, ringi.Expired:
			passed = st.Caught != "" || before.Approval != nil && before.Approval.OnReject == "continue"
		case ringi.TimedOut:
			passed = st.Caught != "" || before.Wait != nil && before.Wait.Then == "continue"
		default:
			passed = st.Caught != ""
		}
	}
	if !passed {
		t.Fail("flow", "%s is begun, and %s before it has not come out well, nor was its failure taken", step, before.ID)
	}
}

// flows looks at an event that moves a run between its calls.
func (t *Turn) flows(e ringi.Event) {
	switch f := e.Fact.(type) {
	case ringi.StepOpened:
		t.opens(f.Step, f.Scope, ringi.Forward)
	case ringi.WaitOpened:
		t.opens(f.Step, f.Scope, ringi.Forward)
	case ringi.VarsSet:
		t.opens(f.Step, f.Scope, ringi.Forward)
	case ringi.MessageEmitted:
		t.opens(f.Step, f.Scope, ringi.Forward)
	case ringi.StepEnded:
		t.opens(f.Step, f.Scope, ringi.Forward)
	case ringi.ApprovalOpened:
		t.opens(f.Step, f.Scope, ringi.Forward)
		t.asks(e.At, f)
	case ringi.DecisionWithdrawn:
		t.tookBack(e.At, f)
	case ringi.TimerSet:
		t.timerSet(e.At, f)
	case ringi.IncidentResolved:
		t.resolved(f)
		return
	case ringi.RunEnded:
		t.ended(f)
		t.unanswered(f)
	}
	t.dropped = nil
}

// timerSet holds timers to the instants that they are for.
func (t *Turn) timerSet(at time.Time, f ringi.TimerSet) {
	def := t.Def
	if def == nil {
		return
	}
	want, moves := f.FireAt, f.Moves
	if f.Step == "" && def.Deadline != nil {
		want, moves = at.Add(def.Deadline.After), true
	}
	if st, d := StepOf(t.State, f.Step), def.Step(f.Step); st != nil && d != nil {
		switch {
		case st.Approval != nil:
			want, moves = st.Approval.ExpiresAt, false
		case d.Wait != nil && d.Wait.For > 0:
			want, moves = at.Add(d.Wait.For), true
		case d.Wait != nil && d.Wait.Event != "":
			want, moves = at.Add(d.Wait.Timeout), true
		case d.Wait != nil:
			moves = false // an instant stays what it is
		}
	}
	if !f.FireAt.Equal(want) {
		t.Fail("timer", "timer %s is set to %s, and is for %s", f.Timer, f.FireAt, want)
	}
	if f.Moves != moves {
		t.Fail("paused", "that a pause moves timer %s is %v, and should be %v", f.Timer, f.Moves, moves)
	}
}

// resolved holds the answer to an incident to what it allows.
func (t *Turn) resolved(f ringi.IncidentResolved) {
	i := Incident(t.State, f.ID)
	switch {
	case i == nil:
		t.Fail("incident", "incident %d is closed and is not open", f.ID)
	case f.How == ringi.ResolveWithdrawn:
		t.dropped = append(t.dropped, i)
	case f.By == ringi.Engine().ID:
		t.Fail("incident", "the engine answers an incident of %s in place of a person", i.Step)
	case !slices.Contains(i.Allowed, f.How) || !slices.Contains(answersTo(i.Kind), f.How):
		t.Fail("incident", "the incident %s of %s is closed by %s, and only %v is allowed", i.Kind, i.Step, f.How, i.Allowed)
	}
}

// answersTo are all that a person may ever answer to incidents of a kind.
func answersTo(k ringi.IncidentKind) []ringi.Resolution {
	switch k {
	case ringi.IncidentUndo:
		return []ringi.Resolution{ringi.ResolveRetry, ringi.ResolveDone, ringi.ResolveSkipUndo, ringi.ResolveRunOther}
	case ringi.IncidentBadOutput, ringi.IncidentDeadline:
		return []ringi.Resolution{ringi.ResolveDone, ringi.ResolveUndoRest} // what took place is not tried again
	case ringi.IncidentPastPivot, ringi.IncidentTwoEffects:
		return []ringi.Resolution{ringi.ResolveRetry, ringi.ResolveDone, ringi.ResolveUndoRest}
	}
	return []ringi.Resolution{ringi.ResolveRetry, ringi.ResolveDone, ringi.ResolveNotDone, ringi.ResolveUndoRest}
}

// unanswered holds an end to the questions that only a person can answer: they
// are not dropped with it, unless a person ends the run so.
func (t *Turn) unanswered(f ringi.RunEnded) {
	if f.Status == ringi.Terminated {
		return
	}
	for _, i := range append(slices.Clone(t.dropped), t.State.Incidents...) {
		switch i.Kind {
		case ringi.IncidentUnknown, ringi.IncidentTwoEffects, ringi.IncidentUndo:
			t.Fail("incident", "it ends as %s, and nobody has answered the incident %s of %s", f.Status, i.Kind, i.Step)
		}
	}
}

// Resumed holds the end of a pause to what it must not eat, and to new timers.
func (t *Turn) Resumed(was, is *ringi.State, e ringi.Event) {
	if was.Paused == nil || len(was.Timers) != len(is.Timers) {
		t.Fail("timer", "it goes on with %d timers, and had %d before", len(is.Timers), len(was.Timers))
		return
	}
	for i, tm := range is.Timers {
		old, want := was.Timers[i], was.Timers[i].FireAt
		if old.Moves {
			want = want.Add(e.At.Sub(Later(was.Paused.At, old.SetAt)))
		}
		switch {
		case tm.Generation <= old.Generation:
			t.Fail("timer", "timer %s goes on as generation %d, as before the pause", tm.ID, tm.Generation)
		case !tm.FireAt.Equal(want):
			t.Fail("paused", "timer %s is due at %s after the pause, and should be at %s", tm.ID, tm.FireAt, want)
		}
	}
	for name, l := range t.Calls {
		for _, c := range Calls(is, l.asks.Step, l.asks.Direction) {
			if !c.Idle && !c.TotalAt.Equal(l.total) {
				t.Fail("paused", "the total time of %s ends at %s after the pause, and should at %s", name, c.TotalAt, l.total)
			}
		}
	}
}

// ended holds an end to what it claims.
func (t *Turn) ended(f ringi.RunEnded) {
	s := t.State
	if f.Status == ringi.Terminated {
		return
	}
	for _, st := range s.Steps {
		if st.Outcome == ringi.Open {
			t.Fail("end", "it ends as %s, and %s has not ended", f.Status, st.ID)
		}
	}
	if f.Status == ringi.Completed {
		for _, u := range t.Undos {
			if u.open && t.Late[u.step] {
				t.Fail("undo", "it ends as %s, and the effect of %s that was found late is not undone", f.Status, u.step)
			}
		}
		return
	}
	skipped := false
	for _, u := range t.Undos {
		skipped = skipped || !u.open && !u.undone
		if u.open {
			t.Fail("undo", "it ends as %s, and %s is not undone", f.Status, u.step)
		}
	}
	if undone := len(t.Undos) > 0 && !skipped; f.Status != ringi.Cancelled && undone != (f.Status == ringi.Compensated) {
		t.Fail("end", "it ends as %s, and that everything was undone is %v", f.Status, undone)
	}
	if s.Unwind == nil {
		t.Fail("end", "it ends as %s and never turned around", f.Status)
	}
}
