package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// expressions is the parser and evaluator of expressions, made once; it never
// changes. A failure to make it is a mistake in the library of functions, which
// every test of this package would show.
var expressions = func() *cel.Env {
	env, err := newLanguage()
	if err != nil {
		panic(err)
	}
	return env
}()

// functionsByName is the library by name; it never changes.
var functionsByName = func() map[string][]function {
	out := map[string][]function{}
	for _, f := range library() {
		out[f.name] = append(out[f.name], f)
	}
	return out
}()

// compile compiles one expression that stands at byte base of the text of the
// definition. With problems the program is nil.
func compile(text string, base int, r *roots) (*program, *typ, []exprProblem) {
	if len(text) > maxExpression {
		return nil, anyTyp(), []exprProblem{{offset: base, kind: problemTooLong,
			message:    fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(text), maxExpression),
			suggestion: "put parts of it into a set step"}}
	}
	if strings.TrimSpace(text) == "" {
		return nil, anyTyp(), []exprProblem{{offset: base, kind: problemSyntax, message: "the expression is empty", suggestion: "${ input }"}}
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, anyTyp(), []exprProblem{{offset: base, kind: problemSyntax, message: errDirtyText.Error()}}
	}
	tamed, numerals := tame(text)
	parsed, issues := expressions.Parse(tamed)
	offsets := byteOffsets(text)
	if issues.Err() != nil {
		return nil, anyTyp(), syntaxProblems(text, base, offsets, issues)
	}
	tree := parsed.NativeRep()
	if depth := nesting(tree.Expr()); depth > maxDepth {
		return nil, anyTyp(), []exprProblem{{offset: base, kind: problemTooDeep,
			message:    fmt.Sprintf("the expression is nested %d deep; at most %d are allowed", depth, maxDepth),
			suggestion: "put parts of it into a set step"}}
	}
	c := &checker{
		text: text, base: base, offsets: offsets, numerals: numerals,
		info: tree.SourceInfo(), make: ast.NewExprFactory(), r: r, library: functionsByName,
	}
	t := c.infer(tree.Expr())
	if c.problems != nil {
		return nil, anyTyp(), c.problems
	}
	prog, err := plan(expressions, tree, strings.TrimSpace(text), r)
	if err != nil {
		return nil, anyTyp(), []exprProblem{{offset: base, kind: problemSyntax, message: err.Error()}}
	}
	return prog, t, nil
}

// byteOffsets maps the places of characters to those of bytes; nil when all
// characters are single bytes.
func byteOffsets(text string) []int {
	if utf8.RuneCountInString(text) == len(text) {
		return nil
	}
	var out []int
	for i := range text {
		out = append(out, i)
	}
	return out
}

// syntaxProblems are the parser's findings in plain words; after the first the
// parser guesses, so only that one is told.
func syntaxProblems(text string, base int, offsets []int, issues *cel.Issues) []exprProblem {
	first := issues.Errors()[0]
	at := 0
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < first.Location.Line()-1 && i < len(lines); i++ {
		at += len(lines[i])
	}
	if line := first.Location.Line() - 1; line >= 0 && line < len(lines) {
		at += columnBytes(lines[line], first.Location.Column())
	}
	p := exprProblem{offset: base + min(at, len(text)), kind: problemSyntax, message: "this is not an expression: " + plainSyntax(first.Message)}
	p.suggestion = syntaxHint(text)
	return []exprProblem{p}
}

func columnBytes(line string, column int) int {
	n := 0
	for i := range line {
		if n == column {
			return i
		}
		n++
	}
	return len(line)
}

func plainSyntax(message string) string {
	return strings.TrimPrefix(message, "Syntax error: ")
}

// syntaxHint knows the habits of other languages.
func syntaxHint(text string) string {
	for _, habit := range [...]struct{ wrong, right string }{
		{" and ", "&&"}, {" or ", "||"}, {"===", "=="}, {"<>", "!="}, {"?.", ".?"}, {"??", ".orValue(...)"}, {"=>", "list.map(x, ...)"},
	} {
		if strings.Contains(text, habit.wrong) {
			return "write " + habit.right + " instead of " + strings.TrimSpace(habit.wrong)
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "not ") {
		return "write ! instead of not"
	}
	return ""
}

// nesting is how deep a tree is nested. The left side of an operator and the
// object of a field do not count, so that chains may be long.
func nesting(e ast.Expr) int {
	deepest := 0
	in := func(part ast.Expr, more int) { deepest = max(deepest, nesting(part)+more) }
	switch e.Kind() {
	case ast.SelectKind:
		in(e.AsSelect().Operand(), 0)
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			in(call.Target(), 0)
		}
		_, operator := operators.FindReverse(call.FunctionName())
		for i, a := range call.Args() {
			if i == 0 && (operator || call.FunctionName() == operators.OptSelect) {
				in(a, 0)
			} else {
				in(a, 1)
			}
		}
	case ast.ListKind:
		for _, a := range e.AsList().Elements() {
			in(a, 1)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			in(entry.AsMapEntry().Key(), 1)
			in(entry.AsMapEntry().Value(), 1)
		}
	case ast.ComprehensionKind:
		f := e.AsComprehension()
		in(f.IterRange(), 0)
		in(f.AccuInit(), 0)
		in(f.LoopStep(), 0)
		in(f.Result(), 0)
	}
	return deepest
}
