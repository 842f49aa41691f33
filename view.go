package ringi

import "github.com/ringiflow/ringi/workflow"

func needsBegin(effect string) bool { return workflow.Effect(effect).NeedsBegin() }

// View shows a run as people and programs read it. WaitingFor of a run whose
// tasks wait for a worker is not in the state; the engine adds it.
func (s *State) View() RunView {
	v := RunView{
		RunSummary: RunSummary{
			Run: s.Run, Definition: s.Definition, Version: s.Version, Key: s.Key, Title: s.Title,
			Status: s.Status(), Requester: s.Requester, Labels: s.Labels, StartedAt: s.StartedAt, EndedAt: s.EndedAt,
		},
		Seq: s.Seq, RepairOf: s.RepairOf, EffectsLeft: []string{}, Steps: []StepView{},
	}
	if v.Status == Waiting {
		v.WaitingFor, _ = s.waitsFor()
	}
	v.Paused, v.Waits = s.Paused, s.viewWaits()
	if s.Unwind != nil {
		v.EffectsLeft = EffectsLeft(s)
	}
	if s.End != nil {
		v.Output, v.Cause = s.End.Output, s.End.Cause
		v.EffectsLeft = append([]string{}, s.End.EffectsLeft...)
	}
	for _, st := range s.Steps {
		v.Steps = append(v.Steps, s.viewStep(st))
	}
	for _, i := range s.Incidents {
		v.Incidents = append(v.Incidents, *i)
	}
	return v
}

func (s *State) viewStep(st *Step) StepView {
	v := StepView{ID: st.ID, Outcome: string(st.Outcome), Attempts: st.Attempts, Output: st.Output, Error: st.Error}
	if st.Outcome == Open {
		v.Outcome = "open"
	}
	if u := s.undo(st.ID); u != nil {
		switch {
		case u.Outcome != Open:
			v.Undo = string(u.Outcome)
		case u.Incident != 0:
			v.Undo = string(UndoFailed)
		case u.Call != nil:
			v.Undo = "open"
		}
	}
	return v
}

// viewWaits says what each open step waits for.
func (s *State) viewWaits() []WaitView {
	var out []WaitView
	for _, st := range s.Steps {
		if st.Outcome != Open || st.Approval == nil && st.Wait == nil {
			continue
		}
		w := WaitView{Step: st.ID, For: "timer"}
		if tm := s.timer(timerOf(st.ID)); tm != nil {
			w.Until = tm.FireAt
		}
		switch {
		case st.Approval != nil:
			w.For, w.Until = "approval", st.Approval.ExpiresAt
			for _, l := range st.Approval.Lanes {
				w.Approvers = append(w.Approvers, l.From...)
			}
		case st.Wait.Event != "":
			w.For, w.Event, w.Key = "event", st.Wait.Event, st.Wait.Key
		}
		out = append(out, w)
	}
	return out
}
