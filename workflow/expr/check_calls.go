package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/ringiflow/ringi/workflow/exact"
)

// call returns the type of an operator or function.
func (c *checker) call(e ast.Expr) *Type {
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
		return Bool()
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
func (c *checker) logical(terms []ast.Expr, says func(ast.Expr) []string) *Type {
	before := c.present
	for _, term := range terms {
		c.boolean(term)
		c.assume(says(term))
	}
	c.present = before
	return Bool()
}

func (c *checker) boolean(e ast.Expr) {
	if t := c.infer(e); t.Kind != KindBool && !t.Unknown() {
		c.report(e, ProblemType, "", "%s is %s, not true or false", c.show(e), t.Words())
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

func (c *checker) conditional(e ast.Expr, args []ast.Expr) *Type {
	c.boolean(args[0])
	before := c.present
	c.assume(c.shown(args[0]))
	yes := c.infer(args[1])
	c.present = before
	c.assume(c.refuted(args[0]))
	no := c.infer(args[2])
	c.present = before
	if clash(yes, no) {
		c.report(e, ProblemType, "", "both results must be of one kind: %s is %s, %s is %s", c.show(args[1]), yes.Words(), c.show(args[2]), no.Words())
	}
	return Join(yes, no)
}

// clash reports that two values can never be of one kind.
func clash(a, b *Type) bool {
	return !a.Unknown() && !b.Unknown() && a.Kind != b.Kind && a.Kind != KindNull && b.Kind != KindNull
}

func (c *checker) equality(e ast.Expr, args []ast.Expr) *Type {
	before := len(c.problems)
	a := c.infer(args[0])
	between := len(c.problems)
	b := c.infer(args[1])
	switch {
	case isNull(args[1]) && !a.Unknown() && a.Kind != KindNull:
		c.neverNull(args[0], a, before)
	case isNull(args[0]) && !b.Unknown() && b.Kind != KindNull:
		c.neverNull(args[1], b, between)
	case a.Unknown() || b.Unknown() || a.Kind == b.Kind:
	case a.Kind == KindOptional:
		c.soften(args[0])
	case b.Kind == KindOptional:
		c.soften(args[1])
	default:
		c.mismatch(e, args, []*Type{a, b}, "the two can never be equal")
	}
	return Bool()
}

func isNull(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	_, null := e.AsLiteral().(types.Null)
	return null
}

// neverNull reports a comparison with null of a value that is never null: the
// null of a declared field counts as absent. It stands for the finding that the
// value may be missing, the last since the count of problems was before.
func (c *checker) neverNull(e ast.Expr, t *Type, before int) {
	if found := c.problems[before:]; len(found) > 1 || len(found) == 1 && found[0].Kind != ProblemMaybeMissing {
		return
	}
	c.problems = c.problems[:before]
	suggestion := ""
	switch {
	case t.Kind == KindOptional:
		suggestion = c.show(e) + ".hasValue()"
	case e.Kind() == ast.SelectKind:
		suggestion = "has(" + c.show(e) + ")"
	}
	c.report(e, ProblemType, suggestion, "%s is %s, never null; whether a field is there is asked with has()", c.show(e), t.Words())
}

// soften reports that a value which may be missing is used as if it were there.
func (c *checker) soften(e ast.Expr) {
	c.report(e, ProblemMaybeMissing, c.show(e)+".orValue(...)", "%s may be missing; say what to take instead", c.show(e))
}

// mismatch reports operands that do not go together.
func (c *checker) mismatch(e ast.Expr, args []ast.Expr, ts []*Type, trouble string) {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = c.show(a) + " is " + ts[i].Words()
	}
	c.report(e, ProblemType, c.conversion(e, args, ts), "%s; %s", strings.Join(parts, ", "), trouble)
}

// conversion suggests how a text and a number can be brought together.
func (c *checker) conversion(e ast.Expr, args []ast.Expr, ts []*Type) string {
	if _, operator := operators.FindReverse(e.AsCall().FunctionName()); !operator || len(args) != 2 {
		return ""
	}
	name := spoken(e.AsCall().FunctionName())
	shown := []string{c.show(args[0]), c.show(args[1])}
	for i, t := range ts {
		other := ts[1-i]
		switch {
		case t.Kind == KindOptional:
			shown[i] += ".orValue(...)"
		case name == "+" && other.Kind == KindString && (t.Kind == KindNumber || t.Kind == KindBool || t.Kind == KindTime):
			shown[i] = "string(" + shown[i] + ")"
		case t.Kind == KindString && other.Kind == KindNumber:
			shown[i] = asNumber(args[i], shown[i])
		case t.Kind == KindString && other.Kind == KindTime:
			shown[i] = "timestamp(" + shown[i] + ")"
		case t.Kind == KindString && other.Kind == KindDuration:
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
		if v, err := exact.Read(s); err == nil {
			if n, ok := v.(exact.Number); ok {
				return string(n)
			}
		}
	}
	return "num(" + shown + ")"
}

func (c *checker) membership(args []ast.Expr) *Type {
	elem, in := c.infer(args[0]), c.infer(args[1])
	switch {
	case in.Unknown():
	case in.Kind == KindList && clash(elem, orAny(in.of)):
		c.report(args[0], ProblemType, "", "%s is %s, and the list holds %s", c.show(args[0]), elem.Words(), in.of.Words())
	case in.Kind == KindObject && clash(elem, Text()):
		c.report(args[0], ProblemType, "", "%s is %s, and the keys of an object are text", c.show(args[0]), elem.Words())
	case in.Kind != KindList && in.Kind != KindObject:
		c.report(args[1], ProblemType, "", "%s is %s; in needs a list or an object", c.show(args[1]), in.Words())
	}
	return Bool()
}

// index is a[i], or a[?i] when optional is set.
func (c *checker) index(e ast.Expr, args []ast.Expr, optional bool) *Type {
	if name, fixed := literalText(args[1]); fixed {
		if !optional {
			return c.member(e, args[0], name, false)
		}
		return c.optionalSelect(e, args)
	}
	over, at := c.infer(args[0]), c.infer(args[1])
	if over.Kind == KindOptional {
		over, optional = over.of, true
	}
	out := Any()
	switch over.Kind {
	case KindList:
		out = orAny(over.of)
		if clash(at, Number()) {
			out = Any()
			c.report(args[1], ProblemType, "", "%s is %s; the position in a list is a number", c.show(args[1]), at.Words())
		}
	case KindObject:
		if clash(at, Text()) {
			c.report(args[1], ProblemType, "", "%s is %s; the key of an object is text", c.show(args[1]), at.Words())
		}
	case KindAny, KindNever:
	default:
		c.report(e, ProblemType, "", "%s is %s and has no elements", c.show(args[0]), over.Words())
	}
	c.position(args[1])
	if optional {
		return maybe(out)
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
			c.report(e, ProblemType, "", "%s is not a position in a list; the first is 0", n.text())
			return
		}
		e.SetKindCase(c.build.NewLiteral(e.ID(), types.Int(i)))
		return
	}
	inner := c.build.NewUnspecifiedExpr(e.ID())
	inner.SetKindCase(e)
	e.SetKindCase(c.build.NewCall(e.ID(), keyFunction, inner))
}

// optionalSelect is a.?b. In steps.x.output.?b of a step that may not have run
// the output itself is what may be missing, so that the test moves there too.
func (c *checker) optionalSelect(e ast.Expr, args []ast.Expr) *Type {
	name, fixed := literalText(args[1])
	if !fixed {
		return c.index(e, args, true)
	}
	operand := args[0]
	if c.softOutput(operand) {
		return c.optionalSelect(e, args)
	}
	var t *Type
	if id, ok := c.step(operand); ok {
		t = c.stepTyp(operand, id)
	} else if c.steps(operand) {
		c.stepTyp(e, name)
		return maybe(Any())
	} else {
		t = c.infer(operand)
	}
	if t.Kind == KindOptional {
		t = t.of
	}
	return maybe(c.field(e, operand, t, name, true))
}

// softOutput turns steps.x.output into steps.x.?output where the step may not
// have run, and reports whether it did.
func (c *checker) softOutput(e ast.Expr) bool {
	if _, ok := c.maybeOutput(e); !ok {
		return false
	}
	name := c.build.NewLiteral(e.ID(), types.String("output"))
	e.SetKindCase(c.build.NewCall(e.ID(), operators.OptSelect, e.AsSelect().Operand(), name))
	return true
}

// optionalFunction is a function of values that may be missing.
func (c *checker) optionalFunction(e ast.Expr) (*Type, bool) {
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind && call.Target().AsIdent() == "optional" {
		name = "optional." + name
	} else if call.IsMemberFunction() {
		return c.optionalMethod(e, name, call.Target(), args)
	}
	switch {
	case name == "optional.none" && len(args) == 0:
		return maybe(&Type{Kind: KindNever}), true
	case (name == "optional.of" || name == "optional.ofNonZeroValue") && len(args) == 1:
		return maybe(c.infer(args[0])), true
	}
	return nil, false
}

func (c *checker) optionalMethod(e ast.Expr, name string, target ast.Expr, args []ast.Expr) (*Type, bool) {
	switch {
	case (name == "hasValue" || name == "value") && len(args) == 0:
	case (name == "or" || name == "orValue") && len(args) == 1:
	default:
		return nil, false
	}
	if c.softOutput(target) {
		return c.optionalMethod(e, name, target, args)
	}
	before := len(c.problems)
	t := c.infer(target)
	if t.Kind != KindOptional {
		if !t.Unknown() && len(c.problems) == before {
			c.report(e, ProblemType, softer(target), "%s is always there; %s() belongs after .?", c.show(target), name)
		}
		t = maybe(Any())
	}
	switch name {
	case "hasValue":
		return Bool(), true
	case "value":
		return t.of, true
	}
	other := c.infer(args[0])
	if name == "or" {
		if other.Kind == KindOptional {
			return Join(t, other), true
		}
		c.report(args[0], ProblemType, "orValue("+c.show(args[0])+")", "or() takes another value that may be missing, and %s is %s", c.show(args[0]), other.Words())
		return t, true
	}
	if clash(t.of, other) {
		c.report(args[0], ProblemType, "", "%s would be %s, and %s is %s", c.show(target), t.of.Words(), c.show(args[0]), other.Words())
	}
	return Join(t.of, other), true
}

// softer suggests a.?b for a.b.
func softer(e ast.Expr) string {
	if e.Kind() == ast.SelectKind {
		s := e.AsSelect()
		return exact.Shorten(render(s.Operand())) + safely(s.FieldName()) + ".orValue(...)"
	}
	return ""
}

// function is a call of the library.
func (c *checker) function(e ast.Expr, name string, args []ast.Expr) *Type {
	ts := make([]*Type, len(args))
	for i, a := range args {
		ts[i] = c.infer(a)
	}
	forms := c.library[name]
	if forms == nil {
		c.unknownFunction(e, name)
		return Any()
	}
	var candidate *function
	for i := range forms {
		f := &forms[i]
		if len(f.params) != len(args) {
			continue
		}
		if f.takes(ts) {
			c.elements(f, args, ts)
			c.pattern(f, args)
			return c.result(f, forms, ts)
		}
		candidate = f
	}
	if candidate == nil {
		c.reportAt(c.callAt(e, name), ProblemType, "", "%s takes %s, not %d", spoken(name), counts(forms), len(args))
		return Any()
	}
	for i, t := range ts {
		if t.Kind == KindOptional {
			c.soften(args[i])
			return Any()
		}
	}
	c.mismatch(e, args, ts, spoken(name)+" "+taking(name, forms))
	return Any()
}

// elements reports a list whose elements the function cannot use.
func (c *checker) elements(f *function, args []ast.Expr, ts []*Type) {
	need := Number()
	switch f.name {
	case "join":
		need = Text()
	case "sum", "min", "max":
	default:
		return
	}
	if ts[0].Kind == KindList && clash(orAny(ts[0].of), need) {
		c.report(args[0], ProblemType, "", "%s takes a list in which each element is %s; in %s each is %s",
			spoken(f.name), need.Words(), c.show(args[0]), ts[0].of.Words())
	}
}

// pattern reports a literal that is not a pattern.
func (c *checker) pattern(f *function, args []ast.Expr) {
	if f.name != "matches" {
		return
	}
	if text, fixed := literalText(args[1]); fixed {
		if _, err := patternSize(text); err != nil {
			c.report(args[1], ProblemSyntax, "", "%v; patterns follow RE2", err)
		}
	}
}

// takes reports whether the function accepts values of these types.
func (f *function) takes(ts []*Type) bool {
	for i, t := range ts {
		if k := f.params[i]; k != KindAny && !t.Unknown() && t.Kind != k {
			return false
		}
	}
	return true
}

// result is the type that a form yields. When operands of unknown type leave
// several forms open, which differ in their result, it is any.
func (c *checker) result(f *function, forms []function, ts []*Type) *Type {
	for i := range forms {
		if g := &forms[i]; len(g.params) == len(ts) && g.takes(ts) && g.result != f.result {
			return Any()
		}
	}
	switch f.result {
	case KindOptional:
		if ts[0].Kind == KindList {
			return maybe(orAny(ts[0].of))
		}
		return maybe(Any())
	case KindList:
		return listResult(f, ts)
	}
	return &Type{Kind: f.result}
}

// listResult is the type of a list that a function makes of its operands.
func listResult(f *function, ts []*Type) *Type {
	of := &Type{Kind: KindNever}
	if f.name == "split" {
		return List(Text())
	}
	for _, t := range ts {
		if t.Kind != KindList {
			return List(Any())
		}
		of = Join(of, orAny(t.of))
	}
	return List(of)
}

// callAt is the byte offset of the name of a function.
func (c *checker) callAt(e ast.Expr, name string) int {
	call := e.AsCall()
	if call.IsMemberFunction() {
		from := c.start(call.Target())
		return from + max(strings.Index(c.text[from:], "."+name), -1) + 1
	}
	if r, ok := c.info.GetOffsetRange(e.ID()); ok {
		if at := c.byteOffset(int(r.Start)); strings.HasSuffix(strings.TrimRight(c.text[:at], " "), name) {
			return strings.LastIndex(c.text[:at], name)
		}
	}
	return c.start(e)
}

func (c *checker) unknownFunction(e ast.Expr, name string) {
	at := c.callAt(e, name)
	names := []string{"has", "orValue", "map", "filter", "all", "exists", "exists_one"}
	for n := range c.library {
		if isLetter(n[0]) && n[0] != '_' {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	near := elsewhere(name)
	if near == "" {
		near = Nearest(name, names)
	}
	if near != "" {
		c.reportAt(at, ProblemUnknownFunction, near+"()", "there is no function %s(); did you mean %s()?", name, near)
		return
	}
	c.reportAt(at, ProblemUnknownFunction, "", "there is no function %s()", name)
}

// elsewhere translates what functions are called in other languages.
func elsewhere(name string) string {
	switch name {
	case "len", "length", "count":
		return "size"
	case "int", "uint", "double", "float", "number", "toNumber", "decimal":
		return "num"
	case "str", "text", "toString":
		return "string"
	case "lower", "toLower", "toLowerCase":
		return "lowerAscii"
	case "upper", "toUpper", "toUpperCase":
		return "upperAscii"
	case "includes":
		return "contains"
	case "any", "some":
		return "exists"
	case "every":
		return "all"
	case "encodeURIComponent", "urlEncode":
		return "url_escape"
	}
	return ""
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

// taking says what a function takes; of operators it is known without a list.
func taking(name string, forms []function) string {
	switch name {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return "compares two numbers, two texts, two times or two durations"
	case operators.Add:
		return "adds two numbers, and joins two texts or two lists"
	case operators.Subtract:
		return "subtracts numbers, times and durations"
	}
	var out []string
	for _, f := range forms {
		words := make([]string, len(f.params))
		for i, k := range f.params {
			words[i] = (&Type{Kind: k}).Words()
		}
		if text := strings.Join(words, " and "); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return "takes " + strings.Join(out, ", or ")
}
