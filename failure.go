package ringi

import (
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// The codes that the engine itself gives to failures; catch.on knows them.
const (
	codeTimedOut   = "timed_out"
	codeRejected   = "rejected"
	codeExpired    = "expired"
	codeCancelled  = "cancelled"
	codeBadOutput  = "bad_output"
	codeExpression = "expression"
	codeUnknown    = "unknown"
	codeDeadline   = "deadline"
	codeNotDone    = "not_done"
)

// stepFailed gives a step its bad outcome and carries the failure outwards:
// to the nearest catch that takes it, else to the whole run.
func (t *turn) stepFailed(step *workflow.Step, scope string, outcome Outcome, cause Cause) {
	cause.Step = step.ID
	t.emit(StepEnded{Step: step.ID, Scope: scope, Outcome: outcome, Error: &cause})
	if t.halting(scope) {
		t.settle()
		return
	}
	t.propagate(step, scope, cause)
}

// propagate looks for who takes the failure of a step: the step itself, then
// the steps around it. A failure inside a catch is not taken by the same step.
func (t *turn) propagate(step *workflow.Step, scope string, cause Cause) {
	for {
		rec := t.s.step(step.ID)
		if branch := catchFor(step, cause.Code); branch != "" && rec.Caught == "" {
			t.catchAt(step, scope, cause)
			return
		}
		if scope == rootScope || scope == scopeOnFailure {
			break
		}
		owner := t.s.scope(scope).Step
		step, scope = t.def.Step(owner), parentScope(scope)
	}
	t.runFailed(cause)
}

// catchFor returns the branch of the first catch that takes the code.
func catchFor(step *workflow.Step, code string) string {
	for _, c := range step.Catch {
		if slices.Contains(c.On, code) || slices.Contains(c.On, "*") {
			return c.Do.Branch
		}
	}
	return ""
}

// catchAt hands the failure to the step's catch as soon as nothing inside the
// step is under way any more.
func (t *turn) catchAt(step *workflow.Step, scope string, cause Cause) {
	if !t.s.step(step.ID).Holds {
		t.runCatch(step, scope, cause)
		return
	}
	t.emit(ScopeHalted{Step: step.ID, Error: cause})
	for _, st := range slices.Clone(t.s.Steps) {
		if inside(st.Scope, scope, step.ID) {
			t.halt(st)
		}
	}
	t.settle()
}

func (t *turn) runCatch(step *workflow.Step, scope string, cause Cause) {
	branch := catchFor(step, cause.Code)
	t.emit(FailureCaught{Step: step.ID, Branch: branch, Error: cause})
	t.enter(step, scope, step.Block(branch), t.s.scope(scope).Lane)
}

// runFailed is a failure that nobody took: the run turns around, unless it is
// past the pivot or doing its last steps, where a person has to decide.
func (t *turn) runFailed(cause Cause) {
	step := t.s.step(cause.Step)
	switch {
	case t.s.Unwind != nil:
		t.openIncident(IncidentUndo, step, "a step of on_failure failed: "+cause.Code+" "+cause.Message, ResolveRetry, ResolveDone)
	case PivotPassed(t.s):
		t.openIncident(IncidentPastPivot, step, "the run can only go forward, and failed: "+cause.Code+" "+cause.Message,
			ResolveRetry, ResolveDone, ResolveUndoRest)
	default:
		t.startUnwind(cause, Failed)
	}
}

// halting reports whether a scope is being brought to rest: the whole run
// unwinds (its on_failure steps apart), or a step around will catch.
func (t *turn) halting(scope string) bool {
	if t.s.Unwind != nil && !afterUndo(scope) {
		return true
	}
	for _, st := range t.s.Steps {
		if st.Halt != nil && inside(scope, st.Scope, st.ID) {
			return true
		}
	}
	return false
}

// afterUndo reports whether a scope belongs to on_failure.
func afterUndo(scope string) bool {
	return scope == scopeOnFailure || strings.HasPrefix(scope, scopeOnFailure+"/")
}

// halt brings an open step to rest: waits, timers and approvals are withdrawn
// now, calls under way are awaited.
func (t *turn) halt(st *Step) {
	if st.Outcome != Open {
		if st.Incident != 0 {
			t.emit(IncidentResolved{ID: st.Incident, How: ResolveWithdrawn, By: Engine().ID})
		}
		return
	}
	switch {
	case st.Incident != 0:
		t.haltIncident(st)
	case st.Call != nil:
		t.haltCall(st)
	case st.Holds:
		// Its blocks come to rest by themselves; settle closes it.
	default:
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: CancelledStep})
	}
}

// settle goes on where something that halted has come to rest: the outermost
// halt first, because it makes the inner ones pointless.
func (t *turn) settle() {
	if t.s.End != nil {
		return
	}
	if t.s.Unwind != nil {
		if t.s.scope(scopeOnFailure) == nil && t.quiet(rootScope) {
			t.clearScopes(rootScope, CancelledStep)
			t.undoNext()
		}
		return
	}
	for _, st := range t.s.Steps {
		if st.Halt == nil || t.halting(st.Scope) || !t.quiet(st.Scope+"/"+st.ID+"/") {
			continue
		}
		t.clearScopes(st.Scope+"/"+st.ID+"/", CancelledStep)
		t.runCatch(t.def.Step(st.ID), st.Scope, *st.Halt)
		return
	}
}

// quiet reports whether no step in the scopes of that prefix is open, apart
// from steps that hold blocks.
func (t *turn) quiet(prefix string) bool {
	for _, st := range t.s.Steps {
		if st.Outcome == Open && !st.Holds && strings.HasPrefix(st.Scope, prefix) {
			return false
		}
	}
	return true
}

// clearScopes closes what is left of the scopes of that prefix: the steps that
// hold blocks, innermost first, and the scopes themselves.
func (t *turn) clearScopes(prefix string, outcome Outcome) {
	for i := len(t.s.Steps) - 1; i >= 0; i-- {
		st := t.s.Steps[i]
		if st.Outcome == Open && st.Holds && strings.HasPrefix(st.Scope, prefix) {
			t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: outcome})
		}
	}
	for _, sc := range slices.Backward(slices.Clone(t.s.Scopes)) {
		if sc.Path != rootScope && strings.HasPrefix(sc.Path, prefix) {
			t.emit(ScopeClosed{Scope: sc.Path})
		}
	}
}
