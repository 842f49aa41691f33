package expr

import (
	"cmp"
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
	env     *Env
	types   *Scope
	decoded map[string]ref.Val // by path: roots, steps.<id>.output, vars.<name>
}

// once returns the value of a path, read when it is first asked for: a loop may
// ask a thousand times.
func (f *frame) once(path string, read func() ref.Val) ref.Val {
	if v, found := f.decoded[path]; found {
		return v
	}
	v := read()
	if f.decoded == nil {
		f.decoded = map[string]ref.Val{}
	}
	f.decoded[path] = v
	return v
}

// ResolveName returns a root; the evaluator calls it with names that the
// checker has let through, and with names of its own.
func (f *frame) ResolveName(name string) (any, bool) {
	switch name {
	case "input":
		return f.document(name, f.env.Input, f.types.Input)
	case "event":
		return f.document(name, f.env.Event, nil)
	case "message":
		return f.document(name, f.env.Message, nil)
	case "steps":
		return &membersVal{m: stepsRoot{f}}, true
	case "vars":
		return &membersVal{m: varsRoot{f}}, true
	case "run":
		return &membersVal{m: runRoot{&f.env.Run}}, true
	case "now":
		return instant(f.env.Now), true
	case "step":
		return &objectVal{o: &exact.Object{Keys: []string{"key"}, Vals: []any{f.env.StepKey}}}, f.env.StepKey != ""
	case "error":
		return errorVal(f.env.Error, true), f.env.Error != nil
	}
	return nil, false
}

// document is a root that is one document.
func (f *frame) document(name string, doc json.RawMessage, t *Type) (any, bool) {
	if doc == nil {
		return nil, false
	}
	return f.once(name, func() ref.Val { return decode(doc, t) }), true
}

// Parent is nil: there is no outer scope.
func (f *frame) Parent() cel.Activation { return nil }

func instant(t time.Time) ref.Val { return types.Timestamp{Time: t.UTC()} }

// decode makes a value of a document; one that cannot be read is an error where
// it is used.
func decode(doc json.RawMessage, t *Type) ref.Val {
	if len(doc) > 0 && doc[0] == '{' {
		return &documentVal{text: string(doc), t: t}
	}
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
type stepsRoot struct{ f *frame }

func (s stepsRoot) find(id string) (ref.Val, bool) {
	env, found := s.f.env.Steps[id]
	if !found {
		env.Outcome = "not_run"
	}
	return &membersVal{m: stepRoot{s.f, id, env}}, true
}

func (s stepsRoot) list() []string {
	return slices.SortedFunc(maps.Keys(s.f.env.Steps), exact.CompareKeys)
}

// stepRoot is steps.<id>. Its error has empty texts while there is none.
type stepRoot struct {
	f  *frame
	id string
	StepEnv
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
		return s.f.once("steps."+s.id, func() ref.Val { return decode(s.Output, s.f.types.Steps[s.id].Output) }), true
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
type varsRoot struct{ f *frame }

func (v varsRoot) find(name string) (ref.Val, bool) {
	doc, found := v.f.env.Vars[name]
	if !found {
		return nil, false
	}
	return v.f.once("vars."+name, func() ref.Val { return decode(doc, cmp.Or(v.f.types.Vars[name], v.f.types.MaybeVars[name])) }), true
}

func (v varsRoot) list() []string {
	return slices.SortedFunc(maps.Keys(v.f.env.Vars), exact.CompareKeys)
}

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
