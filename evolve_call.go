package ringi

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

func (s *State) applyScheduled(e Event, f ActivityScheduled) {
	call := &Call{
		Direction: f.Direction, Attempt: f.Attempt, Seq: e.Seq, InputSeq: e.Seq, Lane: f.Lane,
		Activity: f.Activity, Queue: f.Queue, Effect: f.Effect,
		Timeout: millis(f.AttemptMS), Heartbeat: millis(f.HeartbeatMS), QueueTime: millis(f.QueueMS),
		ReadyAt: e.At, ScheduledAt: e.At, AttemptAt: e.At, Fresh: f.Attempt - 1,
	}
	if f.TotalAt != nil {
		call.TotalAt = *f.TotalAt
	}
	s.Lanes = max(s.Lanes, f.Lane+1)
	s.took(f.Input)
	switch f.Direction {
	case Undo:
		if u := s.undo(f.Step); u != nil {
			u.Call = call
		}
	case Probe:
		s.onStep(f.Step, func(st *Step) { st.Probe = call })
	default:
		st := s.opened(f.Step, f.Scope, e.At)
		st.Holds, st.Call, st.Attempts, st.Key = false, call, f.Attempt, f.Key
		st.Effect, st.Irreversible, st.TotalAt = f.Effect, f.Irreversible, call.TotalAt
		st.Outcome = Open
	}
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (s *State) applyRetried(e Event, f ActivityRetried) {
	c := s.callOf(f.Step, f.Direction)
	if c == nil {
		return
	}
	if f.Fresh {
		c.Fresh, c.ScheduledAt, c.TotalAt, c.FailedAt = f.Attempt-1, e.At, time.Time{}, time.Time{}
	}
	c.Attempt, c.Seq, c.ReadyAt, c.AttemptAt = f.Attempt, e.Seq, f.ReadyAt, e.At
	c.Begun, c.Idle, c.NoMore, c.Awaited = 0, false, false, false
	if f.Direction == Forward {
		s.onStep(f.Step, func(st *Step) { st.Attempts, st.Probe, st.Asked = f.Attempt, nil, 0 })
	}
}

func (s *State) settled(ref CallRef, worker, kind string) {
	s.onStep(ref.Step, func(st *Step) {
		st.Settled = append(st.Settled, Settled{Direction: ref.Direction, Attempt: ref.Attempt, Token: ref.Token, Worker: worker, Kind: kind})
	})
}

func (s *State) applySucceeded(e Event, f ActivitySucceeded) {
	s.settled(f.CallRef, f.Worker, "succeeded")
	s.took(f.Output)
	if f.Direction == Undo {
		if u := s.undo(f.Step); u != nil {
			u.Outcome, u.Call = Undone, nil
		}
		return
	}
	s.onStep(f.Step, func(st *Step) { st.succeeded(e, f.Output, f.Problem) })
}

// succeeded takes an effect as given. With a problem the step stays open,
// held by what comes next in the same transition.
func (st *Step) succeeded(e Event, output []byte, problem string) {
	st.Call, st.Probe, st.Asked, st.Output, st.Error = nil, nil, 0, output, nil
	if problem != "" {
		st.Doubt = true
		return
	}
	st.Doubt, st.Outcome, st.EndedAt = false, Succeeded, e.At
}

func (s *State) applyFailed(e Event, f ActivityFailed) {
	s.settled(f.CallRef, f.Worker, "failed")
	s.onCall(f.CallRef, func(c *Call) { c.failed(e.At, !f.Failure.Retryable) })
	if f.Direction != Forward {
		s.asked(f.CallRef)
		return
	}
	s.onStep(f.Step, func(st *Step) {
		st.Error = &Cause{Code: f.Failure.Code, Message: f.Failure.Message, Step: f.Step}
		switch {
		case f.Failure.Applied == AppliedUnknown:
			st.Doubt = true
		case !f.Failure.Retryable && st.Effect == string(workflow.Idempotent):
			st.Doubt = false // the service that honours the key has spoken for every attempt under it
		}
	})
}

func (s *State) applyTimedOut(e Event, f ActivityTimedOut) {
	final := f.Why == ExpiryQueue || f.Why == ExpiryTotal
	s.onCall(f.CallRef, func(c *Call) { c.failed(e.At, final) })
	if f.Direction != Forward {
		s.asked(f.CallRef)
		return
	}
	s.onStep(f.Step, func(st *Step) {
		st.Error = &Cause{Code: codeTimedOut, Step: f.Step}
		st.Doubt = st.Doubt || f.Applied == AppliedUnknown
	})
}

func (c *Call) failed(at time.Time, noMore bool) {
	c.Idle, c.NoMore = true, noMore
	if c.FailedAt.IsZero() {
		c.FailedAt = at
	}
}

// asked counts a probe that brought no answer.
func (s *State) asked(ref CallRef) {
	if ref.Direction == Probe {
		s.onStep(ref.Step, func(st *Step) { st.Asked++ })
	}
}

func (s *State) applyProbe(e Event, f ProbeAnswered) {
	s.settled(f.CallRef, f.Worker, "succeeded")
	s.took(f.Output)
	s.onStep(f.Step, func(st *Step) {
		switch f.Applied {
		case AppliedYes:
			st.succeeded(e, f.Output, f.Problem)
		case AppliedNo:
			st.Probe, st.Doubt, st.Asked = nil, false, 0
		default:
			st.Asked++
			if st.Probe != nil {
				st.Probe.Idle = true
			}
		}
	})
}

func (c *Call) await() {
	if c != nil {
		c.Awaited = true
	}
}

func (st *Step) withdrawn(applied Applied) {
	st.Call = nil
	st.Doubt = st.Doubt || applied == AppliedUnknown
}

func (st *Step) vote(e Event, f DecisionRecorded) {
	if st.Approval == nil {
		return
	}
	st.Approval.Votes = append(st.Approval.Votes, Vote{Person: f.Person, Approve: f.Approve, Lanes: f.Lanes, At: e.At, Comment: f.Comment})
}

func (st *Step) unvote(person string) {
	if st.Approval == nil {
		return
	}
	st.Approval.Votes = slices.DeleteFunc(st.Approval.Votes, func(v Vote) bool { return v.Person == person })
}

func (s *State) applyUndoRegistered(f UndoRegistered) {
	s.Undos = slices.DeleteFunc(s.Undos, func(o *UndoEntry) bool { return o.Step == f.Step })
	s.Undos = append(s.Undos, &UndoEntry{
		Step: f.Step, Activity: f.Activity, Queue: f.Queue, Input: s.took(f.Input), Key: f.Key, Effect: f.Effect,
		Timeout: millis(f.AttemptMS), Heartbeat: millis(f.HeartbeatMS), Problem: f.Problem, Late: f.Late, Edition: f.Edition,
	})
}

func (s *State) applyUndoSettled(f UndoSettled) {
	if u := s.undo(f.Step); u != nil {
		u.Call, u.Outcome = nil, Skipped
		if f.Undone {
			u.Outcome = Undone
		}
	}
}

func (s *State) applyUndoReplaced(f UndoReplaced) {
	if u := s.undo(f.Step); u != nil {
		u.Edition++
		u.Activity, u.Input, u.Problem = f.Activity, s.took(f.Input), ""
		if f.Queue != "" {
			u.Queue = f.Queue
		}
		u.Key = key(s.Run, f.Step, Undo, u.Edition)
	}
}

// applyLateEffect notes an effect of a step that was decided otherwise. In a
// repair run it is the first that the run knows of the step.
func (s *State) applyLateEffect(e Event, f LateEffectFound) {
	st := s.opened(f.Step, rootScope, e.At)
	if st.Outcome == Open {
		st.Outcome, st.EndedAt, st.Effect = Unknown, e.At, string(workflow.AtMostOnce)
	}
	st.Output = s.took(f.Output)
	st.Doubt, st.LateEffect = true, true
	if u := s.undo(f.Step); u != nil {
		u.Late = true
	}
}
