package ringi

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Evolve folds one event into a state. It cannot fail, never changes s, and
// takes any event in any state: what it cannot place it leaves alone.
func Evolve(s *State, e Event) *State { return Fold(s, e) }

// Fold folds events into a copy of s.
func Fold(s *State, events ...Event) *State {
	out := s.clone()
	for _, e := range events {
		out.apply(e)
	}
	return out
}

// clone copies what apply may change. Payloads are shared: nobody writes into them.
func (s *State) clone() *State {
	c := *s
	c.Scopes = each(s.Scopes, func(o Scope) Scope { return o })
	c.Steps = each(s.Steps, func(o Step) Step {
		o.Call, o.Probe = copyOf(o.Call), copyOf(o.Probe)
		o.Settled = slices.Clone(o.Settled)
		if o.Approval != nil {
			a := *o.Approval
			a.Votes = slices.Clone(a.Votes)
			o.Approval = &a
		}
		return o
	})
	c.Vars = maps.Clone(s.Vars)
	c.Timers = each(s.Timers, func(o Timer) Timer { return o })
	c.Undos = each(s.Undos, func(o UndoEntry) UndoEntry {
		o.Call = copyOf(o.Call)
		return o
	})
	c.Incidents = each(s.Incidents, func(o Incident) Incident { return o })
	c.Unwind = copyOf(s.Unwind)
	return &c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// each copies a list of records into one allocation.
func each[T any](list []*T, dup func(T) T) []*T {
	if len(list) == 0 {
		return nil
	}
	values := make([]T, len(list))
	out := make([]*T, len(list), len(list)+2)
	for i, p := range list {
		values[i] = dup(*p)
		out[i] = &values[i]
	}
	return out
}

func find[T any](list []*T, is func(*T) bool) *T {
	for _, p := range list {
		if is(p) {
			return p
		}
	}
	return nil
}

func (s *State) step(id string) *Step {
	return find(s.Steps, func(o *Step) bool { return o.ID == id })
}

func (s *State) scope(path string) *Scope {
	return find(s.Scopes, func(o *Scope) bool { return o.Path == path })
}

func (s *State) timer(id string) *Timer {
	return find(s.Timers, func(o *Timer) bool { return o.ID == id })
}

func (s *State) undo(step string) *UndoEntry {
	return find(s.Undos, func(o *UndoEntry) bool { return o.Step == step })
}

func (s *State) incident(id int64) *Incident {
	return find(s.Incidents, func(o *Incident) bool { return o.ID == id })
}

// opened returns the record of a step, making it when it is new.
func (s *State) opened(id, scope string, at time.Time) *Step {
	st := s.step(id)
	if st == nil {
		st = &Step{ID: id, Scope: scope, OpenedAt: at}
		s.Steps = append(s.Steps, st)
	}
	return st
}

func (s *State) dropTimers(step string) {
	s.Timers = slices.DeleteFunc(s.Timers, func(o *Timer) bool { return o.Step == step && step != "" })
}

func (s *State) took(raw json.RawMessage) json.RawMessage {
	s.Payload += len(raw)
	return raw
}

// apply folds one event into s itself. One line per fact: what a fact means
// stands in the file of its noun.
func (s *State) apply(e Event) {
	s.Seq, s.At = e.Seq, e.At
	switch f := e.Fact.(type) {
	case RunStarted:
		s.applyRunStarted(e, f)
	case ActivityScheduled:
		s.applyScheduled(e, f)
	case ActivityRetried:
		s.applyRetried(e, f)
	case ActivityStarted:
		s.onCall(f.CallRef, func(c *Call) { c.Begun = f.Token })
	case ActivitySucceeded:
		s.applySucceeded(e, f)
	case ActivityFailed:
		s.applyFailed(e, f)
	case ActivityTimedOut:
		s.applyTimedOut(e, f)
	case ActivityAwaited:
		s.onStep(f.Step, func(st *Step) { st.Call.await() })
	case ActivityWithdrawn:
		s.onStep(f.Step, func(st *Step) { st.withdrawn(f.Applied) })
	case ProbeAnswered:
		s.applyProbe(e, f)
	case OutcomeUnknown:
		s.onStep(f.Step, func(st *Step) { st.Doubt, st.Probe, st.Asked = f.Assume != AppliedNo, nil, 0 })
	case DecisionRecorded:
		s.onStep(f.Step, func(st *Step) { st.vote(e, f) })
	case DecisionWithdrawn:
		s.onStep(f.Step, func(st *Step) { st.unvote(f.Person) })
	case UndoRegistered:
		s.applyUndoRegistered(f)
	case UndoSettled:
		s.applyUndoSettled(f)
	case UndoReplaced:
		s.applyUndoReplaced(f)
	case LateResult:
		s.Evidence++
	case EvidenceCounted:
		s.Evidence, s.CountedAt = f.Count, e.At
	case LateEffectFound:
		s.applyLateEffect(e, f)
	default:
		s.applyFlow(e)
	}
}

// applyFlow folds the facts of blocks, waits and the run as a whole.
func (s *State) applyFlow(e Event) {
	switch f := e.Fact.(type) {
	case StepOpened:
		s.opened(f.Step, f.Scope, e.At).Holds = true
	case StepEnded:
		s.applyStepEnded(e, f)
	case StepReopened:
		s.onStep(f.Step, func(st *Step) {
			st.Outcome, st.Error, st.EndedAt, st.LateEffect = Open, nil, time.Time{}, false
			if u := s.undo(f.Step); u != nil && u.Outcome == Undone {
				st.Doubt = false // what earlier attempts may have done is undone
			}
		})
	case ScopeOpened:
		s.applyScopeOpened(f)
	case ScopeClosed:
		s.Scopes = slices.DeleteFunc(s.Scopes, func(o *Scope) bool { return o.Path == f.Scope })
	case ScopeHalted:
		s.onStep(f.Step, func(st *Step) { st.Halt = &f.Error })
	case FailureCaught:
		s.onStep(f.Step, func(st *Step) { st.caught(e, f) })
	case VarsSet:
		s.applyVars(e, f)
	case MessageEmitted:
		st := s.opened(f.Step, f.Scope, e.At)
		st.Holds, st.Outcome, st.EndedAt = false, Succeeded, e.At
	case TimerSet:
		s.applyTimerSet(e, f)
	case TimerFired:
		s.Timers = slices.DeleteFunc(s.Timers, func(o *Timer) bool { return o.ID == f.Timer })
	case WaitOpened:
		st := s.opened(f.Step, f.Scope, e.At)
		st.Holds = false
		st.Wait = &Wait{Event: f.Event, Key: f.Key, Generation: e.Seq, OpenedAt: e.At}
	case EventReceived:
		s.onStep(f.Step, func(st *Step) {
			st.Outcome, st.Output, st.EndedAt, st.By, st.Wait = Succeeded, s.took(f.Data), e.At, f.ID, nil
			s.dropTimers(f.Step)
		})
	case ApprovalOpened:
		st := s.opened(f.Step, f.Scope, e.At)
		st.Holds, st.Approval = false, &f.Approval
	case CancelRequested:
		s.Cancel = &f
	case UnwindStarted:
		s.applyUnwind(f)
	case IncidentOpened:
		s.applyIncident(f)
	case IncidentResolved:
		s.applyResolved(f)
	case RunPaused:
		s.Paused = &PauseState{By: f.By, Reason: f.Reason, At: e.At}
	case RunResumed:
		s.applyResumed(e)
	case RunEnded:
		s.applyEnded(e, f)
	}
}

func (s *State) onStep(id string, do func(*Step)) {
	if st := s.step(id); st != nil {
		do(st)
	}
}

// onCall finds the open call that an event is about.
func (s *State) onCall(ref CallRef, do func(*Call)) {
	c := s.callOf(ref.Step, ref.Direction)
	if c != nil {
		do(c)
	}
}

func (s *State) callOf(step string, d Direction) *Call {
	if d == Undo {
		if u := s.undo(step); u != nil {
			return u.Call
		}
		return nil
	}
	st := s.step(step)
	switch {
	case st == nil:
		return nil
	case d == Probe:
		return st.Probe
	}
	return st.Call
}
