package ringi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ringiflow/ringi/workflow"
)

// Evaluator answers the expressions of a definition. Production passes
// workflow.CEL; an exhaustive walk passes every answer that the type allows.
// It must be a pure function of its arguments.
type Evaluator interface {
	Value(v *workflow.Value, env *workflow.Env) (json.RawMessage, error)
	Condition(c *workflow.Condition, env *workflow.Env) (bool, error)
}

// Decide says which events follow when a command meets a run, on which task
// rows that relies, and what the sender is told. It is a pure function: s and
// def are never changed, and the same arguments give the same decision, byte
// for byte. A refusal is an *Error and has no events.
func Decide(def *workflow.Definition, s *State, cmd Command, ev Evaluator) (Decision, error) {
	t := &turn{def: def, ev: ev, s: s.clone(), cmd: cmd}
	var err error
	if t.cmd.Do, err = tidy(cmd.Do); err != nil {
		return Decision{}, err
	}
	answer, err := t.act()
	if err != nil {
		return Decision{}, err
	}
	return Decision{Events: t.out, After: t.s, Needs: t.needs, Answer: answer, Repair: t.repair}, nil
}

// A turn is one decision being made: the state as it will be once the events
// so far hold. Rules read the state and emit facts; emitting folds them at
// once, so that a rule always sees what the rules before it did.
type turn struct {
	def    *workflow.Definition
	ev     Evaluator
	s      *State
	cmd    Command
	out    []Event
	needs  []Need
	repair *Start
}

func (t *turn) emit(f Fact) {
	e := Event{Seq: t.s.Seq + 1, At: t.cmd.At, Fact: f}
	t.s.apply(e)
	t.out = append(t.out, e)
}

func (t *turn) need(n Need) { t.needs = append(t.needs, n) }

func (t *turn) act() (Answer, error) {
	if a, ok := t.cmd.Do.(Start); ok {
		return t.start(a)
	}
	if t.s.Seq == 0 {
		return Answer{}, refuse(CodeNotFound, fmt.Sprintf("there is no run %s", t.cmd.Run), "check the id with `ringi runs`")
	}
	if err := t.mayReport(); err != nil {
		return Answer{}, err
	}
	if t.s.End != nil {
		return t.actOnEnded()
	}
	before := t.s.Seq
	answer, err := t.actOnOpen()
	if err == nil && t.s.Seq > before {
		t.checkHistory()
	}
	return answer, err
}

func (t *turn) actOnOpen() (Answer, error) {
	switch a := t.cmd.Do.(type) {
	case BeginActivity:
		return t.beginActivity(a)
	case CompleteActivity:
		return t.completeActivity(a)
	case FailActivity:
		return t.failActivity(a)
	case ExpireLease:
		return t.expireLease(a)
	case FireTimer:
		return t.fireTimer(a)
	case DecideApproval:
		return t.decideApproval(a)
	case WithdrawDecision:
		return t.withdrawDecision(a)
	case DeliverEvent:
		return t.deliverEvent(a)
	case Cancel:
		return t.cancel(a)
	case Pause:
		return t.pause(a)
	case Resume:
		return t.resumePaused(a)
	case Terminate:
		return t.terminate(a)
	case ResolveIncident:
		return t.resolveIncident(a)
	}
	return Answer{}, refuse(CodeInvalid, fmt.Sprintf("a run does not take %T", t.cmd.Do), "")
}

// actOnEnded answers commands to a run whose log is closed. Nothing is
// written to it; a late success may still call for a repair run.
func (t *turn) actOnEnded() (Answer, error) {
	switch a := t.cmd.Do.(type) {
	case BeginActivity:
		return Answer{Outcome: Stale, By: "the run is " + string(t.s.End.Status)}, nil
	case CompleteActivity:
		return t.completeEnded(a)
	case FailActivity:
		return t.lateOnEnded(a.CallRef, "failed"), nil
	case FireTimer, ExpireLease:
		return Answer{Outcome: Stale}, nil
	case DeliverEvent:
		return Answer{Outcome: Stale}, nil
	case Cancel:
		if t.s.End.Status == Cancelled {
			return Answer{Outcome: Repeated}, nil
		}
	case Terminate:
		if t.s.End.Status == Terminated {
			return Answer{Outcome: Repeated}, nil
		}
	case DecideApproval:
		return Answer{}, t.alreadyDecided(a.Step)
	case WithdrawDecision:
		return Answer{}, t.alreadyDecided(a.Step)
	}
	return Answer{}, refuse(CodeFinal, fmt.Sprintf("run %s is %s; it can no longer be changed", t.s.Run, t.s.End.Status), "start a new run")
}

// tidy gives the payloads of an action the form that they have in the log, so
// that a state counted live and one folded from the log are the same.
func tidy(a Action) (Action, error) {
	switch d := a.(type) {
	case Start:
		err := compact(&d.Input)
		return d, err
	case CompleteActivity:
		err := compact(&d.Output)
		return d, err
	case DeliverEvent:
		err := compact(&d.Event.Data)
		return d, err
	case ResolveIncident:
		err := compact(&d.Output)
		if err == nil {
			err = compact(&d.Input)
		}
		return d, err
	}
	return a, nil
}

func compact(raw *json.RawMessage) error {
	if len(*raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, *raw); err != nil {
		return refuse(CodeInvalid, "not JSON: "+err.Error(), "mend the payload")
	}
	*raw = b.Bytes()
	return nil
}
