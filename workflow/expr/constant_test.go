package expr_test

import (
	"testing"

	"github.com/ringiflow/ringi/workflow/expr"
)

func TestAConstantTextInsideOthersIsJSON(t *testing.T) {
	text, kind, problems := expr.CompileText("it", testScope(t))
	if problems != nil {
		t.Fatal(problems)
	}
	list, _ := expr.ListOf([]*expr.Value{text}, []*expr.Type{kind})
	object, _ := expr.Object([]string{"a", "b"}, []*expr.Value{text, list}, []*expr.Type{kind, kind})
	if got, err := object.Eval(nil); err != nil || string(got) != `{"a":"it","b":["it"]}` {
		t.Errorf("%s, %v", got, err)
	}
}
