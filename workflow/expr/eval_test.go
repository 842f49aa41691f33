package expr_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// orderSchema is the input of most tests.
const orderSchema = `{
	"type": "object",
	"required": ["order_id", "customer", "amount", "items"],
	"properties": {
		"order_id": {"type": "string"},
		"customer": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "email": {"type": "string"}}},
		"amount": {"type": "number"},
		"note": {"type": ["string", "null"]},
		"express": {"type": "boolean"},
		"extra": {"type": "object", "additionalProperties": true},
		"items": {"type": "array", "items": {"type": "object", "required": ["sku", "qty", "price"],
			"properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}, "price": {"type": "number"}, "gift": {"type": "boolean"}}}}
	}
}`

func schemaType(t testing.TB, doc string) *expr.Type {
	t.Helper()
	tree, err := exact.Read(doc)
	if err != nil {
		t.Fatal(err)
	}
	return expr.OfSchema(tree)
}

func testScope(t testing.TB) *expr.Scope {
	t.Helper()
	return &expr.Scope{
		Input: schemaType(t, orderSchema),
		Steps: map[string]expr.Step{
			"charge": {Output: expr.Fields(map[string]*expr.Type{"charge_id": expr.Text(), "fee": expr.Number()})},
			"review": {Output: expr.Fields(map[string]*expr.Type{"decision": expr.Text()}), Maybe: true},
			"ship":   {Later: true},
			"raw":    {},
		},
		Vars:    map[string]*expr.Type{"level": expr.Text(), "total": expr.Number()},
		StepKey: true, Error: true, Event: true,
	}
}

func testEnv() *expr.Env {
	return &expr.Env{
		Input: json.RawMessage(`{"order_id":"o-1","customer":{"name":"Ann"},"amount":19.90,"note":null,"extra":{"a":null,"b":1},
			"items":[{"sku":"a","qty":2,"price":0.10},{"sku":"b","qty":1,"price":0.20,"gift":true}]}`),
		Steps: map[string]expr.StepEnv{
			"charge": {Output: json.RawMessage(`{"charge_id":"c-9","fee":0.3}`), Outcome: "succeeded", Attempts: 2},
			"raw":    {Output: json.RawMessage(`[1,{"x":null}]`), Outcome: "succeeded", Attempts: 1},
		},
		Vars:    map[string]json.RawMessage{"level": json.RawMessage(`"high"`), "total": json.RawMessage(`12.5`)},
		Run:     expr.RunEnv{ID: "r-1", Key: "k-1", Requester: "carol", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Now:     time.Date(2026, 1, 3, 3, 4, 5, 500_000_000, time.UTC),
		StepKey: "key-7",
		Error:   &expr.ErrorEnv{Code: "declined", Message: "card declined", Step: "charge"},
		Event:   json.RawMessage(`{"id":9007199254740993}`),
	}
}

func TestValueEval(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain", `"plain"`},
		{"${ input.order_id }", `"o-1"`},
		{"Order ${ input.order_id }, ${ input.amount } yen", `"Order o-1, 19.9 yen"`},
		{"${ 0.1 + 0.2 == 0.3 }", `true`},
		{"${ 9007199254740993 != 9007199254740992 }", `true`},
		{"${ 123456789012345678901234567890 + 1 }", `123456789012345678901234567891`},
		{"${ event.id }", `9007199254740993`},
		{"${ -5 - - 3 }", `-2`},
		{"${ 1e3 + 0x10 + .5 }", `1016.5`},
		{"${ 1 / 3 }", `0.3333333333333333333333333333333333`},
		{"${ input.items.map(i, i.qty * i.price).sum() }", `0.4`},
		{"${ size(input.items) > 1 }", `true`},
		{"${ input.items[0].sku }", `"a"`},
		{"${ input.items[size(input.items) - 1].sku }", `"b"`},
		{"${ input.items.filter(i, i.?gift.orValue(false)).map(i, i.sku) }", `["b"]`},
		{"${ input.items.exists_one(i, i.qty == 1) }", `true`},
		{"${ input.?note.orValue(\"none\") }", `"none"`},
		{"${ has(input.note) ? input.note : \"none\" }", `"none"`},
		{"${ input.?customer.?email.orValue(\"-\") }", `"-"`},
		{"${ steps.charge.output.charge_id }", `"c-9"`},
		{"${ steps.charge.attempts + 1 }", `3`},
		{"${ steps.review.outcome }", `"not_run"`},
		{"${ steps.review.output.?decision.orValue(\"reject\") }", `"reject"`},
		{"${ steps.review.?output.?decision.orValue(\"reject\") }", `"reject"`},
		{"${ steps.charge.error.code == \"\" }", `true`},
		{"${ steps.raw.output[1].x == null }", `true`},
		{"${ {\"b\": 1, \"a\": [input.amount]} }", `{"a":[19.9],"b":1}`},
		{"${ now }", `"2026-01-03T03:04:05.5Z"`},
		{"${ now - run.started_at > duration(\"24h\") }", `true`},
		{"${ now - run.started_at }", `"86400.5s"`},
		{"${ run.requester }/${ step.key }/${ error.code }", `"carol/key-7/declined"`},
		{"${ vars.level in [\"low\", \"high\"] }", `true`},
		{"$${ literal }", `"${ literal }"`},
		{"${ \"}\" + '}' }", `"}}"`},
		{"${ input.customer }", `{"name":"Ann"}`},
		{"c: ${ input.customer }", `"c: {\"name\":\"Ann\"}"`},
	} {
		v, _, problems := expr.CompileText(test.text, testScope(t))
		if problems != nil {
			t.Errorf("%s: %v", test.text, problems)
			continue
		}
		got, err := v.Eval(testEnv())
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if string(got) != test.want {
			t.Errorf("%s: got %s, want %s", test.text, got, test.want)
		}
	}
}
