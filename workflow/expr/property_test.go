package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"

	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// Arithmetic in an expression is that of a decimal library with 34 digits,
// whether the numbers come as numerals or as data; what it would round is an
// error, except in a quotient.
func TestArithmeticAgreesWithTheDecimalLibrary(t *testing.T) {
	scope := &expr.Scope{Event: true}
	rapid.Check(t, func(t *rapid.T) {
		numeral := rapid.StringMatching(`(0|[1-9][0-9]{0,24})(\.[0-9]{1,9})?`)
		x, y := numeral.Draw(t, "x"), numeral.Draw(t, "y")
		operator := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "operator")
		env := &expr.Env{Event: json.RawMessage(fmt.Sprintf(`{"x":%s,"y":%s}`, x, y))}
		var answers []string
		for _, text := range []string{x + operator + y, "event.x" + operator + "event.y", x + operator + " event.y"} {
			v, _, problems := expr.CompileText("${"+text+"}", scope)
			if problems != nil {
				t.Fatalf("%s: %v", text, problems)
			}
			got, err := v.Eval(env)
			answers = append(answers, fmt.Sprint(string(got), err != nil))
		}
		if answers[0] != answers[1] || answers[0] != answers[2] {
			t.Fatalf("%s %s %s: %v", x, operator, y, answers)
		}
		if want := reference(x, operator, y); answers[0] != want {
			t.Fatalf("%s %s %s: got %s, want %s", x, operator, y, answers[0], want)
		}
	})
}

func reference(x, operator, y string) string {
	a, _, _ := apd.NewFromString(x)
	b, _, _ := apd.NewFromString(y)
	ctx, out := apd.BaseContext.WithPrecision(34), new(apd.Decimal)
	ctx.Rounding = apd.RoundHalfEven
	var condition apd.Condition
	var err error
	switch operator {
	case "+":
		condition, err = ctx.Add(out, a, b)
	case "-":
		condition, err = ctx.Sub(out, a, b)
	case "*":
		condition, err = ctx.Mul(out, a, b)
	case "/":
		condition, err = ctx.Quo(out, a, b)
	}
	if err != nil || operator != "/" && condition.Inexact() {
		return "true"
	}
	if out.IsZero() {
		return "0false"
	}
	text, err := exact.Canonical([]byte(out.Text('f')))
	return fmt.Sprint(string(text), err != nil)
}

// A path is computed without the evaluator; it must answer what that answers.
func TestPathsAnswerWhatTheEvaluatorAnswers(t *testing.T) {
	scope := testScope(t)
	env := testEnv()
	env.Event = json.RawMessage(`{"a":{"b":[1,{"c":null}],"d":"x"},"n":null}`)
	for _, path := range []string{
		"event", "event.a", "event.a.b", "event.a.d", "event.n", "event.x", "event.n.x", "event.a.d.x", "event.a.b.x", "input", "input.customer", "input.amount",
		"vars.level", "vars.total", "steps.charge.output", "steps.raw.output", "steps.charge.outcome", "steps.charge.attempts", "steps.charge.error", "steps.charge.error.code",
		"run", "run.id", "run.started_at", "now", "step", "step.key", "error", "error.message",
	} {
		direct, _, problems := expr.CompileText("${ "+path+" }", scope)
		if problems != nil {
			t.Fatalf("%s: %v", path, problems)
		}
		through, _, problems := expr.CompileText("${ [1].map(i, "+path+")[0] }", scope)
		if problems != nil {
			t.Fatalf("%s: %v", path, problems)
		}
		for _, e := range []*expr.Env{env, {}} {
			a, errA := direct.Eval(e)
			b, errB := through.Eval(e)
			if string(a) != string(b) || (errA == nil) != (errB == nil) {
				t.Errorf("%s: %s, %v by path; %s, %v by the evaluator", path, a, errA, b, errB)
			}
		}
	}
}

