package ringi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// The names of scopes. A scope's path is its parent's path, the step that
// holds the block, and the block's branch.
const (
	rootScope       = ""
	branchOnFailure = "on_failure"
	scopeOnFailure  = branchOnFailure // no slash in front: no step can have this path
)

func childScope(parent, step, branch string) string { return parent + "/" + step + "/" + branch }

func parentScope(path string) string {
	for range 2 {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return rootScope
		}
		path = path[:i]
	}
	return path
}

// inside reports whether a scope lies in any block of the step that stands in
// the scope parent.
func inside(scope, parent, step string) bool {
	return strings.HasPrefix(scope, parent+"/"+step+"/")
}

// openBlock begins a block whose scope is open.
func (t *turn) openBlock(b *workflow.Block, scope string) {
	if len(b.Steps) == 0 {
		t.closeScope(scope)
		return
	}
	t.openStep(b.Steps[0], scope)
}

// next goes on behind a step that ended well, or was caught.
func (t *turn) next(step *workflow.Step, scope string) {
	if t.halting(scope) {
		t.settle()
		return
	}
	if step.Index+1 < len(step.In.Steps) {
		t.openStep(step.In.Steps[step.Index+1], scope)
		return
	}
	t.closeScope(scope)
}

// closeScope ends a block that ran to its end, and whatever that completes.
func (t *turn) closeScope(path string) {
	switch path {
	case rootScope:
		t.complete()
		return
	case scopeOnFailure:
		t.emit(ScopeClosed{Scope: path})
		t.undoNext() // an effect may have been found meanwhile
		return
	}
	sc := t.s.scope(path)
	t.emit(ScopeClosed{Scope: path})
	owner, parent := t.def.Step(sc.Step), parentScope(path)
	rec := t.s.step(sc.Step)
	if rec.Caught == sc.Branch && rec.Caught != "" {
		t.next(owner, parent)
		return
	}
	if slices.ContainsFunc(t.s.Scopes, func(o *Scope) bool { return o.Step == sc.Step }) {
		return // other branches still run; the last one joins
	}
	t.emit(StepEnded{Step: owner.ID, Scope: parent, Outcome: Succeeded})
	t.next(owner, parent)
}

// complete ends the run well once nothing is open any more. A late effect may
// still be on its way to be undone.
func (t *turn) complete() {
	if t.awaitsOthers() {
		return
	}
	output := json.RawMessage("null")
	if f := t.finished(); f != nil {
		output = f.Output
	} else if t.def.Output != nil {
		raw, err := t.ev.Value(t.def.Output, t.env())
		if err != nil {
			t.openIncident(IncidentExpression, nil, "the run's output cannot be computed: "+err.Error(), ResolveRetry, ResolveDone, ResolveUndoRest)
			return
		}
		output = raw
	}
	if why, ok := t.fits(output); !ok {
		t.openIncident(IncidentExpression, nil, "the run's output is too large: "+why, ResolveDone, ResolveUndoRest)
		return
	}
	t.end(RunEnded{Status: Completed, Output: output})
}

// awaitsOthers reports whether the run must stay open although its steps have
// ended: an effect found late is being undone, two may stand, or its output
// could not be computed.
func (t *turn) awaitsOthers() bool {
	return slices.ContainsFunc(t.s.Undos, func(u *UndoEntry) bool { return u.Late && u.Outcome == Open }) ||
		slices.ContainsFunc(t.s.Incidents, func(i *Incident) bool {
			return i.Kind == IncidentTwoEffects || i.Kind == IncidentExpression && i.Step == ""
		})
}

// finished returns the finish step that ended the run early, or nil.
func (t *turn) finished() *Step {
	for _, st := range t.s.Steps {
		if d := t.def.Step(st.ID); d != nil && d.Verb == workflow.VerbFinish && st.Outcome == Succeeded {
			return st
		}
	}
	return nil
}

// end closes the log. Whatever is still open goes with it.
func (t *turn) end(r RunEnded) {
	for _, i := range slices.Clone(t.s.Incidents) {
		t.emit(IncidentResolved{ID: i.ID, How: ResolveWithdrawn, By: Engine().ID})
	}
	t.emit(r)
}

