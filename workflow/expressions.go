package workflow

import (
	"encoding/json"

	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// What the language takes from the packages below it: expressions from expr,
// exact JSON from exact. Nothing outside of workflow imports those.
type (
	// Value is a part of a definition that yields a JSON value for a run: a
	// constant, an expression, a text with expressions in it, or an object or
	// list of such.
	Value = expr.Value
	// Condition is an expression that is true or false.
	Condition = expr.Condition
	// CEL is the evaluator of production.
	CEL = expr.CEL
	// EvalError is an expression that yields no value with the data of a run.
	EvalError = expr.EvalError
)

// Short names for use inside the package.
type (
	typ         = expr.Type
	roots       = expr.Scope
	stepType    = expr.Step
	exprProblem = expr.Problem
)

const (
	kindNull     = expr.KindNull
	kindString   = expr.KindString
	kindNumber   = expr.KindNumber
	kindList     = expr.KindList
	kindObject   = expr.KindObject
	kindTime     = expr.KindTime
	kindOptional = expr.KindOptional

	problemSyntax       = expr.ProblemSyntax
	problemUnknownRoot  = expr.ProblemUnknownRoot
	problemUnknownStep  = expr.ProblemUnknownStep
	problemUnknownField = expr.ProblemUnknownField
	problemUnknownFunc  = expr.ProblemUnknownFunction
	problemType         = expr.ProblemType
	problemMaybeMissing = expr.ProblemMaybeMissing
	problemMaybeNotRun  = expr.ProblemMaybeNotRun
	problemLaterStep    = expr.ProblemLaterStep
	problemNotBool      = expr.ProblemNotBool
	problemNotText      = expr.ProblemNotText
	problemTooLong      = expr.ProblemTooLong
	problemTooDeep      = expr.ProblemTooDeep
	problemInterpolated = expr.ProblemInterpolated
	problemNumber       = expr.ProblemNumber
)

// Canonical writes a JSON document in the one form that equal documents share:
// RFC 8785 for the order of keys, the writing of strings and the layout, but
// numbers as exact decimals (no exponent, no trailing zeros, no -0), never
// through a float: 9007199254740993 and 9007199254740992 differ, 0.10 and 0.1
// agree. It refuses, with the byte where it stands, a document that has no
// single reading or cannot be kept exactly: repeated keys, invalid UTF-8, lone
// surrogates, NUL, nesting deeper than 64, numbers of more than 34 digits.
func Canonical(doc []byte) (json.RawMessage, error) { return exact.Canonical(doc) }

// Digest returns the SHA-256 of the canonical form of a JSON document, as 64
// hexadecimal digits. Its errors are those of Canonical.
func Digest(doc []byte) (string, error) { return exact.Digest(doc) }

func anyTyp() *typ    { return expr.Any() }
func numberTyp() *typ { return expr.Number() }
func boolTyp() *typ   { return expr.Bool() }

func join(a, b *typ) *typ { return expr.Join(a, b) }

func nearest(name string, names []string) string { return expr.Nearest(name, names) }

func compileScalar(text string, r *roots) (*Value, *typ, []exprProblem) {
	return expr.CompileText(text, r)
}

func compileCondition(text string, r *roots) (*Condition, []exprProblem) {
	return expr.CompileCondition(text, r)
}

func constValue(raw json.RawMessage) *Value { return expr.Constant(raw) }

func objectValue(keys []string, vals []*Value, types []*typ) (*Value, *typ) {
	return expr.Object(keys, vals, types)
}

func listValue(vals []*Value, types []*typ) (*Value, *typ) { return expr.ListOf(vals, types) }
