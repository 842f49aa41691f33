package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// call returns the type of an operator or function.
func (c *checker) call(e ast.Expr) *typ {
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return c.logical(args, c.shown)
	case operators.LogicalOr:
		return c.logical(args, c.refuted)
	case operators.Conditional:
		return c.conditional(e, args)
	case operators.Equals, operators.NotEquals:
		return c.equality(e, args)
	case operators.In:
		return c.membership(args)
	case operators.Index:
		return c.index(e, args, false)
	case operators.OptIndex:
		return c.index(e, args, true)
	case operators.OptSelect:
		return c.optionalSelect(e, args)
	case operators.NotStrictlyFalse:
		c.infer(args[0])
		return boolTyp()
	}
	if t, ok := c.optionalFunction(e); ok {
		return t
	}
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	return c.function(e, call.FunctionName(), args)
}

// logical is && or ||: what the terms before say about presence holds in the
// terms after.
func (c *checker) logical(terms []ast.Expr, says func(ast.Expr) []string) *typ {
	before := c.present
	for _, term := range terms {
		c.boolean(term)
		c.assume(says(term))
	}
	c.present = before
	return boolTyp()
}

func (c *checker) boolean(e ast.Expr) {
	if t := c.infer(e); t.kind != kindBool && !t.unknown() {
		c.report(e, problemType, "", "%s is %s, not true or false", c.show(e), t.words())
	}
}

func (c *checker) assume(paths []string) {
	if len(paths) == 0 {
		return
	}
	after := maps.Clone(c.present)
	if after == nil {
		after = map[string]int{}
	}
	for _, p := range paths {
		after[p]++
	}
	c.present = after
}

// shown lists the paths that are there when e is true.
func (c *checker) shown(e ast.Expr) []string {
	switch e.Kind() {
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return []string{path(e)}
		}
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.LogicalAnd:
			var out []string
			for _, a := range call.Args() {
				out = append(out, c.shown(a)...)
			}
			return out
		case operators.LogicalNot:
			return c.refuted(call.Args()[0])
		case operators.Equals:
			return succeeded(call.Args()[0], call.Args()[1])
		}
	}
	return nil
}

// succeeded reads steps.x.outcome == "succeeded": then the step has an output.
func succeeded(a, b ast.Expr) []string {
	text, fixed := literalText(b)
	if !fixed {
		a = b
		text, _ = literalText(a)
	}
	step, isOutcome := strings.CutSuffix(path(a), ".outcome")
	if text == "succeeded" && isOutcome && strings.HasPrefix(step, "steps.") {
		return []string{step + ".output"}
	}
	return nil
}

// refuted lists the paths that are there when e is false.
func (c *checker) refuted(e ast.Expr) []string {
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.LogicalOr:
		var out []string
		for _, a := range call.Args() {
			out = append(out, c.refuted(a)...)
		}
		return out
	case operators.LogicalNot:
		return c.shown(call.Args()[0])
	case operators.NotEquals:
		return succeeded(call.Args()[0], call.Args()[1])
	}
	return nil
}

func (c *checker) conditional(e ast.Expr, args []ast.Expr) *typ {
	c.boolean(args[0])
	before := c.present
	c.assume(c.shown(args[0]))
	yes := c.infer(args[1])
	c.present = before
	c.assume(c.refuted(args[0]))
	no := c.infer(args[2])
	c.present = before
	if clash(yes, no) {
		c.report(e, problemType, "", "both results must be of one kind: %s is %s, %s is %s", c.show(args[1]), yes.words(), c.show(args[2]), no.words())
	}
	return join(yes, no)
}

// clash reports that two values can never be of one kind.
func clash(a, b *typ) bool {
	return !a.unknown() && !b.unknown() && a.kind != b.kind && a.kind != kindNull && b.kind != kindNull
}

