package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/cockroachdb/apd/v3"

	"github.com/ringiflow/ringi/workflow/exact"
)

// Of CEL its parser and its evaluator are used; its type checker and its
// standard library are not. The checker (check.go) works on the types of JSON
// Schema and speaks to people; the functions (cel_functions.go) compute with
// exact decimals.

const (
	// maxExpression is the longest expression, in bytes: what a person can
	// still read, with room to spare.
	maxExpression = 4 << 10
	// maxDepth is how deep an expression may be nested; a chain such as
	// a + b + c does not nest.
	maxDepth = 32
	// maxNodes bounds the tree that macros make of an expression; no text of
	// 4 KiB needs as many.
	maxNodes = 20_000
	// maxCost bounds the work of one evaluation, about 3 ms: expressions run
	// on the way to the commit and hold up the runs behind them.
	maxCost = 10_000
)

// CEL evaluates compiled expressions. The zero value is ready to use, holds
// nothing, and may be used by any number of goroutines.
type CEL struct{}

// Value returns what v yields in env, as Value.Eval does.
func (CEL) Value(v *Value, env *Env) (json.RawMessage, error) { return v.Eval(env) }

// Condition reports whether c holds in env, as Condition.Eval does.
func (CEL) Condition(c *Condition, env *Env) (bool, error) { return c.Eval(env) }

// An EvalError is an expression that yields no value with the data of a run.
type EvalError struct {
	Expression string // as the definition has it, without ${ }
	Message    string // what went wrong, in words
}

// Error returns the expression and the message in one line.
func (e *EvalError) Error() string { return exact.Shorten(e.Expression) + ": " + e.Message }

// A program is a compiled expression: immutable, safe for concurrent use.
type program struct {
	text  string
	roots *Scope
	path  []string // the names, when the expression is nothing else
	cel   cel.Program
}

// eval computes the expression. The frame is shared by the parts of one value.
func (p *program) eval(f *frame) (ref.Val, error) {
	f.types = p.roots
	if p.path != nil {
		return p.follow(f)
	}
	v, _, err := p.cel.Eval(f)
	if err != nil {
		return nil, &EvalError{Expression: p.text, Message: explain(err)}
	}
	if o, ok := v.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, &EvalError{Expression: p.text, Message: "there is no value; say what to take instead with .orValue(...)"}
		}
		v = o.GetValue()
	}
	return v, nil
}

// follow computes a path of names, the most common expression by far, without
// the evaluator; it answers what that would.
func (p *program) follow(f *frame) (ref.Val, error) {
	root, found := f.ResolveName(p.path[0])
	v, _ := root.(ref.Val)
	if !found {
		return nil, &EvalError{Expression: p.text, Message: explain(errors.New("no such attribute"))}
	}
	for _, name := range p.path[1:] {
		if types.IsError(v) {
			break
		}
		if o, ok := v.(traits.Mapper); ok {
			v, found = o.Find(types.String(name))
		} else {
			found = false
		}
		if !found {
			return nil, &EvalError{Expression: p.text, Message: explain(errors.New("no such key: " + name))}
		}
	}
	if err, bad := v.(*types.Err); bad {
		return nil, &EvalError{Expression: p.text, Message: explain(err)}
	}
	return v, nil
}

// explain turns an error of the evaluator into words for people.
func explain(err error) string {
	text := err.Error()
	if key, ok := strings.CutPrefix(text, "no such key: "); ok {
		return fmt.Sprintf("there is no field %q; read it as %s.orValue(...) if it may be missing", key, safely(key))
	}
	if index, ok := strings.CutPrefix(text, "index out of bounds: "); ok {
		return "the list has no element " + index
	}
	if strings.Contains(text, "cost limit exceeded") {
		return fmt.Sprintf("it takes more than %d steps of work; let an activity do it", maxCost)
	}
	if strings.HasPrefix(text, "unsupported index type") {
		return "the position in a list is a number"
	}
	if strings.HasSuffix(text, "expected iterable type") {
		return "only the elements of a list or the keys of an object can be walked"
	}
	if strings.HasPrefix(text, "no such attribute") {
		return "a name that it uses has no value here"
	}
	if strings.HasPrefix(text, "no such overload") {
		return "an operator or function met a value of the wrong type"
	}
	return text
}

