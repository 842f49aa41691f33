package ringi

import "github.com/ringiflow/ringi/workflow"

// env is what expressions see at this moment of the turn.
func (t *turn) env() *workflow.Env {
	e := &workflow.Env{
		Input: t.s.Input,
		Steps: make(map[string]workflow.StepEnv, len(t.s.Steps)),
		Vars:  t.s.Vars,
		Now:   t.cmd.At,
		Run: workflow.RunEnv{
			ID: string(t.s.Run), Key: t.s.Key, Requester: t.s.Requester, StartedAt: t.s.StartedAt,
		},
	}
	for _, st := range t.s.Steps {
		e.Steps[st.ID] = workflow.StepEnv{
			Output: st.Output, Outcome: string(st.Outcome), Error: errorEnv(st.Error), Attempts: st.Attempts,
		}
	}
	return e
}

// envIn is env for a step of a scope: inside a catch the caught error exists,
// inside on_failure the cause of the unwinding.
func (t *turn) envIn(scope string) *workflow.Env {
	e := t.env()
	e.Error = errorEnv(t.errorIn(scope))
	return e
}

func (t *turn) errorIn(scope string) *Cause {
	for sc := t.s.scope(scope); sc != nil; sc = t.s.scope(parentScope(sc.Path)) {
		if sc.Branch == branchOnFailure && t.s.Unwind != nil {
			return &t.s.Unwind.Cause
		}
		if st := t.s.step(sc.Step); st != nil && st.Caught != "" && st.Caught == sc.Branch {
			return st.Error
		}
		if sc.Path == rootScope {
			break
		}
	}
	return nil
}

func errorEnv(c *Cause) *workflow.ErrorEnv {
	if c == nil {
		return nil
	}
	return &workflow.ErrorEnv{Code: c.Code, Message: c.Message, Step: c.Step}
}
