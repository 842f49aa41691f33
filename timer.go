package ringi

import (
	"fmt"
	"time"
)

// The timers of a run by id. Those of a step carry its id.
const timerDeadline = "deadline"

func timerOf(step string) string { return "step:" + step }

// setTimer starts a step's timer. Time that a pause must not eat moves with it.
func (t *turn) setTimer(step string, at time.Time, moves bool) {
	t.emit(TimerSet{Timer: timerOf(step), Generation: 1, Step: step, FireAt: at, Moves: moves})
}

// fireTimer drops a firing unless generation and state agree with it: a timer
// that a pause, a decision or a cancel made void is not in the state any more.
func (t *turn) fireTimer(a FireTimer) (Answer, error) {
	tm := t.s.timer(a.Timer)
	if tm == nil || tm.Generation != a.Generation || t.s.Paused != nil || t.cmd.At.Before(tm.FireAt) {
		return Answer{Outcome: Stale}, nil
	}
	t.emit(TimerFired{Timer: tm.ID, Generation: tm.Generation})
	if tm.ID == timerDeadline {
		t.deadlinePassed()
		return Answer{Outcome: Accepted}, nil
	}
	st := t.s.step(tm.Step)
	step := t.def.Step(tm.Step)
	switch {
	case st.Approval != nil:
		t.approvalExpired(step, st)
	case step.Wait != nil && step.Wait.Event == "":
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Succeeded})
		t.next(step, st.Scope)
	default:
		t.waitTimedOut(step, st)
	}
	return Answer{Outcome: Accepted}, nil
}

func (t *turn) deadlinePassed() {
	cause := Cause{Code: codeDeadline, Message: fmt.Sprintf("the run did not end within %s", t.def.Deadline.After)}
	switch {
	case t.s.Unwind != nil:
		return
	case t.def.Deadline.Then == "incident" || t.pivotFor() != "":
		t.openIncident(IncidentDeadline, nil, cause.Message, ResolveDone, ResolveUndoRest)
	default:
		t.startUnwind(cause, Failed)
	}
}
