package expr

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/ringiflow/ringi/workflow/exact"
)

// frame is the Env of one evaluation. It decodes a root when the expression
// first asks for it and keeps it, so that the expressions of one value read
// their documents once. It belongs to one goroutine.
type frame struct {
	env   *Env
	types *Scope
	roots map[string]ref.Val
}

// ResolveName returns a root; the evaluator calls it with names that the
// compiler has let through.
func (f *frame) ResolveName(name string) (any, bool) {
	if v, found := f.roots[name]; found {
		return v, true
	}
	v, found := f.root(name)
	if found {
		if f.roots == nil {
			f.roots = make(map[string]ref.Val, 4)
		}
		f.roots[name] = v
	}
	return v, found
}

// Parent is nil: there is no outer scope.
func (f *frame) Parent() cel.Activation { return nil }

func (f *frame) root(name string) (ref.Val, bool) {
	switch name {
	case "input":
		return decode(f.env.Input, f.types.Input), f.env.Input != nil
	case "steps":
		return &membersVal{m: stepsRoot{f.env.Steps, f.types.Steps}}, true
	case "vars":
		return &membersVal{m: varsRoot{f.env.Vars, f.types.Vars}}, true
	case "run":
		return &membersVal{m: runRoot{&f.env.Run}}, true
	case "now":
		return instant(f.env.Now), true
	case "step":
		return &objectVal{o: &exact.Object{Keys: []string{"key"}, Vals: []any{f.env.StepKey}}}, f.env.StepKey != ""
	case "error":
		if f.env.Error == nil {
			return nil, false
		}
		return errorVal(f.env.Error, true), true
	case "event":
		return decode(f.env.Event, nil), f.env.Event != nil
	}
	return nil, false
}

func instant(t time.Time) ref.Val { return types.Timestamp{Time: t.UTC()} }

// decode reads a document; one that cannot be read is an error where it is used.
func decode(doc json.RawMessage, t *Type) ref.Val {
	v, err := exact.Read(string(doc))
	if err != nil {
		return fail("%v", err)
	}
	return wrap(v, t)
}

// errorVal is an error as an object; of a step's own error its id is not said again.
func errorVal(e *ErrorEnv, withStep bool) ref.Val {
	o := &exact.Object{Keys: []string{"code", "message"}, Vals: []any{"", ""}}
	if withStep {
		o = &exact.Object{Keys: []string{"code", "message", "step"}, Vals: []any{"", "", ""}}
	}
	if e != nil {
		o.Vals[0], o.Vals[1] = e.Code, e.Message
		if withStep {
			o.Vals[2] = e.Step
		}
	}
	return &objectVal{o: o}
}

// stepsRoot is steps. Every name is there: which ones may be used was decided
// at compile time, and a step without a record has not run.
type stepsRoot struct {
	records map[string]StepEnv
	types   map[string]Step
}

func (s stepsRoot) find(id string) (ref.Val, bool) {
	env, found := s.records[id]
	if !found {
		env.Outcome = "not_run"
	}
	return &membersVal{m: stepRoot{env, s.types[id].Output}}, true
}

func (s stepsRoot) list() []string { return slices.SortedFunc(maps.Keys(s.records), exact.CompareKeys) }

// stepRoot is steps.<id>. Its error has empty texts while there is none.
type stepRoot struct {
	StepEnv
	output *Type
}

func (s stepRoot) find(name string) (ref.Val, bool) {
	switch name {
	case "outcome":
		return types.String(s.Outcome), true
	case "attempts":
		return numOf(int64(s.Attempts)), true
	case "error":
		return errorVal(s.Error, false), true
	case "output":
		if s.Output == nil {
			return nil, false
		}
		return decode(s.Output, s.output), true
	}
	return nil, false
}

func (s stepRoot) list() []string {
	if s.Output == nil {
		return []string{"attempts", "error", "outcome"}
	}
	return []string{"attempts", "error", "outcome", "output"}
}

// varsRoot is vars.
type varsRoot struct {
	values map[string]json.RawMessage
	types  map[string]*Type
}

func (v varsRoot) find(name string) (ref.Val, bool) {
	doc, found := v.values[name]
	if !found {
		return nil, false
	}
	return decode(doc, v.types[name]), true
}

func (v varsRoot) list() []string { return slices.SortedFunc(maps.Keys(v.values), exact.CompareKeys) }

// runRoot is run.
type runRoot struct{ *RunEnv }

func (r runRoot) find(name string) (ref.Val, bool) {
	switch name {
	case "id":
		return types.String(r.ID), true
	case "key":
		return types.String(r.Key), true
	case "requester":
		return types.String(r.Requester), true
	case "started_at":
		return instant(r.StartedAt), true
	}
	return nil, false
}

func (r runRoot) list() []string { return []string{"id", "key", "requester", "started_at"} }
