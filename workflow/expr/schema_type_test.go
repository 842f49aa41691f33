package expr_test

import (
	"fmt"
	"testing"

	"github.com/ringiflow/ringi/workflow/expr"
)

// W3: what a schema says for certain is checked, and nothing else is refused.
func TestTypesComeFromTheSchema(t *testing.T) {
	for _, test := range []struct {
		schema, text string
		problem      string // "" accepts
	}{
		{`{"properties":{"a":{"type":"number"}},"type":"object","required":["a"]}`, `input.a + 1 > 2`, ""},
		{`{"properties":{"a":{"type":"number"}}}`, `input.a + "x" == "x"`, ""}, // the type object is not demanded
		{`true`, `input.a.b[0] == 1`, ""},
		{`{}`, `input.a.b[0] == 1`, ""},
		{`{"type":"object"}`, `input.anything == 1`, ""},
		{`{"type":"object","additionalProperties":false,"properties":{}}`, `input.a == 1`, expr.ProblemUnknownField},
		{`{"type":"object","properties":{"a":{}}}`, `input.b == 1`, expr.ProblemUnknownField},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `input.b == 1`, ""},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}`, `input.b == 1`, ""},
		{`{"type":"object","properties":{"a":{}},"patternProperties":{"^b":{}}}`, `input.b == 1`, ""},
		{`{"type":"object","properties":{"a":{}},"allOf":[{"required":["b"]}]}`, `input.b == 1`, ""},
		{`{"type":"object","properties":{"a":{}},"required":["b"]}`, `input.b == 1`, ""},
		{`{"type":"object","properties":{"a":{}}}`, `input.a == 1`, expr.ProblemMaybeMissing},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":["null","integer"]}}}`, `input.a == 1`, expr.ProblemMaybeMissing},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":["integer","number"]}}}`, `input.a == "x"`, expr.ProblemType},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":["integer","string"]}}}`, `input.a == "x" || input.a == 1`, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"enum":["x","y"]}}}`, `input.a == 1`, expr.ProblemType},
		{`{"type":"object","required":["a"],"properties":{"a":{"enum":["x",1]}}}`, `input.a == 1`, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"enum":["x",null]}}}`, `input.a == "x"`, expr.ProblemMaybeMissing},
		{`{"type":"object","required":["a"],"properties":{"a":{"const":true}}}`, `input.a`, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"anyOf":[{"type":"string"}]}}}`, `input.a == 1`, ""},
		{`{"type":"array","items":{"type":"string"}}`, `input[0] == 1`, expr.ProblemType},
		{`{"type":"array","items":{"type":["string","null"]}}`, `input[0] == null`, ""},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}}`, `input[0] == 1`, ""},
		{`{"type":"array"}`, `input[0] == 1`, ""},
		{`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"string"}}}`, `input.a == 1`, expr.ProblemType},
		{`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`, `input.a.a.a.a == "x"`, expr.ProblemType},
		{`{"type":"object","required":["a"],"properties":{"a":{"$ref":"elsewhere.json"}}}`, `input.a == 1`, ""},
		{`{"type":["object","null"],"properties":{"a":{}}}`, `input.b == 1`, ""},
	} {
		_, problems := expr.CompileCondition(test.text, &expr.Scope{Input: schemaType(t, test.schema)})
		if got := kinds(problems); got != test.problem {
			t.Errorf("%s of %s: got %q, want %q", test.text, test.schema, got, test.problem)
		}
	}
}

func kinds(problems []expr.Problem) string {
	out := ""
	for _, p := range problems {
		out += p.Kind
	}
	return out
}

func TestAVariableThatMayBeSetDemandsAnAlternative(t *testing.T) {
	scope := &expr.Scope{Vars: map[string]*expr.Type{"a": expr.Number()}, MaybeVars: map[string]*expr.Type{"b": expr.Number()}}
	for text, want := range map[string]string{
		`vars.a == 1`: "", `vars.b == 1`: expr.ProblemMaybeMissing, `vars.?b.orValue(0) == 1`: "", `has(vars.b) && vars.b == 1`: "", `vars.c == 1`: expr.ProblemUnknownField,
	} {
		if _, problems := expr.CompileCondition(text, scope); kinds(problems) != want {
			t.Errorf("%s: got %v, want %s", text, problems, want)
		}
	}
}

func TestJoinIsTheTypeOfEither(t *testing.T) {
	number, text := expr.Number(), expr.Text()
	object := expr.Fields(map[string]*expr.Type{"a": number, "b": text})
	other := expr.Fields(map[string]*expr.Type{"a": number})
	for _, test := range []struct {
		a, b *expr.Type
		want expr.Kind
	}{
		{number, number, expr.KindNumber},
		{number, text, expr.KindAny},
		{expr.List(number), expr.List(text), expr.KindList},
		{object, other, expr.KindObject},
		{object, expr.Open(), expr.KindObject},
		{object, text, expr.KindAny},
	} {
		if got := expr.Join(test.a, test.b); got.Kind != test.want {
			t.Errorf("%s or %s: got %s", test.a.Words(), test.b.Words(), got.Words())
		}
	}
	scope := &expr.Scope{Input: expr.Join(object, other)}
	for text, want := range map[string]string{`input.a == 1`: "", `input.b == "x"`: expr.ProblemMaybeMissing, `input.c == 1`: expr.ProblemUnknownField} {
		if _, problems := expr.CompileCondition(text, scope); kinds(problems) != want {
			t.Errorf("%s: got %v, want %s", text, problems, want)
		}
	}
}

func TestNearestFindsTheWordThatWasMeant(t *testing.T) {
	words := []string{"amount", "customer", "order_id", "id"}
	for word, want := range map[string]string{
		"amuont": "amount", "amounts": "amount", "Amount": "amount", "orderid": "order_id", "orderId": "order_id", "costumer": "customer", "ids": "id", "total": "", "x": "", "": "",
	} {
		if got := expr.Nearest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := expr.Nearest(fmt.Sprintf("%0100d", 0), words); got != "" {
		t.Errorf("a long word: got %q", got)
	}
}
