package build

import (
	"encoding/json"
	"fmt"

	"github.com/ringiflow/ringi/workflow"
)

// A Definition is a whole process. The zero value of a field leaves its key out.
type Definition struct {
	Name        string
	Title       string // may hold expressions over input
	Description string
	Labels      map[string]string
	Input       Schema
	StartKey    string // over input: one key, one run
	Queue       string // of activities that name none
	Timeouts    Timeouts
	Retry       Retry
	Deadline    Deadline
	Steps       []Step
	Output      any    // JSON; texts in it may hold expressions
	OnFailure   []Step // when the run has failed and everything is undone
}

// Build returns the definition, checked like a file, or its problems. They name
// places in the JSON that Source returns.
func (d Definition) Build() (*workflow.Definition, []workflow.Problem) {
	src, err := d.Source()
	if err != nil {
		return nil, []workflow.Problem{{
			File: d.Name + ".json", Line: 1, Column: 1, ID: "RG0004", Severity: workflow.SeverityError,
			Message: err.Error(), Suggestion: "use values that JSON can hold",
		}}
	}
	return workflow.Parse(d.Name+".json", src)
}

// Source returns the document as canonical JSON, unchecked: what one publishes.
// It is an error if a value is none that JSON can hold.
func (d Definition) Source() (json.RawMessage, error) {
	doc := object{"ringi": "v1"}
	doc.text("name", d.Name)
	doc.text("title", d.Title)
	doc.text("description", d.Description)
	if len(d.Labels) > 0 {
		doc["labels"] = d.Labels
	}
	doc.schema("input", d.Input)
	if d.StartKey != "" {
		doc["start"] = object{"key": d.StartKey}
	}
	defaults := object{}
	defaults.text("queue", d.Queue)
	defaults.inner("timeouts", d.Timeouts.object())
	defaults.inner("retry", d.Retry.object())
	doc.inner("defaults", defaults)
	deadline := object{}
	deadline.span("after", d.Deadline.After)
	deadline.text("then", d.Deadline.Then)
	doc.inner("deadline", deadline)
	doc["steps"] = steps(d.Steps)
	doc.value("output", d.Output)
	if len(d.OnFailure) > 0 {
		doc["on_failure"] = object{"steps": steps(d.OnFailure)}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("the definition %s is not JSON: %w", d.Name, err)
	}
	return workflow.Canonical(raw)
}

// A Deadline ends a run that takes too long.
type Deadline struct {
	After Duration
	Then  string // "compensate" (the default) or "incident"
}

// Timeouts bound a step; zero leaves a default.
type Timeouts struct{ Attempt, Total, Queue, Heartbeat Duration }

func (t Timeouts) object() object {
	o := object{}
	o.span("attempt", t.Attempt)
	o.span("total", t.Total)
	o.span("queue", t.Queue)
	o.span("heartbeat", t.Heartbeat)
	return o
}

// Retry says how often and how far apart attempts are made; zero leaves a default.
type Retry struct {
	Attempts     int // with the first
	Initial, Max Duration
	Factor       float64  // growth of the pause, from 1
	StopOn       []string // failure codes after which no further attempt is made
}

func (r Retry) object() object {
	o, backoff := object{}, object{}
	if r.Attempts != 0 {
		o["attempts"] = r.Attempts
	}
	backoff.span("initial", r.Initial)
	if r.Factor != 0 {
		backoff["factor"] = r.Factor
	}
	backoff.span("max", r.Max)
	o.inner("backoff", backoff)
	if len(r.StopOn) > 0 {
		o["stop_on"] = r.StopOn
	}
	return o
}

// A Duration is a length of time as a definition writes it: one number and one
// unit. That is more than a time.Duration knows: 72h and 3d are equally long and
// not the same text, and the digest is of the text.
type Duration struct {
	n    int64
	unit string
}

// Milliseconds is a Duration of n ms.
func Milliseconds(n int64) Duration { return Duration{n, "ms"} }

// Seconds is a Duration of n s.
func Seconds(n int64) Duration { return Duration{n, "s"} }

// Minutes is a Duration of n m.
func Minutes(n int64) Duration { return Duration{n, "m"} }

// Hours is a Duration of n h.
func Hours(n int64) Duration { return Duration{n, "h"} }

// Days is a Duration of n d; a day is 24 hours.
func Days(n int64) Duration { return Duration{n, "d"} }

// String writes the duration as a definition does; "" for the zero value.
func (d Duration) String() string {
	if d.unit == "" {
		return ""
	}
	return fmt.Sprintf("%d%s", d.n, d.unit)
}

// Fields are an object by its members: any JSON values, whose texts may hold
// expressions.
type Fields map[string]any

// Expr is a value that is one expression: Expr("input.amount") is
// "${ input.amount }". It keeps the type that the expression yields.
func Expr(expression string) string { return "${ " + expression + " }" }

// object is a mapping of the document. What is empty is left out.
type object map[string]any

func (o object) text(key, text string) {
	if text != "" {
		o[key] = text
	}
}

func (o object) span(key string, d Duration) { o.text(key, d.String()) }

func (o object) value(key string, v any) {
	if v != nil {
		o[key] = v
	}
}

func (o object) inner(key string, inner object) {
	if len(inner) > 0 {
		o[key] = inner
	}
}

func (o object) schema(key string, s Schema) {
	if s.doc != nil {
		o[key] = s.doc
	}
}
