package expr_test

import (
	"testing"

	"github.com/ringiflow/ringi/workflow/expr"
)

func BenchmarkEval(b *testing.B) {
	for name, text := range map[string]string{
		"path": "${ input.order_id }", "sum": "${ input.items.map(i, i.qty * i.price).sum() }", "text": "Order ${ input.order_id }, ${ input.amount } yen",
		"condition": "${ input.amount > 100000 }", "key": "${ step.key }",
	} {
		v, _, problems := expr.CompileText(text, testScope(b))
		if problems != nil {
			b.Fatal(problems)
		}
		env := testEnv()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Eval(env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	scope := testScope(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, problems := expr.CompileText("${ input.items.map(i, i.qty * i.price).sum() }", scope); problems != nil {
			b.Fatal(problems)
		}
	}
}
