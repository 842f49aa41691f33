package ringi

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

func (t *turn) openWait(step *workflow.Step, scope string) {
	w := step.Wait
	switch {
	case w.Event != "":
		t.openEventWait(step, scope)
	case w.Until != nil:
		raw, err := t.ev.Value(w.Until, t.envIn(scope))
		if err != nil {
			t.expressionIncident(step, scope, "wait.until", err)
			return
		}
		at, err := time.Parse(time.RFC3339Nano, text(raw))
		if err != nil {
			t.expressionIncident(step, scope, "wait.until", fmt.Errorf("%s is not an RFC 3339 instant", raw))
			return
		}
		t.emit(WaitOpened{Step: step.ID, Scope: scope})
		t.setTimer(step.ID, at.UTC().Truncate(time.Microsecond), false)
	default:
		t.emit(WaitOpened{Step: step.ID, Scope: scope})
		t.setTimer(step.ID, t.cmd.At.Add(w.For), true)
	}
}

func (t *turn) openEventWait(step *workflow.Step, scope string) {
	key := ""
	if step.Wait.Key != nil {
		raw, err := t.ev.Value(step.Wait.Key, t.envIn(scope))
		if err != nil {
			t.expressionIncident(step, scope, "wait.key", err)
			return
		}
		if key = text(raw); !nameLike(key) {
			t.expressionIncident(step, scope, "wait.key", errKey)
			return
		}
	}
	t.emit(WaitOpened{Step: step.ID, Scope: scope, Event: step.Wait.Event, Key: key})
	if step.Wait.Timeout > 0 {
		t.setTimer(step.ID, t.cmd.At.Add(step.Wait.Timeout), true)
	}
}

// deliverEvent ends a wait with an event. An event that was sent in time
// counts however late it is delivered; one sent after the wait's time-out
// does not, whether or not the timer has fired yet.
func (t *turn) deliverEvent(a DeliverEvent) (Answer, error) {
	st := t.s.step(a.Step)
	if st == nil || st.Wait == nil || st.Outcome != Open {
		return Answer{Outcome: Repeated}, nil
	}
	if st.Wait.Event != a.Event.Name || st.Wait.Key != a.Event.Key || a.Event.ID == t.s.EventID {
		return Answer{Outcome: Stale}, nil
	}
	if tm := t.s.timer(timerOf(st.ID)); tm != nil && t.s.Paused == nil && a.Event.SentAt.After(tm.FireAt) {
		return Answer{Outcome: Stale}, nil
	}
	data := a.Event.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	if why, ok := t.fits(data); !ok {
		t.stepIncident(IncidentLimit, t.def.Step(st.ID), st.Scope, "event "+a.Event.ID+" is too large: "+why)
		return Answer{Outcome: Accepted}, nil
	}
	t.emit(EventReceived{Step: st.ID, ID: a.Event.ID, Data: data, SentAt: a.Event.SentAt})
	t.next(t.def.Step(st.ID), st.Scope)
	return Answer{Outcome: Accepted}, nil
}

func (t *turn) waitTimedOut(step *workflow.Step, st *Step) {
	if step.Wait.Then == "continue" {
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: TimedOut})
		t.next(step, st.Scope)
		return
	}
	t.stepFailed(step, st.Scope, TimedOut, Cause{Code: codeTimedOut, Message: fmt.Sprintf("no event %s came within %s", step.Wait.Event, step.Wait.Timeout)})
}
