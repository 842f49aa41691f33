package expr

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/ringiflow/ringi/workflow/exact"
)

// checker finds the type of an expression and everything that is wrong with
// it. On the way it makes the tree ready for the evaluator: numerals become
// exact numbers, and positions in lists become what CEL expects.
//
// CEL's own checker is not used: its types are nominal, where JSON's are
// structural, and its messages speak of overloads.
type checker struct {
	text     string
	base     int            // where the expression stands in the text that was given
	offsets  []int          // byte offset of each character; nil when they agree
	numerals map[int]string // by byte offset
	info     *ast.SourceInfo
	build    ast.ExprFactory
	r        *Scope
	library  map[string][]function

	locals   []local        // variables of macros, innermost last
	present  map[string]int // paths that a has() in front has shown to be there
	problems []Problem
}

// A local is a variable that a macro such as map() introduces.
type local struct {
	name string
	typ  *Type
}

// report adds a problem at the first character of a node, once.
func (c *checker) report(e ast.Expr, kind, suggestion, format string, args ...any) {
	c.reportAt(c.start(e), kind, suggestion, format, args...)
}

func (c *checker) reportAt(at int, kind, suggestion, format string, args ...any) {
	p := Problem{Offset: c.base + at, Kind: kind, Message: fmt.Sprintf(format, args...), Suggestion: suggestion}
	if !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

// start is the byte offset of the first character of a node.
func (c *checker) start(e ast.Expr) int {
	first := -1
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(part ast.Expr) {
		if r, ok := c.info.GetOffsetRange(part.ID()); ok && (first < 0 || int(r.Start) < first) {
			first = int(r.Start)
		}
	}))
	return c.byteOffset(max(first, 0))
}

// nameAt is the byte offset of the name of a field, which follows its operand.
func (c *checker) nameAt(e, operand ast.Expr, name string) int {
	if e.Kind() == ast.CallKind {
		return c.start(e.AsCall().Args()[1])
	}
	from := c.start(operand)
	if r, ok := c.info.GetOffsetRange(e.ID()); ok {
		from = max(from, c.byteOffset(int(r.Start)))
	}
	if i := strings.Index(c.text[from:], name); i >= 0 && e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		return from + i
	}
	if i := strings.Index(c.text[from:], "."+name); i >= 0 {
		return from + i + 1
	}
	return from
}

func (c *checker) byteOffset(char int) int {
	if c.offsets == nil {
		return min(char, len(c.text))
	}
	if char < len(c.offsets) {
		return c.offsets[char]
	}
	return len(c.text)
}

// infer returns the type of a node.
func (c *checker) infer(e ast.Expr) *Type {
	switch e.Kind() {
	case ast.LiteralKind:
		return c.literal(e)
	case ast.IdentKind:
		return c.ident(e)
	case ast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() {
			c.member(e, s.Operand(), s.FieldName(), true)
			return Bool()
		}
		return c.member(e, s.Operand(), s.FieldName(), false)
	case ast.CallKind:
		return c.call(e)
	case ast.ListKind:
		return c.list(e)
	case ast.MapKind:
		return c.mapLiteral(e)
	case ast.ComprehensionKind:
		return c.comprehension(e)
	case ast.StructKind:
		c.report(e, ProblemSyntax, `{"name": value}`, "an object is written with its keys in quotes and without a type name")
	}
	return Any()
}

func (c *checker) literal(e ast.Expr) *Type {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return Text()
	case types.Bool:
		return Bool()
	case types.Null:
		return &Type{Kind: KindNull}
	case *numVal:
		return Number()
	case types.Int:
		return c.numeral(e, int64(v), v < 0)
	case types.Double:
		return c.numeral(e, 0, v < 0)
	case types.Uint:
		c.report(e, ProblemSyntax, "leave out the u", "there is one kind of number; it has no suffix")
		return Number()
	}
	c.report(e, ProblemSyntax, "write it as text, without the b", "bytes are not a JSON value")
	return Any()
}

