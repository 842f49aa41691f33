package ringi

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

func (s *State) applyRunStarted(e Event, f RunStarted) {
	s.Definition, s.Version, s.Digest = f.Definition, f.Version, f.Digest
	s.Key, s.Input, s.InputDigest = f.Key, s.took(f.Input), f.InputDigest
	s.Requester, s.Title, s.Labels = f.Requester, f.Title, f.Labels
	s.EventID, s.RepairOf, s.StartedAt = f.EventID, f.RepairOf, e.At
	s.Scopes = []*Scope{{Path: rootScope}}
	s.Lanes = 1
}

func (s *State) applyStepEnded(e Event, f StepEnded) {
	st := s.opened(f.Step, f.Scope, e.At)
	st.Outcome, st.EndedAt = f.Outcome, e.At
	if f.Output != nil {
		st.Output = s.took(f.Output)
	}
	if f.Error != nil || f.Outcome == Succeeded {
		st.Error = f.Error
	}
	if f.By != "" {
		st.By = f.By
	}
	if f.Outcome == Succeeded {
		st.Doubt = false
	}
	if st.Call != nil {
		st.Call.Idle = true // kept: a person may order it to be made again, with the same input and key
	}
	st.Probe, st.Wait, st.Halt, st.Asked = nil, nil, nil, 0
	s.dropTimers(f.Step)
}

func (s *State) applyScopeOpened(f ScopeOpened) {
	s.Scopes = append(s.Scopes, &Scope{Path: f.Scope, Step: f.Step, Branch: f.Branch, Lane: f.Lane})
	s.Lanes = max(s.Lanes, f.Lane+1)
	if f.Branch == branchOnFailure && s.Unwind != nil {
		s.Unwind.Told = true
	}
}

// caught marks the step as failed and handled; its blocks are at rest.
func (st *Step) caught(e Event, f FailureCaught) {
	if st.Outcome == Open {
		st.Outcome, st.EndedAt = StepFail, e.At
	}
	st.Error, st.Caught, st.Halt = &f.Error, f.Branch, nil
}

func (s *State) applyVars(e Event, f VarsSet) {
	st := s.opened(f.Step, f.Scope, e.At)
	st.Holds, st.Outcome, st.EndedAt = false, Succeeded, e.At
	vars := maps.Clone(s.Vars)
	if vars == nil {
		vars = make(map[string]json.RawMessage, len(f.Vars))
	}
	// order does not matter: each name is set once and the sum is the same
	for name, raw := range f.Vars {
		vars[name] = s.took(raw)
	}
	s.Vars = vars
}

func (s *State) applyTimerSet(e Event, f TimerSet) {
	s.Timers = slices.DeleteFunc(s.Timers, func(o *Timer) bool { return o.ID == f.Timer })
	s.Timers = append(s.Timers, &Timer{
		ID: f.Timer, Generation: f.Generation, Step: f.Step, FireAt: f.FireAt, SetAt: e.At, Moves: f.Moves,
	})
}

func (s *State) applyUnwind(f UnwindStarted) {
	s.Unwind = &Unwind{Cause: f.Cause, Final: f.Final}
	s.Timers = slices.DeleteFunc(s.Timers, func(o *Timer) bool { return o.ID == timerDeadline })
	for _, st := range s.Steps {
		st.Halt = nil
	}
}

func (s *State) applyIncident(f IncidentOpened) {
	i := f.Incident
	s.Incidents = append(s.Incidents, &i)
	switch {
	case i.Direction == Undo:
		if u := s.undo(i.Step); u != nil {
			u.Incident = i.ID
		}
	case i.Step != "" && i.Kind != IncidentTwoEffects:
		s.onStep(i.Step, func(st *Step) { st.Incident, st.Holds = i.ID, false })
	}
}

func (s *State) applyResolved(f IncidentResolved) {
	s.Incidents = slices.DeleteFunc(s.Incidents, func(o *Incident) bool { return o.ID == f.ID })
	for _, st := range s.Steps {
		if st.Incident == f.ID {
			st.Incident = 0
			st.Doubt = st.Doubt && f.How != ResolveNotDone
		}
	}
	for _, u := range s.Undos {
		if u.Incident == f.ID {
			u.Incident = 0
		}
	}
}

// applyResumed moves what a pause must not eat by the length of the pause, or
// by what passed since it was set, and voids the rows of before.
func (s *State) applyResumed(e Event) {
	if s.Paused == nil {
		return
	}
	since := func(set time.Time) time.Duration {
		if set.After(s.Paused.At) {
			return e.At.Sub(set)
		}
		return e.At.Sub(s.Paused.At)
	}
	for _, tm := range s.Timers {
		tm.Generation++
		if tm.Moves {
			tm.FireAt = tm.FireAt.Add(since(tm.SetAt))
		}
	}
	for _, c := range s.calls() {
		if !c.TotalAt.IsZero() {
			c.TotalAt = c.TotalAt.Add(since(c.ScheduledAt))
		}
		c.ReadyAt = c.ReadyAt.Add(since(c.AttemptAt))
		if !c.FailedAt.IsZero() {
			c.FailedAt = c.FailedAt.Add(since(c.FailedAt))
		}
	}
	s.Paused = nil
}

// calls lists every open call of the run.
func (s *State) calls() []*Call {
	var out []*Call
	for _, st := range s.Steps {
		for _, c := range []*Call{st.Call, st.Probe} {
			if c != nil {
				out = append(out, c)
			}
		}
	}
	for _, u := range s.Undos {
		if u.Call != nil && u.Outcome == Open {
			out = append(out, u.Call)
		}
	}
	return out
}

// applyEnded forgets what nobody needs of an ended run; outcomes, outputs and
// the order of undoing stay.
func (s *State) applyEnded(e Event, f RunEnded) {
	s.End, s.EndedAt = &f, e.At
	s.Timers, s.Scopes, s.Incidents, s.Paused = nil, nil, nil, nil
	for _, st := range s.Steps {
		if st.Outcome == Open {
			st.Outcome, st.EndedAt = CancelledStep, e.At
		}
		st.Call, st.Probe, st.Wait, st.Halt, st.Incident = nil, nil, nil, nil, 0
	}
	for _, u := range s.Undos {
		u.Call, u.Incident = nil, 0
	}
}
