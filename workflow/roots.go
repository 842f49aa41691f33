package workflow

import (
	"maps"
	"slices"
)

// roots says which names exist where an expression stands. It must not change
// once an expression was compiled with it: the compiled expression keeps it.
type roots struct {
	input     *typ
	steps     map[string]stepType
	vars      map[string]*typ
	stepKey   bool // step.key exists
	errorRoot bool // error exists
	event     bool // event exists
	startOnly bool // only input exists: a start's key and a run's title
}

// A stepType is what is known of steps.<id>.
type stepType struct {
	output *typ // nil is any
	maybe  bool // it may not have run: its outcome can be read, its output demands .?
	later  bool // it stands later in the file, or beside it: any use is a problem
}

// An exprProblem is a finding about one expression.
type exprProblem struct {
	offset     int    // bytes into the text that was given
	kind       string // one of the problem constants
	message    string
	suggestion string // a concrete replacement; "" when there is none
}

// The kinds of problems in expressions.
const (
	problemSyntax       = "syntax"        // the text is not an expression
	problemUnknownRoot  = "unknown_root"  // the first name of a path does not exist here
	problemUnknownStep  = "unknown_step"  // steps.<id> names no step
	problemUnknownField = "unknown_field" // the schema has no such field
	problemUnknownFunc  = "unknown_function"
	problemType         = "type"          // values of kinds that do not go together
	problemMaybeMissing = "maybe_missing" // an optional field is read as if it were there
	problemMaybeNotRun  = "maybe_not_run" // the output of a step that may not have run
	problemLaterStep    = "later_step"    // a step that has not run yet
	problemNotBool      = "not_bool"      // a condition that is not true or false
	problemNotText      = "not_text"      // null, or a value that may be missing, inside a text
	problemTooLong      = "too_long"
	problemTooDeep      = "too_deep"
	problemInterpolated = "interpolated" // ${ } inside a condition
	problemNumber       = "number"       // a numeral that cannot be kept exactly
)

// root returns the type of a root by its name.
func (r *roots) root(name string) (*typ, bool) {
	if name == "input" {
		return orAny(r.input), true
	}
	if r.startOnly {
		return nil, false
	}
	text := func(names ...string) *typ {
		fields := make(map[string]*typ, len(names))
		for _, n := range names {
			fields[n] = textTyp()
		}
		return objectTyp(fields)
	}
	switch name {
	case "steps":
		return anyTyp(), true
	case "vars":
		return objectTyp(r.vars), true
	case "run":
		t := text("id", "key", "requester")
		t.fields["started_at"] = field{typ: timeTyp()}
		return t, true
	case "now":
		return timeTyp(), true
	case "step":
		return text("key"), r.stepKey
	case "error":
		return text("code", "message", "step"), r.errorRoot
	case "event":
		return anyTyp(), r.event
	}
	return nil, false
}

// names lists the roots that exist.
func (r *roots) names() []string {
	var out []string
	for _, n := range [...]string{"input", "steps", "vars", "run", "now", "step", "error", "event"} {
		if _, found := r.root(n); found {
			out = append(out, n)
		}
	}
	return out
}

// step returns the type of steps.<id> as an object.
func (s stepType) object() *typ {
	t := objectTyp(map[string]*typ{
		"outcome":  textTyp(),
		"attempts": numberTyp(),
		"error":    objectTyp(map[string]*typ{"code": textTyp(), "message": textTyp()}),
	})
	t.fields["output"] = field{typ: orAny(s.output), optional: s.maybe}
	return t
}

func orAny(t *typ) *typ {
	if t == nil {
		return anyTyp()
	}
	return t
}

// nearest returns the name that a misspelt one probably stands for, or "".
func nearest(name string, names []string) string {
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
func (t *typ) fieldNames() []string { return slices.Sorted(maps.Keys(t.fields)) }
