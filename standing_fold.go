package ringi

import (
	"cmp"
	"slices"
	"time"
)

// Status is the first of the list that holds: final, paused, incident,
// compensating, running, waiting.
func (s *State) Status() Status {
	switch {
	case s.End != nil:
		return s.End.Status
	case s.Paused != nil:
		return Paused
	case len(s.Incidents) > 0:
		return InIncident
	case s.Unwind != nil:
		return Compensating
	}
	for _, c := range s.calls() {
		if !c.Idle {
			return Running
		}
	}
	if kind, _ := s.waitsFor(); kind != "" {
		return Waiting
	}
	return Running
}

// waitsFor names what a run waits for, and the step: the first open one.
func (s *State) waitsFor() (kind, step string) {
	for _, st := range s.Steps {
		switch {
		case st.Outcome != Open:
		case st.Approval != nil:
			return "approval", st.ID
		case st.Wait != nil && st.Wait.Event != "":
			return "event", st.ID
		case st.Wait != nil:
			return "timer", st.ID
		}
	}
	return "", ""
}

// Standing says which rows must exist beside the log while the run stands so.
// A paused run keeps its tasks, held, and has no timers.
func Standing(s *State) Rows {
	r := Rows{Run: RunRow{Status: s.Status(), EndedAt: s.EndedAt}}
	if s.End != nil || s.Seq == 0 {
		return r
	}
	if r.Run.Status == Waiting {
		r.Run.WaitsFor, r.Run.WaitsStep = s.waitsFor()
	}
	r.Tasks = s.standingTasks()
	if s.Paused == nil {
		for _, tm := range s.Timers {
			r.Timers = append(r.Timers, TimerRow{ID: tm.ID, Generation: tm.Generation, FireAt: tm.FireAt})
		}
		slices.SortFunc(r.Timers, func(a, b TimerRow) int { return cmp.Compare(a.ID, b.ID) })
	}
	for _, st := range s.Steps {
		if st.Outcome != Open {
			continue
		}
		if w := st.Wait; w != nil && w.Event != "" {
			r.Waits = append(r.Waits, WaitRow{Step: st.ID, Event: w.Event, Key: w.Key, Generation: w.Generation, OpenedAt: w.OpenedAt, NotEvent: s.EventID})
		}
		if st.Approval != nil {
			r.Approvals = append(r.Approvals, ApprovalRow{Step: st.ID, Requester: s.Requester, OpenedAt: st.OpenedAt, Approval: *st.Approval})
		}
	}
	slices.SortFunc(r.Waits, func(a, b WaitRow) int { return cmp.Compare(a.Step, b.Step) })
	slices.SortFunc(r.Approvals, func(a, b ApprovalRow) int { return cmp.Compare(a.Step, b.Step) })
	for _, i := range s.Incidents {
		r.Incidents = append(r.Incidents, *i)
	}
	return r
}

func (s *State) standingTasks() []TaskRow {
	var rows []TaskRow
	held := s.Paused != nil || slices.ContainsFunc(s.Incidents, func(i *Incident) bool { return i.Kind == IncidentLimit && i.Step == "" })
	add := func(step string, c *Call) {
		if c == nil || c.Idle {
			return
		}
		held := held || c.Direction == Forward && c.Begun == 0 && s.twoEffectsAt(step)
		rows = append(rows, TaskRow{
			Lane: c.Lane, Step: step, Direction: c.Direction, Attempt: c.Attempt, Seq: c.Seq, InputSeq: c.InputSeq,
			Activity: c.Activity, Queue: c.Queue, ReadyAt: c.ReadyAt, GiveUpAt: c.giveUpAt(), TotalAt: c.TotalAt,
			Timeout: c.Timeout, Heartbeat: c.Heartbeat, Begin: needsBegin(c.Effect), Begun: c.Begun,
			Held: held || c.Awaited, Awaited: c.Awaited,
		})
	}
	for _, st := range s.Steps {
		if st.Outcome == Open {
			add(st.ID, st.Call)
			add(st.ID, st.Probe)
		}
	}
	for _, u := range s.Undos {
		if u.Outcome == Open {
			add(u.Step, u.Call)
		}
	}
	slices.SortFunc(rows, func(a, b TaskRow) int { return cmp.Compare(a.Lane, b.Lane) })
	return rows
}

// giveUpAt is when a task that nobody holds has waited too long.
func (c *Call) giveUpAt() time.Time {
	at := c.TotalAt
	if c.QueueTime > 0 {
		if q := c.ReadyAt.Add(c.QueueTime); at.IsZero() || q.Before(at) {
			at = q
		}
	}
	return at
}

// twoEffectsAt reports whether an earlier attempt of the step succeeded after
// it was given up, and nobody has said yet how to go on.
func (s *State) twoEffectsAt(step string) bool {
	return slices.ContainsFunc(s.Incidents, func(i *Incident) bool { return i.Kind == IncidentTwoEffects && i.Step == step })
}