// costs charges functions for the size of what they read and build; everything
// else costs what CEL says. A unit is about 0.3 µs.
type costs struct{}

func (costs) CallCost(name, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	for _, v := range args {
		if s, ok := v.(types.String); ok {
			cost += uint64(len(s)) / 1024 // copied, or compared byte by byte
		}
	}
	switch name {
	case "matches":
		if len(args) == 2 { // the pattern is compiled, and each byte is tried against it
			cost += 32 + (extent(args[0])/4+1)*(extent(args[1])/4+1)
		}
	case operators.Equals, operators.NotEquals:
		if _, text := args[0].(types.String); !text {
			cost += (extent(args[0]) + extent(args[1])) / 64
		}
	case "sum", "min", "max", "join", "split", "sha256", "url_escape", "replace", "json", operators.In, operators.Add:
		cost += extent(result) / 64
		for _, v := range args {
			cost += extent(v) / 32
		}
	}
	return &cost
}

// extent measures how much work it is to walk over a value: 16 for each node
// and 1 for four bytes of text.
func extent(v ref.Val) uint64 {
	switch x := v.(type) {
	case types.String:
		return uint64(len(x)) / 4
	case *listVal:
		return nodeExtent(x.elems)
	case *objectVal:
		return nodeExtent(x.o)
	case *documentVal:
		return uint64(len(x.text))
	case traits.Sizer:
		if n, ok := x.Size().(types.Int); ok {
			return uint64(n) * 16
		}
	}
	return 0
}

func nodeExtent(node any) uint64 {
	n := uint64(16)
	switch x := node.(type) {
	case string:
		n += uint64(len(x)) / 4
	case []any:
		for _, e := range x {
			n += nodeExtent(e)
		}
	case *exact.Object:
		for _, e := range x.Vals {
			n += nodeExtent(e)
		}
	}
	return n
}

// newEnv makes the environment of all expressions: macros, optional values, and
// the functions of the library. Names are resolved by the checker.
func newEnv(functions map[string][]function) (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}),
		cel.Macros(cel.StandardMacros...),
		cel.OptionalTypes(),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(4 * maxDepth),
	}
	byName := map[string]map[int]func([]ref.Val) ref.Val{
		operators.In:               {2: contained},
		operators.NotStrictlyFalse: {1: notStrictlyFalse},
		keyFunction:                {1: listKey},
		objectFunction:             {1: makeObject},
	}
	for name, forms := range functions {
		for _, f := range forms {
			if f.eval == nil {
				continue // it comes with the optional values
			}
			if byName[name] == nil {
				byName[name] = map[int]func([]ref.Val) ref.Val{}
			}
			byName[name][len(f.params)] = f.eval
		}
	}
	for name, forms := range byName {
		var overloads []cel.FunctionOpt
		for n, eval := range forms {
			overloads = append(overloads, overload(name, n, eval))
		}
		opts = append(opts, cel.Function(name, overloads...))
	}
	return cel.NewCustomEnv(opts...)
}

func overload(name string, n int, eval func([]ref.Val) ref.Val) cel.FunctionOpt {
	params := make([]*cel.Type, n)
	for i := range params {
		params[i] = cel.DynType
	}
	opts := []cel.OverloadOpt{cel.FunctionBinding(func(args ...ref.Val) ref.Val { return eval(args) })}
	switch n {
	case 1:
		opts[0] = cel.UnaryBinding(func(x ref.Val) ref.Val { return eval([]ref.Val{x}) })
	case 2:
		opts[0] = cel.BinaryBinding(func(x, y ref.Val) ref.Val { return eval([]ref.Val{x, y}) })
	}
	if name == operators.NotStrictlyFalse {
		opts = append(opts, cel.OverloadIsNonStrict())
	}
	return cel.Overload(fmt.Sprintf("%s_%d", name, n), params, cel.DynType, opts...)
}