func TestCompiledValuesMayBeUsedByManyGoroutines(t *testing.T) {
	scope := testScope(t)
	texts := []string{"${ input.items.map(i, i.qty * i.price).sum() }", "Order ${ input.order_id }, ${ input.amount }", "${ steps.charge.output.charge_id }"}
	var values []*expr.Value
	var want []string
	for _, text := range texts {
		v, _, problems := expr.CompileText(text, scope)
		if problems != nil {
			t.Fatal(problems)
		}
		got, err := v.Eval(testEnv())
		if err != nil {
			t.Fatal(err)
		}
		values, want = append(values, v), append(want, string(got))
	}
	env := testEnv()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				for i, v := range values {
					if got, err := v.Eval(env); err != nil || string(got) != want[i] {
						t.Errorf("%s: got %s, %v", texts[i], got, err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// The keys of objects are walked in order, every time.
func TestEvaluationIsDeterministic(t *testing.T) {
	members := make([]string, 50)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%02d":%d`, (i*37)%50, i)
	}
	env := testEnv()
	env.Event = json.RawMessage("{" + strings.Join(members, ",") + "}")
	first, err := evaluate(t, `[event.map(k, k).join(), json({"z": event, "a": 1})]`, env)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, `["k00k01k02k03`) {
		t.Errorf("got %.60s", first)
	}
	for range 20 {
		if again, err := evaluate(t, `[event.map(k, k).join(), json({"z": event, "a": 1})]`, env); err != nil || again != first {
			t.Fatalf("got %s, %v, and before %s", again, err, first)
		}
	}
}

func TestObjectsAndListsOfValues(t *testing.T) {
	scope := testScope(t)
	compile := func(text string) (*expr.Value, *expr.Type) {
		v, typ, problems := expr.CompileText(text, scope)
		if problems != nil {
			t.Fatal(problems)
		}
		return v, typ
	}
	id, idType := compile("${ input.order_id }")
	sum, sumType := compile("${ input.amount + 0.10 }")
	fixed := expr.Constant(json.RawMessage(`{"z":1.0,"y":null}`))
	list, listType := expr.ListOf([]*expr.Value{id, fixed}, []*expr.Type{idType, expr.Any()})
	v, typ := expr.Object([]string{"sum", "list", "fixed"}, []*expr.Value{sum, list, fixed}, []*expr.Type{sumType, listType, nil})
	if v.Constant() || typ.Kind != expr.KindObject {
		t.Errorf("constant %v, type %s", v.Constant(), typ.Words())
	}
	got, err := v.Eval(testEnv())
	if want := `{"fixed":{"y":null,"z":1},"list":["o-1",{"y":null,"z":1}],"sum":20}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if want := `{"fixed":{"y":null,"z":1},"list":["${ input.order_id }",{"y":null,"z":1}],"sum":"${ input.amount + 0.10 }"}`; v.Source() != want {
		t.Errorf("source %s, want %s", v.Source(), want)
	}
	all, _ := expr.Object([]string{"b", "a"}, []*expr.Value{fixed, fixed}, []*expr.Type{nil, nil})
	if got, err := all.Eval(nil); !all.Constant() || err != nil || string(got) != `{"a":{"y":null,"z":1},"b":{"y":null,"z":1}}` {
		t.Errorf("an object of constants is constant: %v, %s, %v", all.Constant(), got, err)
	}
	if got, err := list.Text(testEnv()); err != nil || got != `["o-1",{"y":null,"z":1}]` {
		t.Errorf("as text: %s, %v", got, err)
	}
}

func TestTexts(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain", "plain"},
		{"", ""},
		{"$${x} costs $5", "${x} costs $5"},
		{"${ input.amount }", "19.9"},
		{"${ input.items[0] }", `{"price":0.1,"qty":2,"sku":"a"}`},
		{"${ 1 == 1 } ${ [1, 2.50] } ${ now } ${ duration('1h') }", "true [1,2.5] 2026-01-03T03:04:05.5Z 3600s"},
		{"${ '${' } }", "${ }"},
		{"${ {'a': {'b': 1}}.a.b }${ \"}\" }", "1}"},
		{"${ input.amount }\n", "19.9"},
		{" ${ input.amount }", " 19.9"},
	} {
		v, _, problems := expr.CompileText(test.text, testScope(t))
		if problems != nil {
			t.Errorf("%q: %v", test.text, problems)
			continue
		}
		if got, err := v.Text(testEnv()); err != nil || got != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.text, got, err, test.want)
		}
		if v.Source() != test.text {
			t.Errorf("%q: source %q", test.text, v.Source())
		}
	}
}

// One whole expression keeps its type; anything else is text.
func TestTypesOfTexts(t *testing.T) {
	for _, test := range []struct {
		text string
		want expr.Kind
	}{
		{"x", expr.KindString},
		{"${ input.amount }", expr.KindNumber},
		{"${ input.amount }\n", expr.KindNumber},
		{"${ input.amount } yen", expr.KindString},
		{"${ input.items }", expr.KindList},
		{"${ input }", expr.KindObject},
		{"${ now }", expr.KindTime},
		{"${ null }", expr.KindNull},
		{"${ event.x }", expr.KindAny},
		{"${ 1 < 2 ? 'a' : 'b' }", expr.KindString},
		{"${ input.items.map(i, i.qty).sum() }", expr.KindNumber},
		{"${ event.x + event.y }", expr.KindAny},
		{"${ event.x - 1 }", expr.KindNumber},
	} {
		_, typ, problems := expr.CompileText(test.text, testScope(t))
		if problems != nil || typ.Kind != test.want {
			t.Errorf("%s: got %v, %v", test.text, typ.Words(), problems)
		}
	}
}

func FuzzCompileText(f *testing.F) {
	for _, seed := range []string{
		"plain", "${ input.amount }", "a ${ input.items.map(i, i.qty * 1.50).sum() } b", "$${ x", "${ '}' + r\"\\\" }", "${ 0x1F + .5e-3 - 9007199254740993 }",
		"${ input.?note.orValue(\"\") }", "${ {\"a\": [1, 2][?0]} }", "${ 1e999999999 }", "${ // } \n 1 }", "${ '''a''' + \"\"\"b\"\"\" }", "${ é }", "${ event.x[event.y] }",
		"${ input.items.exists_one(i, i.qty == 1) ? steps.review.output.?decision.value() : vars.level }", "${ -9223372036854775808 }", "${ 1.e3 }", "${ a.0 }", "${ now - duration('1h') }",
	} {
		f.Add(seed)
	}
	scope, env := testScope(f), testEnv()
	f.Fuzz(func(t *testing.T, text string) {
		v, typ, problems := expr.CompileText(text, scope)
		if (v == nil) != (problems != nil) || typ == nil {
			t.Fatalf("%q: %v, %v, %v", text, v, typ, problems)
		}
		for _, p := range problems {
			if p.Offset < 0 || p.Offset > len(text) || p.Kind == "" || p.Message == "" {
				t.Fatalf("%q: problem %+v", text, p)
			}
		}
		if v == nil {
			return
		}
		got, err := v.Eval(env)
		again, errAgain := v.Eval(env)
		if string(got) != string(again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q: %s, %v and then %s, %v", text, got, err, again, errAgain)
		}
		if err != nil {
			return
		}
		if c, err := exact.Canonical(got); err != nil || string(c) != string(got) {
			t.Fatalf("%q: %s is not canonical: %s, %v", text, got, c, err)
		}
		_, _ = v.Text(env)
	})
}

// The source of an object is JSON that reads back as what the file had.
func TestSourceOfConstantsInsideObjects(t *testing.T) {
	text, typ, problems := expr.CompileText("a \"b\" $${ c", testScope(t))
	if problems != nil {
		t.Fatal(problems)
	}
	id, idType, _ := expr.CompileText("${ input.order_id }", testScope(t))
	v, _ := expr.Object([]string{"t", "id"}, []*expr.Value{text, id}, []*expr.Type{typ, idType})
	if want := `{"id":"${ input.order_id }","t":"a \"b\" ${ c"}`; v.Source() != want {
		t.Errorf("got %s, want %s", v.Source(), want)
	}
	if got, err := v.Eval(testEnv()); err != nil || string(got) != `{"id":"o-1","t":"a \"b\" ${ c"}` {
		t.Errorf("got %s, %v", got, err)
	}
}
