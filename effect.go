package ringi

import (
	"encoding/json"

	"github.com/ringiflow/ringi/workflow"
)

// forwardFailed applies the effect contract to an attempt that failed or was
// lost: run it again, ask what happened, or give up. While its scope halts
// nothing forward runs again; what would be run again is undone instead.
func (t *turn) forwardFailed(st *Step, f Failure, outcome Outcome) {
	step := t.def.Step(st.ID)
	switch effect := workflow.Effect(st.Effect); {
	case effect.NeedsBegin() && f.Applied == AppliedUnknown && effect == workflow.Probeable:
		t.startProbe(step, st)
	case effect.NeedsBegin() && f.Applied == AppliedUnknown:
		t.unknownOutcome(step, st)
	default:
		t.retryOrEnd(step, st, outcome, Cause{Code: f.Code, Message: f.Message})
	}
}

// retryOrEnd makes the next attempt while the budget lasts, and else ends the
// step with the failure.
func (t *turn) retryOrEnd(step *workflow.Step, st *Step, outcome Outcome, cause Cause) {
	halting := t.halting(st.Scope)
	if !halting && !st.Call.NoMore {
		if at, ok := t.retryAt(st.ID, st.Call, step.Retry); ok {
			t.emit(ActivityRetried{Step: st.ID, Attempt: st.Call.Attempt + 1, ReadyAt: at})
			return
		}
	}
	if st.Doubt {
		t.registerUndo(step, st)
	}
	t.stepFailed(step, st.Scope, outcome, cause)
}

// startProbe asks the service what became of the attempt in doubt.
func (t *turn) startProbe(step *workflow.Step, st *Step) {
	probe := step.Activity.Probe
	env := t.envIn(st.Scope)
	env.StepKey = st.Key
	input, err := t.input(probe.With, env)
	if _, ok := t.fits(input); err != nil || !ok {
		t.unknownOutcome(step, st)
		return
	}
	e := ActivityScheduled{
		Step: st.ID, Scope: st.Scope, Lane: st.Call.Lane, Direction: Probe, Attempt: 1,
		Activity: probe.Name, Queue: probe.Queue, Input: input, Key: key(t.s.Run, st.ID, Probe, 0),
		Effect: string(workflow.Pure),
	}
	timesOf(step, &e)
	e.QueueMS = 0
	t.emit(e)
}

// A probeAnswer is what a probe activity returns.
type probeAnswer struct {
	Applied Applied         `json:"applied"`
	Output  json.RawMessage `json:"output"`
}

func (t *turn) probeAnswered(c openCall, a CompleteActivity) {
	st, step := c.st, t.def.Step(c.st.ID)
	var p probeAnswer
	if json.Unmarshal(a.Output, &p) != nil || p.Applied != AppliedYes && p.Applied != AppliedNo {
		p = probeAnswer{Applied: AppliedUnknown}
	}
	e := ProbeAnswered{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Applied: p.Applied}
	switch p.Applied {
	case AppliedYes:
		if len(p.Output) == 0 {
			p.Output = json.RawMessage("null")
		}
		e.Output, e.Problem = t.checkOutput(st, p.Output)
		t.emit(e)
		t.forwardDone(st, e.Problem)
	case AppliedNo:
		t.emit(e)
		t.retryOrEnd(step, st, lastOutcome(st), lastCause(st))
	default:
		t.emit(e)
		t.askAgain(st)
	}
}

// askAgain repeats a probe that brought no answer, until its tries are used
// up; then the outcome is unknown.
func (t *turn) askAgain(st *Step) {
	step := t.def.Step(st.ID)
	retry := step.Activity.Probe.Retry
	if st.Asked >= retry.Attempts {
		t.unknownOutcome(step, st)
		return
	}
	at := t.cmd.At.Add(max(backoff(t.s.Run, st.ID, Probe, st.Asked, retry), t.patience()))
	t.emit(ActivityRetried{Step: st.ID, Direction: Probe, Attempt: st.Probe.Attempt + 1, ReadyAt: at})
}

