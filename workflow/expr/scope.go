package expr

import (
	"maps"
	"slices"
)

// A Scope says which names exist where an expression stands. It must not
// change once an expression was compiled with it: the expression keeps it.
type Scope struct {
	Input     *Type            // nil is any
	Steps     map[string]Step  // the declared steps, by id
	Vars      map[string]*Type // the variables that are set by then
	MaybeVars map[string]*Type // the variables that may be set by then: reading one demands .?
	StepKey   bool             // step.key exists
	Error     bool             // error exists
	Event     bool             // event exists
	StartOnly bool             // only input exists, as for a start's key
	Message   *Type            // only message exists, of this type: what a broker brought; else nil
}

// A Step is what is known of steps.<id>.
type Step struct {
	Output *Type // nil is any
	Maybe  bool  // it may not have run: its outcome can be read, its output demands .?
	Later  bool  // it stands later in the file, or beside it: any use is a problem
}

// A Problem is a finding about one expression.
type Problem struct {
	Offset     int    // bytes into the text that was given
	Kind       string // one of the Problem constants
	Message    string // what is wrong, in words
	Suggestion string // a concrete replacement; "" when there is none
}

// The kinds of problems in expressions.
const (
	ProblemSyntax          = "syntax"           // the text is not an expression
	ProblemUnknownRoot     = "unknown_root"     // the first name of a path does not exist here
	ProblemUnknownStep     = "unknown_step"     // steps.<id> names no step
	ProblemUnknownField    = "unknown_field"    // the schema has no such field
	ProblemUnknownFunction = "unknown_function" // there is no such function
	ProblemType            = "type"             // values of kinds that do not go together
	ProblemMaybeMissing    = "maybe_missing"    // an optional field is read as if it were there
	ProblemMaybeNotRun     = "maybe_not_run"    // the output of a step that may not have run
	ProblemLaterStep       = "later_step"       // a step that has not run yet
	ProblemNotBool         = "not_bool"         // a condition that is not true or false
	ProblemNotText         = "not_text"         // null inside a text
	ProblemTooLong         = "too_long"         // more than 4 KiB
	ProblemTooDeep         = "too_deep"         // nested deeper than 32
	ProblemInterpolated    = "interpolated"     // ${ } inside a condition
	ProblemNumber          = "number"           // a numeral that cannot be kept exactly
)

// root returns the type of a root by its name.
func (r *Scope) root(name string) (*Type, bool) {
	if r.Message != nil {
		return r.Message, name == "message"
	}
	if name == "input" {
		return orAny(r.Input), true
	}
	if r.StartOnly {
		return nil, false
	}
	text := func(names ...string) *Type {
		fields := make(map[string]*Type, len(names))
		for _, n := range names {
			fields[n] = Text()
		}
		return Fields(fields)
	}
	switch name {
	case "steps":
		return Any(), true
	case "vars":
		t := Fields(r.Vars)
		for name, v := range r.MaybeVars {
			t.fields[name] = field{typ: v, optional: true}
		}
		return t, true
	case "run":
		t := text("id", "key", "requester")
		t.fields["started_at"] = field{typ: Time()}
		return t, true
	case "now":
		return Time(), true
	case "step":
		return text("key"), r.StepKey
	case "error":
		return text("code", "message", "step"), r.Error
	case "event":
		return Any(), r.Event
	}
	return nil, false
}

// names lists the roots that exist.
func (r *Scope) names() []string {
	var out []string
	for _, n := range [...]string{"input", "steps", "vars", "run", "now", "step", "error", "event", "message"} {
		if _, found := r.root(n); found {
			out = append(out, n)
		}
	}
	return out
}

// step returns the type of steps.<id> as an object.
func (s Step) object() *Type {
	t := Fields(map[string]*Type{
		"outcome":  Text(),
		"attempts": Number(),
		"error":    Fields(map[string]*Type{"code": Text(), "message": Text()}),
	})
	t.fields["output"] = field{typ: orAny(s.Output), optional: s.Maybe}
	return t
}

func orAny(t *Type) *Type {
	if t == nil {
		return Any()
	}
	return t
}

// Nearest returns the name that a misspelt one probably stands for, or "".
func Nearest(name string, names []string) string {
	best, limit := "", max(1, len(name)/3)+1
	for _, n := range names {
		if d := distance(name, n); d < limit {
			best, limit = n, d
		}
	}
	return best
}

// distance counts the letters to insert, remove, change or swap between two
// words. Words are short; longer ones than 64 are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var rows [3][65]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	before, previous, current := &rows[2], &rows[0], &rows[1]
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

// fieldNames lists the fields of an object type in order.
func (t *Type) fieldNames() []string { return slices.Sorted(maps.Keys(t.fields)) }