func (c *checker) equality(e ast.Expr, args []ast.Expr) *typ {
	a, b := c.infer(args[0]), c.infer(args[1])
	if a.unknown() || b.unknown() || a.kind == b.kind {
		return boolTyp()
	}
	for i, t := range []*typ{a, b} {
		other := []*typ{b, a}[i]
		if other.kind == kindNull {
			c.report(e, problemType, "has("+c.show(args[i])+")", "%s is %s, never null; whether a field is there is asked with has()", c.show(args[i]), t.words())
			return boolTyp()
		}
		if t.kind == kindOptional {
			c.report(e, problemType, c.show(args[i])+".orValue(...)", "%s may be missing; say what to take instead before comparing it", c.show(args[i]))
			return boolTyp()
		}
	}
	c.mismatch(e, args, []*typ{a, b}, "can never be equal")
	return boolTyp()
}

// mismatch reports operands that do not go together.
func (c *checker) mismatch(e ast.Expr, args []ast.Expr, ts []*typ, trouble string) {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = c.show(a) + " is " + ts[i].words()
	}
	c.report(e, problemType, c.conversion(e, args, ts), "%s; %s", strings.Join(parts, ", "), trouble)
}

// conversion suggests how a text and a number can be brought together.
func (c *checker) conversion(e ast.Expr, args []ast.Expr, ts []*typ) string {
	if len(args) != 2 {
		return ""
	}
	name := spoken(e.AsCall().FunctionName())
	shown := []string{c.show(args[0]), c.show(args[1])}
	for i, t := range ts {
		other := ts[1-i]
		switch {
		case t.kind == kindOptional:
			shown[i] += ".orValue(...)"
		case name == "+" && other.kind == kindString && (t.kind == kindNumber || t.kind == kindBool || t.kind == kindTime):
			shown[i] = "string(" + shown[i] + ")"
		case t.kind == kindString && other.kind == kindNumber:
			shown[i] = asNumber(args[i], shown[i])
		case t.kind == kindString && other.kind == kindTime:
			shown[i] = "timestamp(" + shown[i] + ")"
		case t.kind == kindString && other.kind == kindDuration:
			shown[i] = "duration(" + shown[i] + ")"
		default:
			continue
		}
		return shown[0] + " " + name + " " + shown[1]
	}
	return ""
}

// asNumber writes a text as a number: a literal loses its quotes.
func asNumber(e ast.Expr, shown string) string {
	if s, fixed := literalText(e); fixed {
		if v, err := readJSON(s); err == nil {
			if n, ok := v.(number); ok {
				return string(n)
			}
		}
	}
	return "num(" + shown + ")"
}

func (c *checker) membership(args []ast.Expr) *typ {
	elem, in := c.infer(args[0]), c.infer(args[1])
	switch {
	case in.unknown():
	case in.kind == kindList && clash(elem, orAny(in.of)):
		c.report(args[0], problemType, "", "%s is %s, and the list holds %s", c.show(args[0]), elem.words(), in.of.words())
	case in.kind == kindObject && clash(elem, textTyp()):
		c.report(args[0], problemType, "", "%s is %s, and the keys of an object are text", c.show(args[0]), elem.words())
	case in.kind != kindList && in.kind != kindObject:
		c.report(args[1], problemType, "", "%s is %s; in needs a list or an object", c.show(args[1]), in.words())
	}
	return boolTyp()
}

// index is a[i], or a[?i] when optional is set.
func (c *checker) index(e ast.Expr, args []ast.Expr, optional bool) *typ {
	if name, fixed := literalText(args[1]); fixed {
		if !optional {
			return c.member(e, args[0], name, false)
		}
		return c.optionalSelect(e, args)
	}
	over, at := c.infer(args[0]), c.infer(args[1])
	if over.kind == kindOptional {
		over, optional = over.of, true
	}
	out := anyTyp()
	switch over.kind {
	case kindList:
		out = orAny(over.of)
		if clash(at, numberTyp()) {
			c.report(args[1], problemType, "", "%s is %s; the position in a list is a number", c.show(args[1]), at.words())
		}
	case kindObject:
		if clash(at, textTyp()) {
			c.report(args[1], problemType, "", "%s is %s; the key of an object is text", c.show(args[1]), at.words())
		}
	case kindAny, kindNever:
	default:
		c.report(e, problemType, "", "%s is %s and has no elements", c.show(args[0]), over.words())
	}
	c.position(args[1])
	if optional {
		return optionalTyp(out)
	}
	return out
}

