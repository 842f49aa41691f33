package ringi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// openIncident asks for a person. st is the step that it holds, nil when it
// concerns the run as a whole.
func (t *turn) openIncident(kind IncidentKind, st *Step, message string, allowed ...Resolution) {
	i := Incident{ID: t.s.Seq + 1, Kind: kind, Message: clip(message), Since: t.cmd.At, Allowed: allowed}
	if st != nil {
		i.Step = st.ID
	}
	t.emit(IncidentOpened{Incident: i})
}

func (t *turn) undoIncident(u *UndoEntry, message string, allowed ...Resolution) {
	t.emit(IncidentOpened{Incident: Incident{
		ID: t.s.Seq + 1, Kind: IncidentUndo, Step: u.Step, Direction: Undo,
		Message: clip(message), Since: t.cmd.At, Allowed: allowed,
	}})
}

// expressionIncident holds a step whose expression failed, unless a catch
// around it takes the failure.
func (t *turn) expressionIncident(step *workflow.Step, scope, where string, err error) {
	message := where + " of step " + step.ID + ": " + err.Error()
	if t.caught(step, scope, codeExpression) {
		t.stepFailed(step, scope, StepFail, Cause{Code: codeExpression, Message: clip(message)})
		return
	}
	t.stepIncident(IncidentExpression, step, scope, message)
}

// stepIncident holds a step that could not be begun.
func (t *turn) stepIncident(kind IncidentKind, step *workflow.Step, scope, message string) {
	if t.s.step(step.ID) == nil {
		t.emit(StepOpened{Step: step.ID, Scope: scope})
	}
	allowed := []Resolution{ResolveRetry, ResolveDone, ResolveNotDone, ResolveUndoRest}
	if afterUndo(scope) {
		allowed = allowed[:2] // everything is undone already
	}
	t.openIncident(kind, t.s.step(step.ID), message, allowed...)
}

// caught reports whether a catch of the step or around it names the code or
// takes everything.
func (t *turn) caught(step *workflow.Step, scope, code string) bool {
	for {
		rec := t.s.step(step.ID)
		if catchFor(step, code) != "" && (rec == nil || rec.Caught == "") {
			return true
		}
		if scope == rootScope || scope == scopeOnFailure {
			return false
		}
		step, scope = t.def.Step(t.s.scope(scope).Step), parentScope(scope)
	}
}

func (t *turn) hasIncident(kind IncidentKind, step string) bool {
	return slices.ContainsFunc(t.s.Incidents, func(i *Incident) bool { return i.Kind == kind && i.Step == step })
}

// haltIncident brings a step to rest that an incident holds. Whether an effect
// stands must still be answered; anything else became pointless.
func (t *turn) haltIncident(st *Step) {
	i := t.s.incident(st.Incident)
	if i.Kind == IncidentUnknown {
		return
	}
	t.emit(IncidentResolved{ID: i.ID, How: ResolveWithdrawn, By: Engine().ID})
	if i.Kind == IncidentTwoEffects {
		t.halt(st)
		return
	}
	t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: CancelledStep, Error: &Cause{Code: codeCancelled, Step: st.ID}})
}

func (t *turn) resolveIncident(a ResolveIncident) (Answer, error) {
	i := t.s.incident(a.Incident)
	if i == nil && (a.Incident < 1 || a.Incident > t.s.Seq) {
		return Answer{}, refuse(CodeNotFound, fmt.Sprintf("run %s never had an incident %d", t.s.Run, a.Incident), "see `ringi incidents`")
	}
	if i == nil {
		return Answer{}, refuse(CodeAlreadyDecided, fmt.Sprintf("run %s has no open incident %d", t.s.Run, a.Incident), "see `ringi incidents`")
	}
	if a.Reason == "" {
		return Answer{}, refuse(CodeInvalid, "resolving an incident needs a reason", "say why with --reason")
	}
	if err := t.mayResolve(i, a); err != nil {
		return Answer{}, err
	}
	resolved := IncidentResolved{ID: i.ID, How: a.How, By: t.cmd.Actor.ID, Reason: a.Reason}
	if i.Direction == Undo {
		t.resolveUndo(t.s.undo(i.Step), resolved, a)
		return Answer{Outcome: Accepted}, nil
	}
	if i.Step == "" || i.Kind == IncidentTwoEffects {
		t.resolveRunIncident(i, resolved, a)
		return Answer{Outcome: Accepted}, nil
	}
	t.resolveStep(i, resolved, a)
	return Answer{Outcome: Accepted}, nil
}

