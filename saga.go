package ringi

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi/workflow"
)

// registerUndo puts a step whose effect stands, or may stand, into the order
// of undoing, and freezes the undo's input from what is known now: days later,
// after any number of restarts, nothing has to be computed again.
func (t *turn) registerUndo(step *workflow.Step, st *Step) {
	c := step.Activity.Compensate
	u := t.s.undo(st.ID)
	if c == nil || u != nil && u.Outcome == Open {
		return
	}
	e := t.frozenUndo(step, t.envIn(st.Scope), st.Key)
	e.Late = st.LateEffect && st.Outcome != Succeeded
	if u != nil { // the step ran again after an earlier effect was undone
		e.Edition = u.Edition + 1
		e.Key = key(t.s.Run, st.ID, Undo, e.Edition)
	}
	t.emit(e)
}

func (t *turn) frozenUndo(step *workflow.Step, env *workflow.Env, stepKey string) UndoRegistered {
	c := step.Activity.Compensate
	env.StepKey = stepKey
	e := UndoRegistered{
		Step: step.ID, Activity: c.Name, Queue: c.Queue, Effect: string(c.Effect),
		Key:       key(t.s.Run, step.ID, Undo, 0),
		AttemptMS: step.Timeouts.Attempt.Milliseconds(), HeartbeatMS: step.Timeouts.Heartbeat.Milliseconds(),
	}
	if c.Key != nil {
		raw, err := t.ev.Value(c.Key, env)
		if err != nil {
			e.Problem = "compensate.key: " + err.Error()
			return e
		}
		if e.Key = text(raw); !nameLike(e.Key) {
			e.Problem = "compensate.key: " + errKey.Error()
			return e
		}
	}
	input, err := t.input(c.With, env)
	if err != nil {
		e.Problem = "compensate.with: " + err.Error()
		return e
	}
	if why, ok := t.fits(input); !ok {
		e.Problem = "compensate.with: " + why
		return e
	}
	e.Input = input
	return e
}

// startUnwind turns the run around. From here on nothing forward begins.
func (t *turn) startUnwind(cause Cause, final Status) {
	t.emit(UnwindStarted{Cause: cause, Final: final})
	for _, i := range slices.Clone(t.s.Incidents) {
		if i.Kind == IncidentPastPivot || i.Kind == IncidentDeadline || i.Kind == IncidentLimit && i.Step == "" || i.Kind == IncidentExpression && i.Step == "" {
			t.emit(IncidentResolved{ID: i.ID, How: ResolveWithdrawn, By: Engine().ID})
		}
	}
	for _, st := range slices.Clone(t.s.Steps) {
		t.halt(st)
	}
	t.settle()
}

// undoNext starts the undo of what was completed last and is not undone yet.
// The next one starts only when this one has ended: B's undo is in the log
// before A's begins.
func (t *turn) undoNext() {
	for _, u := range t.s.Undos {
		if u.Outcome == Open && (u.Incident != 0 || u.Call != nil && !u.Call.Idle) {
			return
		}
	}
	for _, u := range slices.Backward(t.s.Undos) {
		if u.Outcome != Open {
			continue
		}
		if u.Problem != "" {
			t.undoProblem(u)
			return
		}
		t.scheduleUndo(u, 0)
		return
	}
	if f := t.def.OnFailure; f != nil && len(f.Steps) > 0 && !t.s.Unwind.Told && t.s.RepairOf == "" {
		t.emit(ScopeOpened{Scope: scopeOnFailure, Branch: branchOnFailure})
		t.openBlock(f, scopeOnFailure)
		return
	}
	t.finishUnwind()
}

func (t *turn) scheduleUndo(u *UndoEntry, lane int) {
	attempt := 1
	if u.Call != nil {
		attempt = u.Call.Attempt + 1
	}
	t.emit(ActivityScheduled{
		Step: u.Step, Lane: lane, Direction: Undo, Attempt: attempt,
		Activity: u.Activity, Queue: u.Queue, Input: u.Input, Key: u.Key, Effect: u.Effect,
		AttemptMS: u.Timeout.Milliseconds(), HeartbeatMS: u.Heartbeat.Milliseconds(),
	})
}

// undoFailed tries an undo again while its own budget lasts, and then hands
// it to a person. It is never dropped and never tried for ever.
func (t *turn) undoFailed(c openCall, f Failure) {
	u := c.undo
	retry := t.undoRetry(u.Step)
	retryable := f.Retryable && (f.Applied == AppliedNo || workflow.Effect(u.Effect) != workflow.AtMostOnce)
	if at, ok := t.retryAt(u.Step, u.Call, retry); ok && retryable && at.Sub(u.Call.FailedAt) <= UndoWithin {
		t.emit(ActivityRetried{Step: u.Step, Direction: Undo, Attempt: u.Call.Attempt + 1, ReadyAt: at})
		return
	}
	t.undoIncident(u, "the undo of "+u.Step+" failed: "+f.Code+" "+f.Message, ResolveRetry, ResolveDone, ResolveSkipUndo, ResolveRunOther)
}