// numeral makes the node an exact number. A numeral without a place in the
// text was made by a macro and is what it says.
func (c *checker) numeral(e ast.Expr, made int64, negative bool) *Type {
	place, ok := c.info.GetOffsetRange(e.ID())
	if !ok || place.Start == place.Stop {
		e.SetKindCase(c.build.NewLiteral(e.ID(), numOf(made)))
		return Number()
	}
	at := c.byteOffset(int(place.Start))
	for at < len(c.text) && c.numerals[at] == "" { // the place of -5 is that of its sign
		at++
	}
	n, err := readNumeral(c.numerals[at], negative)
	if err != nil {
		c.report(e, ProblemNumber, "", "the number %s %v", exact.Shorten(c.numerals[at]), err)
		n = "0"
	}
	e.SetKindCase(c.build.NewLiteral(e.ID(), wrap(n, nil)))
	return Number()
}

func (c *checker) ident(e ast.Expr) *Type {
	name := e.AsIdent()
	for i := len(c.locals) - 1; i >= 0; i-- {
		if c.locals[i].name == name {
			return c.locals[i].typ
		}
	}
	t, found := c.r.root(name)
	if !found {
		c.unknownRoot(e, name)
		return Any()
	}
	if name == "steps" {
		c.report(e, ProblemType, "steps.<id>.output", "steps is not a value; name one of its steps")
	}
	return t
}

func (c *checker) unknownRoot(e ast.Expr, name string) {
	names := c.r.names()
	for _, l := range c.locals {
		if !strings.HasPrefix(l.name, "@") && !strings.HasPrefix(l.name, "#") {
			names = append(names, l.name)
		}
	}
	if near := Nearest(name, names); near != "" {
		c.report(e, ProblemUnknownRoot, near, "%s does not exist here; did you mean %s?", name, near)
		return
	}
	if t := orAny(c.r.Input); t.Kind == KindObject {
		if _, found := t.fields[name]; found {
			c.report(e, ProblemUnknownRoot, "input."+name, "%s does not exist here; did you mean input.%s?", name, name)
			return
		}
	}
	c.report(e, ProblemUnknownRoot, "", "%s does not exist here; there is %s", name, strings.Join(c.r.names(), ", "))
}

// steps reports whether the node is the root steps, and step names the step
// when the node is steps.<id>.
func (c *checker) steps(e ast.Expr) bool {
	if e.Kind() != ast.IdentKind || e.AsIdent() != "steps" || c.r.StartOnly || c.r.Message != nil {
		return false
	}
	return !slices.ContainsFunc(c.locals, func(l local) bool { return l.name == "steps" })
}

