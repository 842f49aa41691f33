package expr

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/ringiflow/ringi/workflow/exact"
)

// A language is what all expressions share: the parser and evaluator, and the
// functions by name.
type language struct {
	env       *cel.Env
	functions map[string][]function
}

// shared makes the language when the first expression is compiled; it is never
// changed afterwards, and importing the package costs nothing.
//
// constant: the same for every caller
var shared = sync.OnceValues(func() (language, error) {
	l := language{functions: map[string][]function{}}
	for _, f := range library() {
		l.functions[f.name] = append(l.functions[f.name], f)
	}
	var err error
	l.env, err = newEnv(l.functions)
	return l, err
})

// compile compiles one expression that stands at byte base of the text of the
// definition. With problems the program is nil.
func compile(text string, base int, r *Scope) (*program, *Type, []Problem) {
	if len(text) > maxExpression {
		return nil, Any(), []Problem{{
			Offset: base, Kind: ProblemTooLong,
			Message:    fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(text), maxExpression),
			Suggestion: "put parts of it into a set step",
		}}
	}
	if strings.TrimSpace(text) == "" {
		return nil, Any(), []Problem{{Offset: base, Kind: ProblemSyntax, Message: "the expression is empty", Suggestion: "${ input }"}}
	}
	if err := exact.Clean(text); err != nil {
		return nil, Any(), []Problem{{Offset: base, Kind: ProblemSyntax, Message: err.Error()}}
	}
	l, err := shared()
	if err != nil {
		return nil, Any(), []Problem{{Offset: base, Kind: ProblemSyntax, Message: err.Error()}}
	}
	tamed, numerals := tame(text)
	parsed, issues := l.env.Parse(tamed)
	offsets := byteOffsets(text)
	if issues.Err() != nil {
		return nil, Any(), syntaxProblems(text, base, offsets, issues)
	}
	tree := parsed.NativeRep()
	if depth := nesting(tree.Expr()); depth > maxDepth {
		return nil, Any(), []Problem{tooDeep(base, fmt.Sprintf("%d deep", depth))}
	}
	c := &checker{
		text: text, base: base, offsets: offsets, numerals: numerals,
		info: tree.SourceInfo(), build: ast.NewExprFactory(), r: r, library: l.functions,
	}
	t := c.infer(tree.Expr())
	if c.problems != nil {
		return nil, Any(), c.problems
	}
	prog, err := plan(l.env, tree, strings.TrimSpace(text), r)
	if err != nil {
		return nil, Any(), []Problem{{Offset: base, Kind: ProblemSyntax, Message: err.Error()}}
	}
	return prog, t, nil
}

func tooDeep(base int, how string) Problem {
	return Problem{
		Offset: base, Kind: ProblemTooDeep,
		Message:    fmt.Sprintf("the expression is nested %s; at most %d are allowed", how, maxDepth),
		Suggestion: "put parts of it into a set step",
	}
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
func syntaxProblems(text string, base int, offsets []int, issues *cel.Issues) []Problem {
	first := issues.Errors()[0]
	at := 0
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < first.Location.Line()-1 && i < len(lines); i++ {
		at += len(lines[i])
	}
	if line := first.Location.Line() - 1; line >= 0 && line < len(lines) {
		at += columnBytes(lines[line], first.Location.Column())
	}
	if strings.Contains(first.Message, "recursion") {
		return []Problem{tooDeep(base, "too deep to be read")}
	}
	p := Problem{Offset: base + min(at, len(text)), Kind: ProblemSyntax, Message: "this is not an expression: " + plainSyntax(first.Message)}
	p.Suggestion = syntaxHint(text)
	return []Problem{p}
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

// plainSyntax says in plain words what the parser says about its tokens.
func plainSyntax(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	quoted := func(after string) string {
		text, _ := strings.CutPrefix(message, after)
		if end := strings.LastIndex(text, "'"); end >= 0 {
			return text[:end]
		}
		return text
	}
	switch {
	case strings.HasPrefix(message, "mismatched input '<EOF>'"):
		return "it ends too early"
	case strings.HasPrefix(message, "mismatched input '"):
		message, _, _ = strings.Cut(message, " expecting ")
		return quoted("mismatched input '") + " cannot stand here"
	case strings.HasPrefix(message, "extraneous input '"):
		message, _, _ = strings.Cut(message, " expecting ")
		return quoted("extraneous input '") + " cannot stand here"
	case strings.HasPrefix(message, "no viable alternative at input '"):
		return quoted("no viable alternative at input '") + " cannot stand here"
	case strings.HasPrefix(message, "token recognition error at: '"):
		return "the character " + quoted("token recognition error at: '") + " cannot stand here"
	case strings.HasPrefix(message, "missing '"):
		message, _, _ = strings.Cut(message, " at ")
		return quoted("missing '") + " is missing"
	}
	return message
}

// syntaxHint knows the habits of other languages.
func syntaxHint(text string) string {
	for _, habit := range [...]struct{ wrong, right string }{
		{" and ", "&&"}, {" or ", "||"}, {"===", "=="}, {"<>", "!="}, {"?.", ".?"}, {"??", ".orValue(...)"}, {"=>", "list.map(x, ...)"}, {" = ", "=="},
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
