package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// A Chart is what is drawn of a definition. It is immutable and may be used by
// any number of goroutines.
type Chart struct {
	name        string
	title       string
	description string
	facts       []string // what holds for the whole run
	input       string   // the fields of the input
	output      string   // the fields of the output
	steps       []step
	onFailure   []step
}

// A step is a box with what hangs on it.
type step struct {
	id       string
	kind     string // the verb
	title    string // for people; may be empty
	head     string // what the verb does, on one line
	notes    []string
	when     string // the condition under which it runs; empty for always
	undo     string // what undoes it; empty for nothing
	pivot    bool   // there is no way back from here
	ends     bool   // nothing follows: the run or the branch has ended
	branches []branch
	catches  []branch
}

// A branch is a list of steps inside a step.
type branch struct {
	name  string // of the block, unique in its step
	label string // why the branch is taken
	steps []step
}

// ends reports whether nothing follows the branch.
func (b branch) ends() bool { return len(b.steps) > 0 && b.steps[len(b.steps)-1].ends }

// Of returns the chart of a definition that was parsed without errors.
func Of(d *workflow.Definition) *Chart {
	c := &Chart{name: d.Name, description: oneLine(d.Description), steps: stepsOf(d.Root), onFailure: stepsOf(d.OnFailure)}
	if d.Title != nil {
		c.title = text(d.Title)
	}
	if d.StartKey != nil {
		c.facts = append(c.facts, "one run for each "+text(d.StartKey))
	}
	if d.Deadline != nil {
		then := "everything is undone"
		if d.Deadline.Then == "incident" {
			then = "a person is asked"
		}
		c.facts = append(c.facts, fmt.Sprintf("must end within %s, else %s", span(d.Deadline.After), then))
	}
	c.input = inputFields(d.Input)
	if d.Output != nil {
		c.output = memberNames(d.Output)
	}
	return c
}

// inputFields lists the fields of the input; those that may be missing have a
// question mark.
func inputFields(s *workflow.Schema) string {
	var doc struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(s.Source(), &doc) != nil {
		return "" // a schema that is true or false
	}
	names := slices.Clone(doc.Required)
	var optional []string
	for name := range doc.Properties {
		if !slices.Contains(names, name) {
			optional = append(optional, name+"?")
		}
	}
	slices.Sort(optional)
	return strings.Join(append(names, optional...), ", ")
}

// memberNames lists the members of a value that is an object; any other is
// shown as it is.
func memberNames(v *workflow.Value) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(v.Source()), &object) != nil {
		return text(v)
	}
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// text is a value as a person reads it: a constant text without its quotes.
func text(v *workflow.Value) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(v.Source()), &s) == nil {
		return oneLine(s)
	}
	return oneLine(v.Source())
}

// oneLine is text without line breaks, runs of blanks and control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// span writes a duration as definitions do.
func span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