func (c *checker) step(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		return s.FieldName(), !s.IsTestOnly() && c.steps(s.Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() == operators.Index && len(call.Args()) == 2 && c.steps(call.Args()[0]) {
			return literalText(call.Args()[1])
		}
	}
	return "", false
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// member is operand.name, or has(operand.name) when test is set.
func (c *checker) member(e, operand ast.Expr, name string, test bool) *Type {
	if c.steps(operand) {
		c.stepTyp(e, name)
		if len(c.problems) == 0 {
			c.report(e, ProblemType, fmt.Sprintf("steps.%s.output", name), "a step is not a value; name its output, outcome, attempts or error")
		}
		return Any()
	}
	var t *Type
	if id, ok := c.step(operand); ok {
		t = c.stepTyp(operand, id)
	} else if id, ok := c.maybeOutput(operand); ok {
		t = c.notRun(e, operand, id, name, test)
	} else {
		t = c.infer(operand)
	}
	if t.Kind == KindOptional {
		return maybe(c.field(e, operand, t.of, name, true))
	}
	return c.field(e, operand, t, name, test)
}

// stepTyp is the type of steps.<id>, or any when there is no such step.
func (c *checker) stepTyp(e ast.Expr, id string) *Type {
	s, found := c.r.Steps[id]
	if !found {
		names := make([]string, 0, len(c.r.Steps))
		for name := range c.r.Steps {
			names = append(names, name)
		}
		slices.Sort(names)
		at := c.stepAt(e, id)
		if near := Nearest(id, names); near != "" {
			c.reportAt(at, ProblemUnknownStep, "steps."+near, "there is no step %q; did you mean %q?", id, near)
		} else {
			c.reportAt(at, ProblemUnknownStep, "", "there is no step %q", id)
		}
		return Any()
	}
	if s.Later {
		c.report(e, ProblemLaterStep, "", "step %q has not run when this is evaluated", id)
		return Any()
	}
	return s.object()
}

// stepAt is the byte offset of the id in steps.<id>.
func (c *checker) stepAt(e ast.Expr, id string) int {
	if e.Kind() == ast.SelectKind {
		return c.nameAt(e, e.AsSelect().Operand(), id)
	}
	return c.start(e)
}

// maybeOutput reports that the node is steps.<id>.output of a step that may
// not have run, where nothing has shown that it has.
func (c *checker) maybeOutput(e ast.Expr) (id string, ok bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().FieldName() != "output" || e.AsSelect().IsTestOnly() {
		return "", false
	}
	id, ok = c.step(e.AsSelect().Operand())
	s, found := c.r.Steps[id]
	return id, ok && found && !s.Later && s.Maybe && c.present[path(e)] == 0
}

// notRun reports that a field of an output is read that may not be there, and
// returns the type of the output.
func (c *checker) notRun(e, output ast.Expr, id, name string, test bool) *Type {
	t := orAny(c.r.Steps[id].Output)
	suggestion := fmt.Sprintf("steps.%s.output%s", id, safely(name))
	if test {
		suggestion += ".hasValue()"
	} else {
		suggestion += orValue(fieldOf(t, name))
	}
	c.report(output, ProblemMaybeNotRun, suggestion,
		"step %q may not have run, and then it has no output; read it with .? and say what to take instead", id)
	return t
}

func fieldOf(t *Type, name string) *Type {
	if f, found := t.fields[name]; found {
		return f.typ
	}
	return Any()
}

// safely writes the optional reading of a field.
func safely(name string) string {
	if plainName(name) {
		return ".?" + name
	}
	return fmt.Sprintf("[?%q]", name)
}

func dotted(name string) string {
	if plainName(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

func plainName(name string) bool {
	_, n := lex(name + " ")
	return n == len(name) && name != "" && isLetter(name[0]) && name != "in"
}

// orValue writes what to take instead of a missing value of that type.
func orValue(t *Type) string {
	instead := map[Kind]string{KindString: `""`, KindNumber: "0", KindBool: "false", KindList: "[]", KindObject: "{}"}[t.Kind]
	if instead == "" {
		instead = "..."
	}
	return ".orValue(" + instead + ")"
}

// field is the type of a field of t; optional ones must have been tested
// unless present says that this very access is the test.
func (c *checker) field(e, operand ast.Expr, t *Type, name string, present bool) *Type {
	if t.Unknown() {
		return Any()
	}
	if t.Kind != KindObject {
		c.report(e, ProblemType, "", "%s is %s and has no field %q", c.show(operand), t.Words(), name)
		return Any()
	}
	f, found := t.fields[name]
	if !found {
		if t.open {
			return orAny(t.of)
		}
		c.unknownField(e, operand, t, name)
		return Any()
	}
	if f.optional && !present && c.present[path(e)] == 0 {
		c.missing(e, operand, name, f.typ)
	}
	return f.typ
}

func (c *checker) unknownField(e, operand ast.Expr, t *Type, name string) {
	names := t.fieldNames()
	object, at := c.show(operand), c.nameAt(e, operand, name)
	switch near := Nearest(name, names); {
	case near != "":
		c.reportAt(at, ProblemUnknownField, object+dotted(near), "%s has no field %q; did you mean %q?", object, name, near)
	case len(names) == 0:
		c.reportAt(at, ProblemUnknownField, "", "%s has no field %q", object, name)
	default:
		c.reportAt(at, ProblemUnknownField, "", "%s has no field %q; it has %s", object, name, strings.Join(names, ", "))
	}
}

func (c *checker) missing(e, operand ast.Expr, name string, t *Type) {
	object := c.show(operand)
	if id, ok := c.step(operand); ok {
		c.report(e, ProblemMaybeNotRun, fmt.Sprintf("steps.%s.?output", id)+orValue(t),
			"step %q may not have run, and then it has no output; read it with .? and say what to take instead", id)
		return
	}
	c.report(e, ProblemMaybeMissing, object+safely(name)+orValue(t),
		"%s%s is optional and may be missing; say what to take instead, or ask has(%s%s) first", object, dotted(name), object, dotted(name))
}

// show writes a node as it stands in the expression, for messages.
func (c *checker) show(e ast.Expr) string { return exact.Shorten(render(e)) }

func (c *checker) list(e ast.Expr) *Type {
	l := e.AsList()
	of := &Type{Kind: KindNever}
	for i, elem := range l.Elements() {
		t := c.infer(elem)
		if l.IsOptional(int32(i)) && t.Kind == KindOptional {
			t = t.of
		}
		of = Join(of, t)
	}
	return List(of)
}

// mapLiteral also puts the call of objectFunction in the place of the literal.
func (c *checker) mapLiteral(e ast.Expr) *Type {
	out := &Type{Kind: KindObject, fields: map[string]field{}}
	var parts []ast.Expr
	for _, entry := range e.AsMap().Entries() {
		m := entry.AsMapEntry()
		c.mapEntry(out, m)
		parts = append(parts, m.Key(), m.Value(), c.build.NewLiteral(e.ID(), types.Bool(m.IsOptional())))
	}
	e.SetKindCase(c.build.NewCall(e.ID(), objectFunction, c.build.NewList(e.ID(), parts, nil)))
	return out
}

func (c *checker) mapEntry(out *Type, m ast.MapEntry) {
	t := c.infer(m.Value())
	if m.IsOptional() {
		if t.Kind != KindOptional && !t.Unknown() {
			c.report(m.Value(), ProblemType, "", "%s is always there; leave out the ? before its key", c.show(m.Value()))
		} else if t.Kind == KindOptional {
			t = t.of
		}
	}
	key, fixed := literalText(m.Key())
	switch kt := c.infer(m.Key()); {
	case fixed:
		if _, twice := out.fields[key]; twice {
			c.report(m.Key(), ProblemSyntax, "", "key %q stands twice in one object", key)
		}
		out.fields[key] = field{typ: t, optional: m.IsOptional()}
	case kt.Kind == KindString || kt.Unknown():
		out.open, out.of = true, Any()
	default:
		c.report(m.Key(), ProblemType, fmt.Sprintf("%q", c.show(m.Key())), "the keys of an object are text, and %s is %s", c.show(m.Key()), kt.Words())
	}
}

// comprehension is what a macro over a list or the keys of an object becomes.
func (c *checker) comprehension(e ast.Expr) *Type {
	f := e.AsComprehension()
	elem := Any()
	switch over := c.infer(f.IterRange()); over.Kind {
	case KindList:
		elem = orAny(over.of)
	case KindObject:
		elem = Text()
	case KindAny, KindNever:
	default:
		c.report(f.IterRange(), ProblemType, "", "%s is %s; only the elements of a list or the keys of an object can be walked", c.show(f.IterRange()), over.Words())
	}
	accu := c.infer(f.AccuInit())
	depth := len(c.locals)
	c.locals = append(c.locals, local{f.AccuVar(), accu}, local{f.IterVar(), elem})
	hidden := c.hide(f.IterVar(), f.AccuVar())
	c.infer(f.LoopCondition())
	accu = Join(accu, c.infer(f.LoopStep()))
	c.locals[depth].typ = accu
	c.locals = c.locals[:depth+1]
	t := c.infer(f.Result())
	c.locals = c.locals[:depth]
	c.present = hidden
	return t
}

// hide forgets what is known of outer variables of these names, and returns
// what was known before.
func (c *checker) hide(names ...string) map[string]int {
	before := c.present
	after := make(map[string]int, len(before))
	for p, n := range before {
		root, _, _ := strings.Cut(p, ".")
		if !slices.Contains(names, root) {
			after[p] = n
		}
	}
	c.present = after
	return before
}
