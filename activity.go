package ringi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// key is the idempotency key of a call: one for ever per run, step, direction
// and edition of the input.
func key(run RunID, step string, d Direction, edition int) string {
	k := string(run) + "/" + step
	if d != Forward {
		k += "/" + string(d)
	}
	if edition > 0 {
		k += fmt.Sprintf("/%d", edition)
	}
	return k
}

// errKey is what is wrong with a computed key that nobody could use.
var errKey = fmt.Errorf("a key has 1 to %d bytes and no NUL", maxTitle)

// nameLike reports whether a computed key or name can be kept and sent.
func nameLike(s string) bool {
	return s != "" && len(s) <= maxTitle && !strings.ContainsRune(s, 0)
}

// scheduleForward opens an activity step: its input and key are computed once
// and stored, and never again.
func (t *turn) scheduleForward(step *workflow.Step, scope string) {
	a := step.Activity
	env := t.envIn(scope)
	k := key(t.s.Run, step.ID, Forward, 0)
	if a.Key != nil {
		raw, err := t.ev.Value(a.Key, env)
		if err != nil {
			t.expressionIncident(step, scope, "key", err)
			return
		}
		if k = text(raw); !nameLike(k) {
			t.expressionIncident(step, scope, "key", errKey)
			return
		}
	}
	env.StepKey = k
	input, err := t.input(a.With, env)
	if err != nil {
		t.expressionIncident(step, scope, "with", err)
		return
	}
	if why, ok := t.fits(input); !ok {
		t.stepIncident(IncidentLimit, step, scope, "the input of step "+step.ID+" is too large: "+why)
		return
	}
	attempt := 1
	if st := t.s.step(step.ID); st != nil {
		attempt = st.Attempts + 1
	}
	e := ActivityScheduled{
		Step: step.ID, Scope: scope, Lane: t.s.scope(scope).Lane, Attempt: attempt,
		Activity: a.Name, Queue: a.Queue, Input: input, Key: k,
		Effect: string(a.Effect), Irreversible: a.Irreversible,
	}
	timesOf(step, &e)
	if step.Timeouts.Total > 0 {
		at := t.cmd.At.Add(step.Timeouts.Total)
		e.TotalAt = &at
	}
	t.emit(e)
}

func (t *turn) input(with *workflow.Value, env *workflow.Env) (json.RawMessage, error) {
	if with == nil {
		return json.RawMessage("{}"), nil
	}
	return t.ev.Value(with, env)
}

func timesOf(step *workflow.Step, e *ActivityScheduled) {
	e.AttemptMS = step.Timeouts.Attempt.Milliseconds()
	e.HeartbeatMS = step.Timeouts.Heartbeat.Milliseconds()
	e.QueueMS = step.Timeouts.Queue.Milliseconds()
}

// An openCall is a call that a worker's word is about.
type openCall struct {
	st   *Step
	undo *UndoEntry // set for the direction Undo
	call *Call
}

// mayReport refuses the word of a worker from outside about a call that the
// engine's own workers make.
func (t *turn) mayReport() error {
	var ref CallRef
	switch a := t.cmd.Do.(type) {
	case BeginActivity:
		ref = a.CallRef
	case CompleteActivity:
		ref = a.CallRef
	case FailActivity:
		ref = a.CallRef
	default:
		return nil
	}
	if queue := t.queueOf(ref); !t.cmd.Actor.Serves(queue) {
		return refuse(CodeForbidden, fmt.Sprintf("calls of the queue %s are made by the engine's own workers, and nobody else reports them", queue),
			"leave it to the server; what is in doubt a person settles with `ringi resolve`")
	}
	return nil
}

// queueOf is where the call went that a worker speaks of; "" when nothing tells.
func (t *turn) queueOf(ref CallRef) string {
	step := t.def.Step(ref.Step)
	if step == nil || step.Activity == nil {
		return ""
	}
	if ref.Direction == Forward {
		return step.Activity.Queue
	}
	if ref.Direction == Probe && step.Activity.Probe != nil {
		return step.Activity.Probe.Queue
	}
	u := t.s.undo(ref.Step)
	switch {
	case ref.Direction != Undo || u == nil:
		return ""
	case u.Edition > 0 && (u.Call == nil || u.Call.Seq != TokenSeq(ref.Token)):
		return "" // of a call that a person has replaced
	}
	return u.Queue
}