// unknownOutcome does what the contract says when nobody knows.
func (t *turn) unknownOutcome(step *workflow.Step, st *Step) {
	cause := Cause{Code: codeUnknown, Message: "nobody knows whether " + st.ID + " had its effect", Step: st.ID}
	switch step.Activity.OnUnknown {
	case workflow.UnknownAssumeApplied:
		t.emit(OutcomeUnknown{Step: st.ID})
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Succeeded, Output: json.RawMessage("null"), By: "on_unknown"})
		t.registerUndo(step, st)
		t.next(step, st.Scope)
	case workflow.UnknownAssumeNotApplied:
		t.emit(OutcomeUnknown{Step: st.ID, Assume: AppliedNo})
		t.retryOrEnd(step, st, Unknown, cause)
	case workflow.UnknownFail:
		t.emit(OutcomeUnknown{Step: st.ID})
		t.registerUndo(step, st)
		t.stepFailed(step, st.Scope, Unknown, cause)
	case workflow.UnknownCompensate:
		t.emit(OutcomeUnknown{Step: st.ID})
		t.registerUndo(step, st)
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Unknown, Error: &cause})
		if t.halting(st.Scope) {
			t.settle()
			return
		}
		t.runFailed(cause)
	default:
		t.emit(OutcomeUnknown{Step: st.ID})
		t.openIncident(IncidentUnknown, st, cause.Message, ResolveRetry, ResolveDone, ResolveNotDone, ResolveUndoRest)
	}
}

// inDoubt reports whether a word is about the very attempt that nobody knew
// the outcome of: it had begun, its time ran out, and no other attempt was
// scheduled since. Such an attempt is not superseded, and its own word is
// better than any probe or guess.
func (t *turn) inDoubt(st *Step, ref CallRef) bool {
	c := st.Call
	return ref.Direction == Forward && st.Outcome == Open && c != nil && c.Idle &&
		workflow.Effect(st.Effect).NeedsBegin() && c.Begun == ref.Token && c.Attempt == ref.Attempt &&
		(st.Probe != nil || t.s.incident(st.Incident) != nil && t.s.incident(st.Incident).Kind == IncidentUnknown)
}

// doubtAnswered takes the late success of the attempt in doubt for what it is.
func (t *turn) doubtAnswered(st *Step, a CompleteActivity) {
	if st.Incident != 0 {
		t.emit(IncidentResolved{ID: st.Incident, How: ResolveWithdrawn, By: t.cmd.Actor.ID, Reason: "the attempt answered after all"})
	}
	t.forwardSucceeded(st, a)
}

func lastOutcome(st *Step) Outcome {
	if st.Error != nil && st.Error.Code == codeTimedOut {
		return TimedOut
	}
	return StepFail
}

func lastCause(st *Step) Cause {
	if st.Error == nil {
		return Cause{Code: codeNotDone}
	}
	return *st.Error
}

// haltCall brings a forward call to rest. What may be under way is awaited;
// what certainly is not is taken back. Whether a worker holds an idempotent
// call stands only in the task row, so the first decision relies on that it
// was never handed out, and a lost write brings the truth.
func (t *turn) haltCall(st *Step) {
	c := st.Call
	effect := workflow.Effect(c.Effect)
	switch {
	case st.Probe != nil:
		return // the probe's answer is needed to know what to undo
	case c.Awaited:
		return
	case effect.NeedsBegin() && c.Begun != 0:
		t.emit(ActivityAwaited{Step: st.ID})
		return
	case effect != workflow.Idempotent:
		t.withdraw(st, AppliedNo)
		return
	}
	base := c.Seq << 16
	seen := Seen{Token: base}
	if t.cmd.Lost != nil {
		if s, ok := t.cmd.Lost.Tasks[c.Lane]; ok && TokenSeq(s.Token) == c.Seq {
			seen = s
		}
	}
	switch {
	case seen.Leased:
		t.emit(ActivityAwaited{Step: st.ID})
	case seen.Token > base:
		t.need(Need{Lane: c.Lane, Token: seen.Token, How: NeedFree})
		t.withdraw(st, AppliedUnknown)
	default:
		t.need(Need{Lane: c.Lane, Token: base, How: NeedUntouched})
		t.withdraw(st, AppliedNo)
	}
}

// withdraw takes a call back and ends its step. An effect that may stand from
// an earlier hand-out is put into the order of undoing.
func (t *turn) withdraw(st *Step, applied Applied) {
	t.emit(ActivityWithdrawn{Step: st.ID, Applied: applied})
	outcome := CancelledStep
	if st.Doubt {
		outcome = Unknown
		t.registerUndo(t.def.Step(st.ID), st)
	}
	t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: outcome, Error: &Cause{Code: codeCancelled, Step: st.ID}})
}
