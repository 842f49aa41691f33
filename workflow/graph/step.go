package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// stepsOf reads a block; nil has no steps.
func stepsOf(b *workflow.Block) []step {
	if b == nil {
		return nil
	}
	out := make([]step, len(b.Steps))
	for i, s := range b.Steps {
		out[i] = stepOf(s)
	}
	return out
}

func stepOf(s *workflow.Step) step {
	out := step{id: s.ID, kind: string(s.Verb)}
	if s.Title != nil {
		out.title = text(s.Title)
	}
	if s.When != nil {
		out.when = oneLine(s.When.Source())
	}
	switch {
	case s.Activity != nil:
		out.activity(s)
	case s.Approval != nil:
		out.approval(s.Approval)
	case s.Wait != nil:
		out.wait(s.Wait)
	case s.Choose != nil:
		out.choose(s.Choose)
	case s.Parallel != nil:
		out.head = counted(len(s.Parallel.Branches), "branch", "branches") + " side by side"
		for _, b := range s.Parallel.Branches {
			out.branches = append(out.branches, branch{b.Branch, b.Branch, stepsOf(b)})
		}
	case s.Do != nil:
		out.branches = []branch{{"do", "", stepsOf(s.Do)}}
	default:
		out.small(s)
	}
	for i, c := range s.Catch {
		out.catches = append(out.catches, branch{fmt.Sprintf("catch_%d", i), "on " + strings.Join(c.On, ", "), stepsOf(c.Do)})
	}
	out.ends = out.when == "" && ends(out)
	return out
}

// ends reports whether a step without a condition always ends what it stands in.
func ends(s step) bool {
	for _, c := range s.catches {
		if !c.ends() {
			return false
		}
	}
	switch s.kind {
	case string(workflow.VerbFail), string(workflow.VerbFinish):
		return true
	case string(workflow.VerbDo):
		return s.branches[0].ends()
	case string(workflow.VerbChoose):
		last := len(s.branches) - 1
		return last >= 0 && s.branches[last].name == "else" && !slices.ContainsFunc(s.branches, func(b branch) bool { return !b.ends() })
	}
	return false
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// activity describes a call with its contract.
func (out *step) activity(s *workflow.Step) {
	a := s.Activity
	out.head = callText(a.Name, a.With)
	out.pivot = a.Irreversible
	out.notes = append(out.notes, effectText(s))
	if a.Queue != workflow.DefaultQueue && s.Verb == workflow.VerbActivity {
		out.notes = append(out.notes, "by workers of "+a.Queue)
	}
	if a.Irreversible {
		out.notes = append(out.notes, "cannot be undone")
	}
	if a.Compensate != nil {
		out.undo = callText(a.Compensate.Name, a.Compensate.With)
	}
}

// effectText says what the effect can bear when an answer is lost.
func effectText(s *workflow.Step) string {
	a := s.Activity
	switch a.Effect {
	case workflow.Pure:
		return "pure: changes nothing"
	case workflow.Idempotent:
		return "idempotent: repeated under its key"
	case workflow.Probeable:
		return "probeable: asks " + callText(a.Probe.Name, a.Probe.With)
	}
	return "at most once: if in doubt, " + map[workflow.OnUnknown]string{
		workflow.UnknownIncident:         "a person decides",
		workflow.UnknownAssumeApplied:    "taken for done",
		workflow.UnknownAssumeNotApplied: "taken for not done",
		workflow.UnknownCompensate:       "everything is undone",
		workflow.UnknownFail:             "it has failed",
	}[a.OnUnknown]
}

// callText names what is called: an activity, or the method and address of a
// request over HTTP.
func callText(name string, with *workflow.Value) string {
	var request struct{ Method, URL string }
	if with != nil && strings.HasPrefix(name, "ringi.") && json.Unmarshal([]byte(with.Source()), &request) == nil && request.URL != "" {
		return oneLine(request.Method + " " + request.URL)
	}
	return oneLine(name)
}

// approval describes who is asked.
func (out *step) approval(a *workflow.Approval) {
	out.head = text(a.Title)
	for _, l := range a.Ask {
		from := make([]string, len(l.From))
		for i, v := range l.From {
			from[i] = text(v)
		}
		who := fmt.Sprintf("%d of %s", l.Quorum, strings.Join(from, ", "))
		if len(a.Ask) > 1 || !strings.HasPrefix(l.Name, "lane ") {
			who = l.Name + ": " + who
		}
		out.notes = append(out.notes, oneLine(who))
	}
	if a.Risk != workflow.DefaultRisk {
		out.notes = append(out.notes, "risk: "+a.Risk)
	}
	then := "then it is rejected"
	if a.OnReject == "continue" {
		then = "a no goes on"
	}
	out.notes = append(out.notes, fmt.Sprintf("open for %s, %s", span(a.ExpireAfter), then))
}

func (out *step) wait(w *workflow.Wait) {
	switch {
	case w.Event != "":
		out.head = "event " + oneLine(w.Event)
		out.notes = append(out.notes, "of the key "+text(w.Key))
	case w.Until != nil:
		out.head = "until " + text(w.Until)
	default:
		out.head = "for " + span(w.For)
	}
	if w.Timeout > 0 {
		then := "it has failed"
		if w.Then == "continue" {
			then = "it goes on"
		}
		out.notes = append(out.notes, fmt.Sprintf("at most %s, then %s", span(w.Timeout), then))
	}
}

func (out *step) choose(c *workflow.Choose) {
	out.head = "the first that holds"
	for i, one := range c.Cases {
		out.branches = append(out.branches, branch{fmt.Sprintf("if_%d", i), "if " + oneLine(one.If.Source()), stepsOf(one.Do)})
	}
	if c.Else != nil {
		out.branches = append(out.branches, branch{"else", "else", stepsOf(c.Else)})
		return
	}
	out.branches = append(out.branches, branch{"none", "if none holds", nil})
}

// small describes the verbs that are one line.
func (out *step) small(s *workflow.Step) {
	switch {
	case s.Emit != nil:
		out.head = oneLine(s.Emit.Type)
		out.notes = append(out.notes, oneLine(s.Emit.AggregateType)+" "+text(s.Emit.AggregateID))
	case s.Fail != nil:
		out.head = oneLine(s.Fail.Code)
		if s.Fail.Message != nil {
			out.notes = append(out.notes, text(s.Fail.Message))
		}
	case s.Finish != nil:
		out.head = "the run has completed"
		if s.Finish.Output != nil {
			out.notes = append(out.notes, "output: "+memberNames(s.Finish.Output))
		}
	default:
		for _, v := range s.Set {
			out.notes = append(out.notes, oneLine(v.Name+" = "+text(v.Value)))
		}
	}
}