func (t *turn) undoRetry(step string) workflow.Retry {
	if d := t.def.Step(step); d != nil && d.Activity != nil && d.Activity.Compensate != nil {
		return d.Activity.Compensate.Retry
	}
	return workflow.Retry{Attempts: 1}
}

// resume goes on after something that the run as a whole was waiting for has
// been settled: an undo, or an incident that held no step.
func (t *turn) resume() {
	switch {
	case t.s.End != nil:
	case t.s.Unwind != nil:
		t.settle()
	case t.rootDone():
		t.complete()
	}
}

// rootDone reports whether the steps ran to their end and only the closing of
// the run is missing.
func (t *turn) rootDone() bool {
	steps := t.def.Root.Steps
	if slices.ContainsFunc(t.s.Steps, func(st *Step) bool { return st.Incident != 0 }) {
		return false
	}
	if len(t.s.Scopes) != 1 || !t.quiet(rootScope) {
		return false
	}
	if len(steps) == 0 {
		return true
	}
	last := t.s.step(steps[len(steps)-1].ID)
	return last != nil && last.Outcome != Open || t.finished() != nil
}

// finishUnwind closes the log of a run that was undone. What a person still
// has to say is waited for.
func (t *turn) finishUnwind() {
	if len(t.s.Incidents) > 0 {
		return
	}
	status := t.s.Unwind.Final
	skipped := slices.ContainsFunc(t.s.Undos, func(u *UndoEntry) bool { return u.Outcome == Skipped })
	if status == Failed && len(t.s.Undos) > 0 && !skipped {
		status = Compensated
	}
	cause := t.s.Unwind.Cause
	t.end(RunEnded{Status: status, Cause: &cause, EffectsLeft: EffectsLeft(t.s)})
}

// EffectsLeft names, in order of opening, the steps whose effects stand or
// may stand and were not undone.
func EffectsLeft(s *State) []string {
	left := []string{}
	for _, st := range s.Steps {
		if st.Effect == "" || st.Effect == string(workflow.Pure) || !st.mayHaveEffect() {
			continue
		}
		if u := s.undo(st.ID); u != nil && u.Outcome == Undone {
			continue
		}
		left = append(left, st.ID)
	}
	return left
}

// mayHaveEffect reports whether the step had an effect or may have had one:
// it has none only if every attempt failed definitely.
func (st *Step) mayHaveEffect() bool {
	switch {
	case st.Outcome == Succeeded, st.Doubt:
		return true
	case st.Outcome != Open || st.Call == nil || st.Call.Idle:
		return false
	}
	if workflow.Effect(st.Effect).NeedsBegin() {
		return st.Call.Begun != 0
	}
	return true
}

// PivotPassed reports whether an irreversible step may have begun and not
// every attempt of it failed definitely: from then on the run only goes
// forward, unless a person orders otherwise.
func PivotPassed(s *State) bool {
	for _, st := range s.Steps {
		if st.Irreversible && st.mayHaveEffect() {
			return true
		}
	}
	return false
}

// startRepair makes a run that only undoes an effect which was found after
// its own run had ended.
func (t *turn) startRepair(r Repair) {
	step := t.def.Step(r.Step)
	old := &turn{def: t.def, ev: t.ev, s: r.State.clone(), cmd: t.cmd}
	rec := old.s.step(r.Step)
	rec.Outcome, rec.Output = Succeeded, r.Output
	undo := old.frozenUndo(step, old.envIn(rec.Scope), rec.Key) // under the key that the ended run would have used
	t.emit(LateEffectFound{Step: r.Step, Output: r.Output})
	t.emit(undo)
	t.startUnwind(Cause{Code: "late_effect", Message: "step " + r.Step + " of run " + string(r.Of) + " had its effect after the run had ended", Step: r.Step}, Failed)
}

// evidence keeps a result that came too late, one by one up to a limit and
// after that as a count.
func (t *turn) evidence(l LateResult) {
	if t.s.Evidence < MaxEvidence {
		t.emit(l)
		return
	}
	if t.cmd.At.Sub(t.s.CountedAt) >= EvidenceEvery {
		t.emit(EvidenceCounted{Count: t.s.Evidence + 1})
	}
}