// mayResolve refuses what the incident does not allow, and evidence that does
// not fit the step.
func (t *turn) mayResolve(i *Incident, a ResolveIncident) error {
	if !slices.Contains(i.Allowed, a.How) {
		names := make([]string, len(i.Allowed))
		for n, r := range i.Allowed {
			names[n] = string(r)
		}
		return refuse(CodeInvalid, fmt.Sprintf("incident %d cannot be resolved by %q", i.ID, a.How), "use one of "+strings.Join(names, ", "))
	}
	if a.How == ResolveRunOther && a.Activity == "" {
		return refuse(CodeInvalid, "run_other needs the name of an activity", "give --activity")
	}
	st := t.s.step(i.Step)
	if a.How == ResolveRetry && st != nil && i.Direction == Forward && t.halting(st.Scope) {
		return refuse(CodeInvalid, "the run is being undone; nothing runs forward again", "use done, not_done or undo_rest")
	}
	if why, ok := t.fits(a.Output); !ok {
		return refuse(CodeTooLarge, "the output is too large: "+why, "")
	}
	if why, ok := t.fits(a.Input); !ok {
		return refuse(CodeTooLarge, "the input is too large: "+why, "")
	}
	if u := t.s.undo(i.Step); u != nil && i.Direction == Forward && u.Outcome == Open && u.Call != nil && !u.Call.Idle {
		return refuse(CodeInvalid, "an effect of "+i.Step+" that was found late is being undone", "wait until its undo has ended")
	}
	takesOutput := i.Kind != IncidentTwoEffects || st != nil && st.held()
	if step := t.def.Step(i.Step); a.How == ResolveDone && step != nil && step.Activity != nil && i.Direction == Forward && takesOutput {
		if err := step.Activity.Output.Check(outputOf(a)); err != nil {
			return refuse(CodeInvalid, "the output breaks the schema of step "+i.Step+": "+err.Error(), "give the output that the step should have had with --output")
		}
	}
	return nil
}

func outputOf(a ResolveIncident) json.RawMessage {
	if len(a.Output) == 0 {
		return json.RawMessage("null")
	}
	return a.Output
}

// resolveUndo closes an incident of a compensation.
func (t *turn) resolveUndo(u *UndoEntry, r IncidentResolved, a ResolveIncident) {
	t.emit(r)
	u = t.s.undo(u.Step)
	switch a.How {
	case ResolveRetry:
		t.undoAgain(u)
	case ResolveRunOther:
		input := a.Input
		if len(input) == 0 {
			input = u.Input
		}
		t.emit(UndoReplaced{Step: u.Step, Activity: a.Activity, Queue: t.otherQueue(u, a.Activity), Input: input, By: r.By, Reason: r.Reason})
		t.undoAgain(t.s.undo(u.Step))
	default:
		t.emit(UndoSettled{Step: u.Step, Undone: a.How == ResolveDone, By: r.By, Reason: r.Reason})
		t.resume()
	}
}

// otherQueue is where the activity goes that a person put in place of an undo,
// or "" when it stays: the engine's own workers take http calls and nothing
// else, and nobody but them does.
func (t *turn) otherQueue(u *UndoEntry, activity string) string {
	byEngine := activity == workflow.HTTPActivity
	switch {
	case byEngine == (u.Queue == workflow.HTTPQueue):
		return ""
	case byEngine:
		return workflow.HTTPQueue
	}
	if step := t.def.Step(u.Step); step != nil && step.Activity != nil && step.Activity.Queue != workflow.HTTPQueue {
		return step.Activity.Queue
	}
	return workflow.DefaultQueue
}