// position makes an index what the evaluator takes: a literal becomes a plain
// position, anything else is turned into one when it is known.
func (c *checker) position(e ast.Expr) {
	if e.Kind() == ast.LiteralKind {
		n, ok := e.AsLiteral().(*numVal)
		if !ok {
			return
		}
		i, whole := n.index()
		if !whole || i < 0 {
			c.report(e, problemType, "", "%s is not a position in a list; the first is 0", n.text())
			return
		}
		e.SetKindCase(c.make.NewLiteral(e.ID(), types.Int(i)))
		return
	}
	inner := c.make.NewUnspecifiedExpr(e.ID())
	inner.SetKindCase(e)
	e.SetKindCase(c.make.NewCall(e.ID(), keyFunction, inner))
}

// optionalSelect is a.?b. In steps.x.output.?b of a step that may not have run
// the output itself is what may be missing, so that the test moves there too.
func (c *checker) optionalSelect(e ast.Expr, args []ast.Expr) *typ {
	name, fixed := literalText(args[1])
	if !fixed {
		return c.index(e, args, true)
	}
	operand := args[0]
	if c.softOutput(operand) {
		return c.optionalSelect(e, args)
	}
	var t *typ
	if id, ok := c.step(operand); ok {
		t = c.stepTyp(operand, id)
	} else if c.steps(operand) {
		c.stepTyp(e, name)
		return optionalTyp(anyTyp())
	} else {
		t = c.infer(operand)
	}
	if t.kind == kindOptional {
		t = t.of
	}
	return optionalTyp(c.field(e, operand, t, name, true))
}

// softOutput turns steps.x.output into steps.x.?output where the step may not
// have run, and reports whether it did.
func (c *checker) softOutput(e ast.Expr) bool {
	if e.Kind() != ast.SelectKind || e.AsSelect().FieldName() != "output" || e.AsSelect().IsTestOnly() {
		return false
	}
	step := e.AsSelect().Operand()
	id, ok := c.step(step)
	if s, found := c.r.steps[id]; !ok || !found || !s.maybe || c.present[path(e)] > 0 {
		return false
	}
	name := c.make.NewLiteral(e.ID(), types.String("output"))
	e.SetKindCase(c.make.NewCall(e.ID(), operators.OptSelect, step, name))
	return true
}

// optionalFunction is a function of values that may be missing.
func (c *checker) optionalFunction(e ast.Expr) (*typ, bool) {
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind && call.Target().AsIdent() == "optional" {
		name = "optional." + name
	} else if call.IsMemberFunction() {
		return c.optionalMethod(e, name, call.Target(), args)
	}
	switch {
	case name == "optional.none" && len(args) == 0:
		return optionalTyp(&typ{kind: kindNever}), true
	case (name == "optional.of" || name == "optional.ofNonZeroValue") && len(args) == 1:
		return optionalTyp(c.infer(args[0])), true
	}
	return nil, false
}

func (c *checker) optionalMethod(e ast.Expr, name string, target ast.Expr, args []ast.Expr) (*typ, bool) {
	switch {
	case (name == "hasValue" || name == "value") && len(args) == 0:
	case (name == "or" || name == "orValue") && len(args) == 1:
	default:
		return nil, false
	}
	if c.softOutput(target) {
		return c.optionalMethod(e, name, target, args)
	}
	t := c.infer(target)
	if t.kind != kindOptional {
		if !t.unknown() {
			c.report(e, problemType, c.soften(target), "%s is always there; %s() belongs after .?", c.show(target), name)
		}
		t = optionalTyp(anyTyp())
	}
	switch name {
	case "hasValue":
		return boolTyp(), true
	case "value":
		return t.of, true
	}
	other := c.infer(args[0])
	if name == "or" {
		if other.kind == kindOptional {
			return join(t, other), true
		}
		c.report(args[0], problemType, "orValue("+c.show(args[0])+")", "or() takes another value that may be missing, and %s is %s", c.show(args[0]), other.words())
		return t, true
	}
	if clash(t.of, other) {
		c.report(args[0], problemType, "", "%s would be %s, and %s is %s", c.show(target), t.of.words(), c.show(args[0]), other.words())
	}
	return join(t.of, other), true
}