// match finds the open call that a worker speaks of. Only the expected
// attempt under the current token is current; everything else is a repeat of
// what was settled, or late.
func (t *turn) match(ref CallRef, kind string) (openCall, Answer, bool, error) {
	st := t.s.step(ref.Step)
	if st == nil {
		return openCall{}, Answer{}, false, refuse(CodeNotFound, fmt.Sprintf("run %s has no step %q that was scheduled", t.s.Run, ref.Step), "")
	}
	c := openCall{st: st, call: st.Call}
	switch ref.Direction {
	case Probe:
		c.call = st.Probe
	case Undo:
		if c.undo = t.s.undo(ref.Step); c.undo != nil {
			c.call = c.undo.Call
		} else {
			c.call = nil
		}
	}
	if c.call != nil && !c.call.Idle && c.call.Attempt == ref.Attempt && c.call.Seq == TokenSeq(ref.Token) {
		if by, late := t.overtaken(c.call, ref.Token); late {
			return c, Answer{Outcome: Stale, By: by}, false, nil
		}
		return c, Answer{}, true, nil
	}
	if by, ok := st.settledBefore(ref, kind); ok {
		return c, Answer{Outcome: Repeated, By: by}, false, nil
	}
	return c, Answer{Outcome: Stale, By: settledBy(st, ref.Direction)}, false, nil
}

// settledBefore reports whether this very result was taken before, and from whom.
func (st *Step) settledBefore(ref CallRef, kind string) (worker string, ok bool) {
	for _, d := range st.Settled {
		if d.Direction == ref.Direction && d.Attempt == ref.Attempt && d.Token == ref.Token && d.Kind == kind {
			return d.Worker, true
		}
	}
	return "", false
}

// overtaken reports whether the token was followed by a larger one.
func (t *turn) overtaken(c *Call, token int64) (string, bool) {
	if c.Begun != 0 && c.Begun != token {
		return fmt.Sprintf("lease %d has begun", c.Begun), true
	}
	if t.cmd.Lost == nil {
		return "", false
	}
	seen, ok := t.cmd.Lost.Tasks[c.Lane]
	if !ok || TokenSeq(seen.Token) != c.Seq || seen.Token == token {
		return "", false
	}
	return fmt.Sprintf("lease %d", seen.Token), true
}

func settledBy(st *Step, d Direction) string {
	for _, s := range slices.Backward(st.Settled) {
		if s.Direction == d {
			return fmt.Sprintf("lease %d of %s", s.Token, s.Worker)
		}
	}
	if st.Outcome != Open {
		return "step " + st.ID + " is " + string(st.Outcome)
	}
	return "nobody yet: the lease had ended"
}

// beginActivity gives the permission to make a call that must not repeat.
func (t *turn) beginActivity(a BeginActivity) (Answer, error) {
	c, answer, current, err := t.match(a.CallRef, "started")
	if err != nil || !current {
		return answer, err
	}
	if c.call.Begun == a.Token {
		return Answer{Outcome: Accepted}, nil
	}
	if t.s.Paused != nil {
		return Answer{Outcome: Stale, By: "the run is paused"}, nil
	}
	if a.Direction == Forward && t.hasIncident(IncidentTwoEffects, a.Step) {
		return Answer{Outcome: Stale, By: "an earlier attempt succeeded; a person must say how to go on"}, nil
	}
	t.need(Need{Lane: c.call.Lane, Token: a.Token, How: NeedToken})
	if workflow.Effect(c.call.Effect).NeedsBegin() {
		t.emit(ActivityStarted{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID})
	}
	return Answer{Outcome: Accepted}, nil
}

func (t *turn) completeActivity(a CompleteActivity) (Answer, error) {
	if len(a.Output) == 0 {
		a.Output = json.RawMessage("null")
	}
	c, answer, current, err := t.match(a.CallRef, "succeeded")
	if err != nil {
		return answer, err
	}
	if !current {
		if t.inDoubt(c.st, a.CallRef) {
			t.doubtAnswered(c.st, a)
			return Answer{Outcome: Accepted}, nil
		}
		if answer.Outcome == Stale {
			t.lateSuccess(c.st, a)
		}
		return answer, nil
	}
	t.need(Need{Lane: c.call.Lane, Token: a.Token, How: NeedToken})
	switch a.Direction {
	case Probe:
		t.probeAnswered(c, a)
	case Undo:
		t.emit(ActivitySucceeded{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Output: t.kept(a.Output)})
		t.resume()
	default:
		t.forwardSucceeded(c.st, a)
	}
	return Answer{Outcome: Accepted}, nil
}

func (t *turn) forwardSucceeded(st *Step, a CompleteActivity) {
	output, problem := t.checkOutput(st, a.Output)
	t.emit(ActivitySucceeded{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Output: output, Problem: problem})
	t.forwardDone(st, problem)
}

// kept is a payload as far as it fits; an undo's answer is only for reading.
func (t *turn) kept(raw json.RawMessage) json.RawMessage {
	if _, ok := t.fits(raw); !ok {
		return nil
	}
	return raw
}

// checkOutput returns what of an output is kept, and what is wrong with it.
func (t *turn) checkOutput(st *Step, raw json.RawMessage) (json.RawMessage, string) {
	if why, ok := t.fits(raw); !ok {
		return nil, "the output is too large: " + why
	}
	if err := t.def.Step(st.ID).Activity.Output.Check(raw); err != nil {
		return raw, "the output breaks its schema: " + err.Error()
	}
	return raw, ""
}