// undoAgain makes an undo with a fresh budget: in its turn while the run
// unwinds, and in a lane of its own while the run goes on beside it.
func (t *turn) undoAgain(u *UndoEntry) {
	switch {
	case t.s.Unwind != nil:
		t.settle()
	case u.Call != nil:
		t.scheduleUndo(u, u.Call.Lane)
	default:
		t.scheduleUndo(u, t.s.Lanes)
	}
}

// resolveRunIncident closes an incident that holds no step.
func (t *turn) resolveRunIncident(i *Incident, r IncidentResolved, a ResolveIncident) {
	kind, message := i.Kind, i.Message
	t.emit(r)
	switch {
	case a.How == ResolveUndoRest && t.s.Unwind == nil:
		t.startUnwind(Cause{Code: string(kind), Message: message, Step: i.Step}, Failed)
	case kind == IncidentTwoEffects && a.How == ResolveDone && t.s.step(i.Step).held():
		st := t.s.step(i.Step)
		t.emit(ActivityWithdrawn{Step: st.ID, Applied: AppliedNo})
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Succeeded, Output: outputOf(a), By: r.By})
		t.registerUndo(t.def.Step(st.ID), st)
		t.next(t.def.Step(st.ID), st.Scope)
	case kind == IncidentExpression && a.How == ResolveDone:
		t.end(RunEnded{Status: Completed, Output: outputOf(a), By: r.By, Reason: r.Reason})
	default:
		t.resume()
	}
}

// resolveStep closes an incident that holds a step.
func (t *turn) resolveStep(i *Incident, r IncidentResolved, a ResolveIncident) {
	kind, message := i.Kind, i.Message
	t.emit(r)
	st := t.s.step(i.Step)
	step := t.def.Step(i.Step)
	cause := Cause{Code: string(kind), Message: message, Step: st.ID}
	switch a.How {
	case ResolveRetry:
		t.retryStep(kind, step, st)
	case ResolveDone:
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Succeeded, Output: outputOf(a), By: r.By})
		if step.Activity != nil {
			t.registerUndo(step, st)
		}
		t.next(step, st.Scope)
	case ResolveNotDone:
		cause.Code = codeNotDone
		if kind == IncidentExpression {
			cause.Code = codeExpression
		}
		t.stepFailed(step, st.Scope, StepFail, cause)
	default:
		t.giveUpStep(step, st, cause)
	}
}

// giveUpStep ends a step by the order to undo the rest.
func (t *turn) giveUpStep(step *workflow.Step, st *Step, cause Cause) {
	if st.Doubt {
		t.registerUndo(step, st)
	}
	if st.Outcome == Open {
		outcome := StepFail
		if st.Doubt {
			outcome = Unknown
		}
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: outcome, Error: &cause})
	}
	if t.s.Unwind != nil {
		t.settle()
		return
	}
	t.startUnwind(cause, Failed)
}

// retryStep takes a held step up again with a fresh budget.
func (t *turn) retryStep(kind IncidentKind, step *workflow.Step, st *Step) {
	if kind == IncidentUnknown {
		t.emit(ActivityRetried{Step: st.ID, Attempt: st.Call.Attempt + 1, ReadyAt: t.cmd.At, Fresh: true})
		return
	}
	if st.Outcome != Open {
		t.emit(StepReopened{Step: st.ID})
	}
	if st.Call != nil { // input and key were computed once, and stay
		t.emit(ActivityRetried{Step: st.ID, Attempt: st.Attempts + 1, ReadyAt: t.cmd.At, Fresh: true})
		return
	}
	t.openStep(step, st.Scope)
}
