package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/expr"
)

// Check finds what a file says of a definition that has no such step, activity
// or person: a scenario with a slip of the pen would otherwise test nothing.
func (f *File) Check(def *workflow.Definition) []Problem {
	c := &checker{reader: reader{file: f.Name}, people: slices.Sorted(maps.Keys(f.people))}
	c.learn(def)
	for _, s := range f.Scenarios {
		c.learnMoves(s.moves)
	}
	seen := map[Place]bool{} // what stands at the top is part of every scenario
	for _, s := range f.Scenarios {
		c.scripts(s.answers, "activity", c.activities, seen)
		c.scripts(s.steps, "call", c.calls, seen)
		for _, m := range s.moves {
			c.move(m)
		}
		c.expectation(s.expect)
	}
	return c.problems
}

// A checker knows the names of a definition.
type checker struct {
	reader
	people     []string
	steps      []string
	calls      []string // steps and their probes and undos
	activities []string
}

func (c *checker) learn(def *workflow.Definition) {
	blocks := []*workflow.Block{def.Root}
	if def.OnFailure != nil {
		blocks = append(blocks, def.OnFailure)
	}
	for len(blocks) > 0 {
		block := blocks[0]
		blocks = blocks[1:]
		for _, s := range block.Steps {
			c.steps = append(c.steps, s.ID)
			c.learnCalls(s)
			blocks = append(blocks, s.Blocks()...)
		}
	}
}

func (c *checker) learnCalls(s *workflow.Step) {
	if s.Activity == nil {
		return
	}
	c.calls = append(c.calls, s.ID)
	c.activities = append(c.activities, s.Activity.Name)
	if call := s.Activity.Probe; call != nil {
		c.calls = append(c.calls, s.ID+"/probe")
		c.activities = append(c.activities, call.Name)
	}
	if call := s.Activity.Compensate; call != nil {
		c.calls = append(c.calls, s.ID+"/undo")
		c.activities = append(c.activities, call.Name)
	}
}

// learnMoves takes in the activities that people of the scenarios order.
func (c *checker) learnMoves(moves []move) {
	for _, m := range moves {
		if m.resolve.Activity != "" {
			c.activities = append(c.activities, m.resolve.Activity)
		}
	}
}

func (c *checker) known(at Place, name, what string, names []string) {
	if name == "" || slices.Contains(names, name) {
		return
	}
	suggestion := "there is " + strings.Join(names, ", ")
	if near := expr.Nearest(name, names); near != "" {
		suggestion = "did you mean " + near + "?"
	} else if len(names) == 0 {
		suggestion = "there is none"
	}
	c.report(at, fmt.Sprintf("there is no %s %q", what, name), suggestion)
}

func (c *checker) scripts(scripts map[string]script, what string, names []string, seen map[Place]bool) {
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		if at := scripts[name].at; !seen[at] {
			seen[at] = true
			c.known(at, name, what, names)
		}
	}
}

func (c *checker) move(m move) {
	c.known(m.at, m.step, "step", c.steps)
	if len(c.people) > 0 { // without people, everybody is known and belongs to no group
		c.known(m.at, m.by, "person", c.people)
	}
	if codes := refusals(); m.refused != "" {
		c.known(m.at, m.refused, "code", codes)
	}
	c.expectation(m.expect)
}

// refusals are the codes with which a run refuses a command.
func refusals() []string {
	return []string{
		string(ringi.CodeInvalid), string(ringi.CodeForbidden), string(ringi.CodeNotFound),
		string(ringi.CodeAlreadyDecided), string(ringi.CodeVersionChanged), string(ringi.CodePastPivot), string(ringi.CodeFinal),
	}
}

func (c *checker) expectation(e *expectation) {
	if e == nil {
		return
	}
	for _, p := range e.path {
		c.known(p.at, p.step, "step", c.steps)
	}
	for _, s := range e.steps {
		c.known(s.at, s.step, "step", c.steps)
	}
	for _, w := range slices.Concat(e.undone, e.left) {
		c.known(w.at, w.text, "step", c.steps)
	}
	for _, w := range e.calls {
		c.known(w.at, w.activity, "activity", c.activities)
	}
}