// contained is the operator in.
func contained(args []ref.Val) ref.Val {
	switch c := args[1].(type) {
	case traits.Lister:
		for i := range c.Size().(types.Int) {
			if types.Equal(c.Get(i), args[0]) == types.True {
				return types.True
			}
		}
		return types.False
	case traits.Mapper:
		return containedIn(c, args[0])
	}
	return mismatch(operators.In, args)
}

// notStrictlyFalse lets all() and exists() go on over an error, as CEL defines.
func notStrictlyFalse(args []ref.Val) ref.Val {
	if b, ok := args[0].(types.Bool); ok {
		return b
	}
	return types.True
}

// keyFunction stands around every index that is not a literal: it makes the
// position of a number.
const keyFunction = "@key"

func listKey(args []ref.Val) ref.Val {
	n, ok := args[0].(*numVal)
	if !ok {
		return args[0]
	}
	i, whole := n.index()
	if !whole {
		return fail("%s is not a position in a list", n.text())
	}
	return types.Int(i)
}

// textOf is a value as text interpolation shows it.
func textOf(v ref.Val) (string, error) {
	switch x := v.(type) {
	case types.String:
		return string(x), nil
	case types.Null:
		return "", errNullText
	case types.Timestamp:
		return x.Time.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return durationText(x), nil
	}
	b, err := appendValue(nil, v)
	return string(b), err
}

func durationText(d types.Duration) string {
	return string(newNum(apd.New(int64(d.Duration), -9)).text()) + "s"
}

// appendValue writes a value as canonical JSON.
func appendValue(b []byte, v ref.Val) ([]byte, error) {
	switch x := v.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return exact.Append(b, bool(x)), nil
	case types.String:
		if err := exact.Clean(string(x)); err != nil {
			return nil, err
		}
		return exact.AppendString(b, string(x)), nil
	case *numVal:
		n, err := exact.NumberOf(&x.d)
		return append(b, n...), err
	case types.Timestamp, types.Duration:
		s, err := textOf(x)
		return exact.AppendString(b, s), err
	case namer:
		return appendObject(b, x)
	case traits.Lister:
		return appendList(b, x)
	case *types.Optional:
		return nil, errors.New("a value that may be missing needs .orValue(...)")
	}
	return nil, fmt.Errorf("a %s is not JSON", v.Type().TypeName())
}

func appendList(b []byte, l traits.Lister) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i := range l.Size().(types.Int) {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, l.Get(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, o namer) ([]byte, error) {
	switch x := o.(type) {
	case *objectVal:
		if !x.literal {
			return exact.Append(b, x.o), nil
		}
	case *documentVal:
		if full, ok := x.whole().(*objectVal); ok {
			return exact.Append(b, full.o), nil
		}
		return nil, errors.New("the document cannot be read")
	}
	var err error
	b = append(b, '{')
	for i, name := range o.names() {
		v := o.Get(types.String(name))
		if i > 0 {
			b = append(b, ',')
		}
		b = append(exact.AppendString(b, name), ':')
		if b, err = appendValue(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// names are the names of a path, or nil for any other expression.
func names(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			if before := names(s.Operand()); before != nil {
				return append(before, s.FieldName())
			}
		}
	}
	return nil
}

// plan makes an expression that the checker has accepted ready to run.
func plan(env *cel.Env, tree *ast.AST, text string, r *Scope) (*program, error) {
	// The evaluator takes a parsed tree as it is; the checker has resolved it.
	p, err := env.PlanProgram(tree, cel.CostLimit(maxCost), cel.CostTracking(costs{}))
	if err != nil {
		return nil, err
	}
	return &program{text: text, roots: r, path: names(tree.Expr()), cel: p}, nil
}