// openStep begins a step, or passes it by when its condition does not hold.
func (t *turn) openStep(step *workflow.Step, scope string) {
	if step.When != nil {
		ok, err := t.ev.Condition(step.When, t.envIn(scope))
		if err != nil {
			t.expressionIncident(step, scope, "when", err)
			return
		}
		if !ok {
			t.emit(StepEnded{Step: step.ID, Scope: scope, Outcome: NotRun})
			t.next(step, scope)
			return
		}
	}
	switch step.Verb {
	case workflow.VerbActivity, workflow.VerbHTTP:
		t.scheduleForward(step, scope)
	case workflow.VerbApproval:
		t.openApproval(step, scope)
	case workflow.VerbWait:
		t.openWait(step, scope)
	case workflow.VerbChoose:
		t.choose(step, scope)
	case workflow.VerbParallel:
		t.fork(step, scope)
	case workflow.VerbDo:
		t.emit(StepOpened{Step: step.ID, Scope: scope})
		t.enter(step, scope, step.Do, t.s.scope(scope).Lane)
	case workflow.VerbEmit:
		t.emitMessage(step, scope)
	case workflow.VerbSet:
		t.setVars(step, scope)
	case workflow.VerbFail:
		t.failStep(step, scope)
	case workflow.VerbFinish:
		t.finish(step, scope)
	}
}

// enter opens a block of a step and begins it.
func (t *turn) enter(step *workflow.Step, scope string, b *workflow.Block, lane int) {
	path := childScope(scope, step.ID, b.Branch)
	t.emit(ScopeOpened{Scope: path, Step: step.ID, Branch: b.Branch, Lane: lane})
	t.openBlock(b, path)
}

func (t *turn) choose(step *workflow.Step, scope string) {
	env := t.envIn(scope)
	block := step.Choose.Else
	for i, c := range step.Choose.Cases {
		ok, err := t.ev.Condition(c.If, env)
		if err != nil {
			t.expressionIncident(step, scope, fmt.Sprintf("choose[%d].if", i), err)
			return
		}
		if ok {
			block = c.Do
			break
		}
	}
	t.emit(StepOpened{Step: step.ID, Scope: scope})
	if block == nil {
		t.emit(StepEnded{Step: step.ID, Scope: scope, Outcome: Succeeded})
		t.next(step, scope)
		return
	}
	t.enter(step, scope, block, t.s.scope(scope).Lane)
}

// fork opens all branches before it begins any, so that a branch that ends at
// once cannot join alone. The first branch keeps the lane of its parent.
func (t *turn) fork(step *workflow.Step, scope string) {
	t.emit(StepOpened{Step: step.ID, Scope: scope})
	for i, b := range step.Parallel.Branches {
		lane := t.s.scope(scope).Lane
		if i > 0 {
			lane = t.s.Lanes
		}
		t.emit(ScopeOpened{Scope: childScope(scope, step.ID, b.Branch), Step: step.ID, Branch: b.Branch, Lane: lane})
	}
	for _, b := range step.Parallel.Branches {
		path := childScope(scope, step.ID, b.Branch)
		if t.s.End != nil || t.s.scope(path) == nil || t.halting(path) {
			return // a branch that failed at once has halted the others
		}
		t.openBlock(b, path)
	}
}

func (t *turn) setVars(step *workflow.Step, scope string) {
	vars := make(map[string]json.RawMessage, len(step.Set))
	env := t.envIn(scope)
	var all []byte
	for _, v := range step.Set {
		raw, err := t.ev.Value(v.Value, env)
		if err != nil {
			t.expressionIncident(step, scope, "set."+v.Name, err)
			return
		}
		vars[v.Name] = raw
		all = append(all, raw...)
		if why, ok := t.fits(all); !ok {
			t.stepIncident(IncidentLimit, step, scope, "the variables of step "+step.ID+" are too large: "+why)
			return
		}
	}
	t.emit(VarsSet{Step: step.ID, Scope: scope, Vars: vars})
	t.next(step, scope)
}

func (t *turn) failStep(step *workflow.Step, scope string) {
	cause := Cause{Code: step.Fail.Code, Step: step.ID}
	if step.Fail.Message != nil {
		raw, err := t.ev.Value(step.Fail.Message, t.envIn(scope))
		if err != nil {
			t.expressionIncident(step, scope, "fail.message", err)
			return
		}
		cause.Message = text(raw)
	}
	t.stepFailed(step, scope, StepFail, cause)
}

func (t *turn) finish(step *workflow.Step, scope string) {
	output := json.RawMessage("null")
	if step.Finish.Output != nil {
		raw, err := t.ev.Value(step.Finish.Output, t.envIn(scope))
		if err != nil {
			t.expressionIncident(step, scope, "finish.output", err)
			return
		}
		output = raw
	}
	t.emit(StepEnded{Step: step.ID, Scope: scope, Outcome: Succeeded, Output: output})
	t.clearScopes(rootScope, Succeeded)
	t.complete()
}
