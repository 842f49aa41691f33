package ringi

import (
	"fmt"

	"github.com/ringiflow/ringi/workflow"
)

// cancel undoes what the run did and ends it. Past the pivot that is no
// longer possible; whether an irreversible call is out may stand only in its
// task row, where a lost write brings the truth.
func (t *turn) cancel(a Cancel) (Answer, error) {
	if t.s.Cancel != nil || t.s.Unwind != nil {
		return Answer{Outcome: Repeated, By: "the run is being undone"}, nil
	}
	if step := t.pivotFor(); step != "" {
		return Answer{}, refuse(CodePastPivot, fmt.Sprintf("step %s cannot be undone and may have begun: run %s only goes forward", step, t.s.Run), "let it end, or terminate it and take care of its effects yourself")
	}
	if t.s.Paused != nil {
		t.emit(RunResumed{By: t.cmd.Actor.ID, Reason: "cancelled"})
	}
	t.emit(CancelRequested{By: t.cmd.Actor.ID, Reason: clip(a.Reason)})
	t.startUnwind(Cause{Code: codeCancelled, Message: clip(a.Reason)}, Cancelled)
	return Answer{Outcome: Accepted}, nil
}

// pivotFor returns the irreversible step that keeps a cancel from being done.
// A call that nobody has begun, or was ever handed, can still be taken back.
func (t *turn) pivotFor() string {
	for _, st := range t.s.Steps {
		if !st.Irreversible || !st.mayHaveEffect() {
			continue
		}
		if st.Outcome != Open || st.Doubt || st.Call == nil || workflow.Effect(st.Effect).NeedsBegin() {
			return st.ID
		}
		if t.cmd.Lost != nil {
			if seen, ok := t.cmd.Lost.Tasks[st.Call.Lane]; ok && TokenSeq(seen.Token) == st.Call.Seq && seen.Token != st.Call.Seq<<16 {
				return st.ID
			}
		}
	}
	return ""
}

func (t *turn) pause(a Pause) (Answer, error) {
	if t.s.Paused != nil {
		return Answer{Outcome: Repeated, By: t.s.Paused.By}, nil
	}
	t.emit(RunPaused{By: t.cmd.Actor.ID, Reason: clip(a.Reason)})
	return Answer{Outcome: Accepted}, nil
}

func (t *turn) resumePaused(a Resume) (Answer, error) {
	if t.s.Paused == nil {
		return Answer{Outcome: Repeated}, nil
	}
	t.emit(RunResumed{By: t.cmd.Actor.ID, Reason: clip(a.Reason)})
	return Answer{Outcome: Accepted}, nil
}

// terminate ends the run at once. Nothing is undone: what is left standing is
// written down instead.
func (t *turn) terminate(a Terminate) (Answer, error) {
	if a.Reason == "" {
		return Answer{}, refuse(CodeInvalid, "terminating a run needs a reason: it leaves effects standing", "say why with --reason")
	}
	t.end(RunEnded{
		Status: Terminated, EffectsLeft: EffectsLeft(t.s), By: t.cmd.Actor.ID, Reason: clip(a.Reason),
		Cause: &Cause{Code: "terminated", Message: clip(a.Reason)},
	})
	return Answer{Outcome: Accepted}, nil
}