// soften suggests a.?b for a.b.
func (c *checker) soften(e ast.Expr) string {
	if e.Kind() == ast.SelectKind {
		s := e.AsSelect()
		return c.show(s.Operand()) + ".?" + s.FieldName() + ".orValue(...)"
	}
	return ""
}

// function is a call of the library.
func (c *checker) function(e ast.Expr, name string, args []ast.Expr) *typ {
	ts := make([]*typ, len(args))
	for i, a := range args {
		ts[i] = c.infer(a)
	}
	forms := c.library[name]
	if forms == nil {
		c.unknownFunction(e, name)
		return anyTyp()
	}
	var candidate *function
	for i := range forms {
		f := &forms[i]
		if len(f.params) != len(args) {
			continue
		}
		if f.takes(ts) {
			return c.result(f, forms, ts)
		}
		candidate = f
	}
	if candidate == nil {
		c.report(e, problemType, "", "%s takes %s, not %d", spoken(name), counts(forms), len(args))
		return anyTyp()
	}
	for i, t := range ts {
		if t.kind == kindOptional {
			c.report(args[i], problemType, c.show(args[i])+".orValue(...)", "%s may be missing; say what to take instead", c.show(args[i]))
			return &typ{kind: candidate.result}
		}
	}
	c.mismatch(e, args, ts, fmt.Sprintf("%s takes %s", spoken(name), takings(forms)))
	return c.result(candidate, nil, ts)
}

// takes reports whether the function accepts values of these types.
func (f *function) takes(ts []*typ) bool {
	for i, t := range ts {
		if k := f.params[i]; k != kindAny && !t.unknown() && t.kind != k {
			return false
		}
	}
	return true
}

// result is the type that a form yields. When operands of unknown type leave
// several forms open, which differ in their result, it is any.
func (c *checker) result(f *function, forms []function, ts []*typ) *typ {
	for i := range forms {
		if g := &forms[i]; len(g.params) == len(ts) && g.takes(ts) && g.result != f.result {
			return anyTyp()
		}
	}
	if f.result != kindList {
		return &typ{kind: f.result}
	}
	of := &typ{kind: kindNever}
	if f.name == "split" {
		return listTyp(textTyp())
	}
	for _, t := range ts {
		if t.kind != kindList {
			return listTyp(anyTyp())
		}
		of = join(of, orAny(t.of))
	}
	return listTyp(of)
}

func (c *checker) unknownFunction(e ast.Expr, name string) {
	names := []string{"has", "orValue", "map", "filter", "all", "exists", "exists_one"}
	for n := range c.library {
		if isLetter(n[0]) && n[0] != '_' {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	if close := nearest(name, names); close != "" {
		c.report(e, problemUnknownFunc, close+"()", "there is no function %s(); did you mean %s()?", name, close)
		return
	}
	c.report(e, problemUnknownFunc, "", "there is no function %s()", name)
}

// counts says how many values the forms of a function take.
func counts(forms []function) string {
	var ns []int
	for _, f := range forms {
		ns = append(ns, len(f.params))
	}
	slices.Sort(ns)
	words := make([]string, 0, len(ns))
	for _, n := range slices.Compact(ns) {
		words = append(words, fmt.Sprint(n))
	}
	if len(words) == 1 && words[0] == "1" {
		return "1 value"
	}
	return strings.Join(words, " or ") + " values"
}

// takings says what the forms of a function take.
func takings(forms []function) string {
	var out []string
	for _, f := range forms {
		words := make([]string, len(f.params))
		for i, k := range f.params {
			words[i] = (&typ{kind: k}).words()
		}
		if text := strings.Join(words, " and "); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", or ")
}