// forwardDone goes on behind a forward call that had its effect.
func (t *turn) forwardDone(st *Step, problem string) {
	step := t.def.Step(st.ID)
	t.registerUndo(step, st)
	if problem == "" {
		t.next(step, st.Scope)
		return
	}
	cause := Cause{Code: codeBadOutput, Message: problem, Step: st.ID}
	if t.halting(st.Scope) || t.caught(step, st.Scope, codeBadOutput) {
		t.stepFailed(step, st.Scope, StepFail, cause)
		return
	}
	t.openIncident(IncidentBadOutput, st, problem, ResolveDone, ResolveUndoRest)
}

func (t *turn) failActivity(a FailActivity) (Answer, error) {
	c, answer, current, err := t.match(a.CallRef, "failed")
	if err != nil {
		return answer, err
	}
	if !current {
		if answer.Outcome == Stale {
			t.evidence(LateResult{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Kind: "failed", Code: a.Failure.Code})
		}
		return answer, nil
	}
	t.need(Need{Lane: c.call.Lane, Token: a.Token, How: NeedToken})
	f := t.judge(c, a.Failure)
	t.emit(ActivityFailed{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Failure: f})
	t.afterFailure(c, f, StepFail)
	return Answer{Outcome: Accepted}, nil
}

// judge fills in what the worker left open, by the effect contract: a failure
// that is not retryable settles an idempotent call, since the service that
// honours the key has spoken; any other silence is doubt.
func (t *turn) judge(c openCall, f Failure) Failure {
	if step := t.def.Step(c.st.ID); step != nil && c.undo == nil && slices.Contains(step.Retry.StopOn, f.Code) {
		f.Retryable = false
	}
	effect := workflow.Effect(c.call.Effect)
	switch {
	case effect == workflow.Pure:
		f.Applied = AppliedNo
	case f.Applied != "" && f.Applied != AppliedNo:
		f.Applied = AppliedUnknown // also for words that only a probe may use
	case f.Applied == AppliedNo:
	case effect.NeedsBegin() && c.call.Begun == 0:
		f.Applied = AppliedNo // a call that nobody was permitted to begin was not made
	case effect == workflow.Idempotent && !f.Retryable:
		f.Applied = AppliedNo
	default:
		f.Applied = AppliedUnknown
	}
	f.Message = clip(f.Message)
	f.RetryAfterMS = min(max(f.RetryAfterMS, 0), MaxRetryAfter.Milliseconds())
	return f
}

func (t *turn) expireLease(a ExpireLease) (Answer, error) {
	c, answer, current, err := t.match(a.CallRef, "")
	if err != nil || !current {
		return Answer{Outcome: Stale, By: answer.By}, err
	}
	if t.s.Paused != nil && !c.call.Awaited && (a.Why == ExpiryQueue || a.Why == ExpiryTotal) {
		return Answer{Outcome: Stale, By: "the run is paused"}, nil
	}
	applied := t.lostApplied(c, a)
	f := Failure{Code: codeTimedOut, Retryable: true, Applied: applied}
	switch a.Why {
	case ExpiryQueue, ExpiryTotal:
		t.need(Need{Lane: c.call.Lane, Token: a.Token, How: NeedFree})
		f.Retryable, f.Message = false, "no worker took it in time"
		if a.Why == ExpiryTotal {
			f.Message = "the step's total time is over"
		}
	default:
		t.need(Need{Lane: c.call.Lane, Token: a.Token, How: NeedExpired, LeaseEnd: a.LeaseEnd})
		f.Message = "no answer came before the lease ended"
		if a.Why == ExpiryAttempt {
			f.Message = fmt.Sprintf("no answer came within %s", c.call.Timeout)
		}
	}
	t.emit(ActivityTimedOut{CallRef: a.CallRef, Why: a.Why, Applied: applied})
	t.afterFailure(c, f, TimedOut)
	return Answer{Outcome: Accepted}, nil
}

// lostApplied says what is known of an attempt that nobody answered for. A
// call that needs a begin and has none was never made.
func (t *turn) lostApplied(c openCall, a ExpireLease) Applied {
	effect := workflow.Effect(c.call.Effect)
	neverOut := a.Token == c.call.Seq<<16
	if effect == workflow.Pure || effect.NeedsBegin() && c.call.Begun == 0 || neverOut {
		return AppliedNo
	}
	return AppliedUnknown
}

func (t *turn) afterFailure(c openCall, f Failure, outcome Outcome) {
	switch {
	case c.undo != nil:
		t.undoFailed(c, f)
	case c.call.Direction == Probe:
		t.askAgain(c.st)
	default:
		t.forwardFailed(c.st, f, outcome)
	}
}
