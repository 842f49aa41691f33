package expr

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/ringiflow/ringi/workflow/exact"
)

// render writes a node as text for messages. Macros have lost their form and
// are shown as "this".
func render(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		s := e.AsSelect()
		text := render(s.Operand()) + "." + s.FieldName()
		if s.IsTestOnly() {
			return "has(" + text + ")"
		}
		return text
	case ast.LiteralKind:
		return renderLiteral(e.AsLiteral())
	case ast.ListKind:
		return "[" + renderAll(e.AsList().Elements()) + "]"
	case ast.CallKind:
		return renderCall(e.AsCall())
	}
	return "this"
}

func renderAll(list []ast.Expr) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = render(e)
	}
	return strings.Join(parts, ", ")
}

func renderLiteral(v ref.Val) string {
	switch x := v.(type) {
	case types.String:
		return string(exact.AppendString(nil, string(x)))
	case *numVal:
		return string(x.text())
	case types.Null:
		return "null"
	case types.Bool:
		if x {
			return "true"
		}
		return "false"
	case types.Int:
		return string(numOf(int64(x)).text())
	}
	return "this"
}

func renderCall(call ast.CallExpr) string {
	args := call.Args()
	name := call.FunctionName()
	switch name {
	case operators.Index:
		return render(args[0]) + "[" + render(args[1]) + "]"
	case operators.OptIndex:
		return render(args[0]) + "[?" + render(args[1]) + "]"
	case operators.OptSelect:
		field, _ := literalText(args[1])
		return render(args[0]) + ".?" + field
	case operators.Conditional:
		return render(args[0]) + " ? " + render(args[1]) + " : " + render(args[2])
	case operators.In:
		return render(args[0]) + " in " + render(args[1])
	case keyFunction:
		return render(args[0])
	}
	if call.IsMemberFunction() {
		return render(call.Target()) + "." + name + "(" + renderAll(args) + ")"
	}
	switch sign, operator := operators.FindReverse(name); {
	case operator && len(args) == 2:
		return render(args[0]) + " " + sign + " " + render(args[1])
	case operator && len(args) == 1:
		return sign + render(args[0])
	}
	return name + "(" + renderAll(args) + ")"
}

// path is a chain of names such as input.customer.name, or "" for anything
// else. Two equal paths in one scope name one value.
func path(e ast.Expr) string {
	operand, name := ast.Expr(nil), ""
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		operand, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if fn := call.FunctionName(); fn != operators.Index && fn != operators.OptSelect {
			return ""
		}
		var fixed bool
		if name, fixed = literalText(call.Args()[1]); !fixed {
			return ""
		}
		operand = call.Args()[0]
	default:
		return ""
	}
	if before := path(operand); before != "" {
		return before + "." + name
	}
	return ""
}