// lateSuccess keeps a success that came too late, and asks whether an effect
// stands because of it that nobody counted on.
func (t *turn) lateSuccess(st *Step, a CompleteActivity) {
	late := LateResult{CallRef: a.CallRef, Worker: a.Worker, By: t.cmd.Actor.ID, Kind: "succeeded"}
	if a.Direction != Forward || !plausible(t.s, st, a.CallRef) {
		t.evidence(late)
		return
	}
	mayRepeat := !workflow.Effect(st.Effect).NeedsBegin()
	if !mayRepeat {
		late.Output = t.kept(a.Output)
	}
	t.evidence(late)
	switch {
	case st.Outcome == Open || st.Outcome == Succeeded:
		if a.Attempt < st.Attempts && !mayRepeat && !t.hasIncident(IncidentTwoEffects, st.ID) {
			t.twoEffects(st, a.Attempt)
		}
	case t.lateEffect(st):
		t.emit(LateEffectFound{Step: st.ID, Output: t.kept(a.Output)})
		t.undoLate(st)
	}
}

// twoEffects asks a person about a success of an attempt that was given up.
// While the attempt after it has not begun, it is held: a second effect can
// still be kept from happening.
func (t *turn) twoEffects(st *Step, attempt int) {
	message := fmt.Sprintf("attempt %d of %s succeeded although it was given up", attempt, st.ID)
	if st.held() {
		t.openIncident(IncidentTwoEffects, st, message+"; the next one has not begun and is held", ResolveDone, ResolveRetry, ResolveUndoRest)
		return
	}
	t.openIncident(IncidentTwoEffects, st, message+": two effects may stand", ResolveDone, ResolveUndoRest)
}

// held reports whether the open call of the step could still be kept from
// having an effect.
func (st *Step) held() bool {
	return st.Outcome == Open && st.Call != nil && !st.Call.Idle && st.Call.Begun == 0
}

// lateEffect reports whether a success now found is news: the step was decided
// otherwise, is not pure, and nothing was said or begun about undoing it. Once
// its undo has run, the late word says nothing new: an undo by key also covers
// what lands before it, and a service refuses what lands after it.
func (t *turn) lateEffect(st *Step) bool {
	u := t.s.undo(st.ID)
	return st.Outcome != Succeeded && st.Outcome != Open && st.Effect != string(workflow.Pure) && !st.LateEffect &&
		(u == nil || u.Outcome == Open && u.Call == nil && u.Incident == 0)
}

// undoLate undoes an effect that was found late: in its turn when the run is
// being undone, else at once, beside the run that goes on.
func (t *turn) undoLate(st *Step) {
	u := t.s.undo(st.ID)
	if u == nil {
		t.registerUndo(t.def.Step(st.ID), st)
		u = t.s.undo(st.ID)
	}
	switch {
	case u == nil:
	case t.s.Unwind != nil:
		t.settle()
	case u.Problem != "":
		t.undoProblem(u)
	default:
		t.scheduleUndo(u, t.s.Lanes)
	}
}

func (t *turn) undoProblem(u *UndoEntry) {
	t.undoIncident(u, "the input of the undo of "+u.Step+" could not be computed: "+u.Problem, ResolveRunOther, ResolveDone, ResolveSkipUndo)
}

// plausible reports whether a token can have been given out for the step at
// all; a made-up one is no sign of an effect.
func plausible(s *State, st *Step, ref CallRef) bool {
	return ref.Attempt >= 1 && ref.Attempt <= st.Attempts && ref.Token&0xffff > 0 && TokenSeq(ref.Token) <= s.Seq && TokenSeq(ref.Token) > 0
}

// completeEnded answers a success for a run that has ended. Its log is
// closed; an effect that nobody counted on is undone by a run of its own.
func (t *turn) completeEnded(a CompleteActivity) (Answer, error) {
	answer := t.lateOnEnded(a.CallRef, "succeeded")
	st := t.s.step(a.Step)
	if answer.Outcome == Repeated || st == nil || a.Direction != Forward || !plausible(t.s, st, a.CallRef) {
		return answer, nil
	}
	step := t.def.Step(a.Step)
	if step != nil && step.Activity != nil && step.Activity.Compensate != nil && t.lateEffect(st) {
		output := t.kept(a.Output)
		if output == nil {
			output = json.RawMessage("null")
		}
		t.repair = &Start{
			Definition: t.s.Definition, Version: t.s.Version, Key: "repair/" + string(t.s.Run) + "/" + a.Step,
			Input: t.s.Input, OnBehalfOf: t.s.Requester,
			Repair: &Repair{Of: t.s.Run, Step: a.Step, Output: output, State: t.s},
		}
	}
	return answer, nil
}

func (t *turn) lateOnEnded(ref CallRef, kind string) Answer {
	if st := t.s.step(ref.Step); st != nil {
		if by, ok := st.settledBefore(ref, kind); ok {
			return Answer{Outcome: Repeated, By: by}
		}
	}
	return Answer{Outcome: Stale, By: "the run is " + string(t.s.End.Status)}
}
