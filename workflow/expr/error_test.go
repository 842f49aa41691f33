package expr_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/workflow/expr"
)

// evaluate compiles one expression and evaluates it.
func evaluate(t testing.TB, expression string, env *expr.Env) (string, error) {
	t.Helper()
	v, _, problems := expr.CompileText("${ "+expression+" }", testScope(t))
	if problems != nil {
		t.Fatalf("%s: %v", expression, problems)
	}
	got, err := v.Eval(env)
	return string(got), err
}

// W3: an expression that has no value says so; it never yields a silent null.
func TestEvaluationErrors(t *testing.T) {
	env := testEnv()
	env.Event = json.RawMessage(`{"n":1,"s":"x","big":9999999999999999999999999999999999,"list":[1,2],"nothing":null,"long":"` + strings.Repeat("x", 1000) + `"}`)
	for _, test := range []struct{ text, want string }{
		{`event.missing`, `there is no field "missing"`},
		{`event.missing.deeper`, `there is no field "missing"`},
		{`event.s.deeper`, `there is no field "deeper"`},
		{`event["a-b"]`, `[?"a-b"].orValue`},
		{`event.list[2]`, "no element 2"},
		{`event.list[event.n / 2]`, "0.5 is not a position"},
		{`event.list[event.s]`, "the position in a list is a number"},
		{`event.n + event.s`, "+ cannot take a number and text"},
		{`event.s + event.n`, "+ cannot take text and a number"},
		{`event.n > event.s`, "cannot be compared"},
		{`event.s.contains(event.n)`, "expected text, and found a number"},
		{`event.big + 0.1`, "more than 34 digits"},
		{`event.big * 10.1`, "more than 34 digits"},
		{`event.n / 0`, "division by zero"},
		{`event.n % 0`, "division by zero"},
		{`num(event.s)`, `"x" is not a number`},
		{`num("1 ")  + num("0x10")`, "is not a number"},
		{`timestamp(event.s)`, "is not an instant"},
		{`duration(event.s)`, "is not a duration"},
		{`event.s.matches("(" + event.s)`, "is not a pattern"},
		{`event.long.matches("(x{100}){10}(y{100}){10}")`, "too much to do"},
		{`event.s.matches(event.long)`, "at most 256 bytes"},
		{`min(event.nothing == null ? [] : [1])`, "min() of an empty list"},
		{`[event.s, event.n].sum()`, "sum() needs numbers, and found text"},
		{`event.n ? 1 : 2`, ""},
		{`!event.n`, "! cannot take a number"},
		{`event.s.map(x, x)`, "only the elements of a list"},
		{`round(1, 1e5)`, "cannot round to 100000 places"},
		{`"\u0000"`, "NUL"},
		{`{"a" + event.s: 1, "ax": 2}`, `key "ax" stands twice`},
		{`{event.n: 1}`, "the keys of an object are text"},
		{`optional.none()`, ""},
	} {
		v, _, problems := expr.CompileText("${ "+test.text+" }", testScope(t))
		if problems != nil {
			if test.want != "" {
				t.Errorf("%s: %v", test.text, problems)
			}
			continue
		}
		got, err := v.Eval(env)
		var e *expr.EvalError
		if !errors.As(err, &e) {
			t.Errorf("%s: got %s, %v", test.text, got, err)
			continue
		}
		if !strings.Contains(e.Message, test.want) || e.Expression != test.text {
			t.Errorf("%s: got %q for %q, want %q", test.text, e.Message, e.Expression, test.want)
		}
		for _, internal := range []string{"overload", "no such", "types.", "%!", "unsupported"} {
			if strings.Contains(e.Message, internal) {
				t.Errorf("%s: message %q speaks of the library", test.text, e.Message)
			}
		}
	}
}

func TestAConditionMustBeTrueOrFalseAtRunTimeToo(t *testing.T) {
	c, problems := expr.CompileCondition("event.id", testScope(t))
	if problems != nil {
		t.Fatal(problems)
	}
	_, err := c.Eval(testEnv())
	var e *expr.EvalError
	if !errors.As(err, &e) || !strings.Contains(e.Message, "a number") {
		t.Errorf("got %v", err)
	}
	if c.Source() != "event.id" {
		t.Errorf("source %q", c.Source())
	}
}

func TestNullInATextIsAnError(t *testing.T) {
	env := testEnv()
	env.Event = json.RawMessage(`{"x":null}`)
	v, _, problems := expr.CompileText("a ${ event.x }", testScope(t))
	if problems != nil {
		t.Fatal(problems)
	}
	if got, err := v.Eval(env); err == nil {
		t.Errorf("got %s", got)
	}
	whole, _, _ := expr.CompileText("${ event.x }", testScope(t))
	if got, err := whole.Eval(env); err != nil || string(got) != "null" {
		t.Errorf("as a whole value it is null: %s, %v", got, err)
	}
	if got, err := whole.Text(env); err == nil {
		t.Errorf("as a text: got %q", got)
	}
}

// The null of a declared member counts as absent; of an undeclared one it is null.
func TestNullOfADeclaredFieldIsAbsent(t *testing.T) {
	env := testEnv()
	for _, test := range []struct{ text, want string }{
		{`has(input.note)`, "false"},
		{`input.?note.orValue("-")`, `"-"`},
		{`"note" in input`, "false"},
		{`has(input.extra) && has(input.extra.a)`, "true"},
		{`has(input.extra) && input.extra.a == null`, "true"},
		{`input.?extra.a.orValue(1)`, "null"},
	} {
		if got, err := evaluate(t, test.text, env); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.text, got, err, test.want)
		}
	}
}

// W3: expressions run on the way to the commit and hold up the runs behind them.
func TestTheCostOfAnEvaluationIsBounded(t *testing.T) {
	env := testEnv()
	env.Event = json.RawMessage("[" + strings.Repeat("1,", 999) + "1]")
	large := json.RawMessage(`"` + strings.Repeat("x", 200_000) + `"`)
	env.Vars["level"] = large
	for _, text := range []string{
		`event.all(a, event.all(b, event.all(c, a + b + c > 0)))`,
		`event.map(a, event.map(b, [a, b]))`,
		`event.all(a, event == event)`,
		`event.all(a, event.sum() > 0)`,
		`event.all(a, sha256(vars.level) != "")`,
		`event.all(a, !steps.charge.output.charge_id.matches("(x+x+)+y"))`,
		`event.map(a, vars.level + vars.level)`,
		`event.map(a, event + event)`,
		`event.all(a, json(event) != "")`,
		`event.all(a, vars.level.contains("y") || true)`,
		`event.all(a, vars.level == vars.level + "")`,
		`event.all(a, 2 in event || a in event)`,
		`vars.level.split("").map(x, 1)`,
	} {
		_, err := evaluate(t, text, env)
		var e *expr.EvalError
		if !errors.As(err, &e) || !strings.Contains(e.Message, "steps of work") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{`event.sum()`, `event.all(a, a == 1)`, `event.filter(a, a > 1).size() == 0`, `"x" + vars.level != ""`} {
		if _, err := evaluate(t, text, env); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A root that no expression mentions is not even looked at.
func TestOnlyWhatAnExpressionMentionsIsRead(t *testing.T) {
	broken := json.RawMessage(`{"amount":1,`)
	env := &expr.Env{Input: broken, Event: broken, Vars: map[string]json.RawMessage{"level": json.RawMessage(`"high"`), "total": broken}}
	if got, err := evaluate(t, `vars.level == "high"`, env); err != nil || got != "true" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := evaluate(t, `input.amount`, env); err != nil || got != "1" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := evaluate(t, `vars.total`, env); err == nil {
		t.Errorf("got %s", got)
	}
	if got, err := evaluate(t, `input`, env); err == nil {
		t.Errorf("got %s", got)
	}
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	env := testEnv()
	env.Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("JST", 9*3600))
	for _, test := range []struct{ text, want string }{
		{`now`, `"2026-01-01T18:04:05Z"`},
		{`timestamp("2026-01-02T03:04:05.250+09:00")`, `"2026-01-01T18:04:05.25Z"`},
		{`now + duration("90m")`, `"2026-01-01T19:34:05Z"`},
		{`duration("90m")`, `"5400s"`},
		{`duration("1500ms")`, `"1.5s"`},
		{`seconds(duration("1500ms")) + 1`, `2.5`},
		{`[now.getFullYear(), now.getMonth(), now.getDate(), now.getHours(), now.getMinutes(), now.getSeconds(), now.getDayOfWeek()]`, `[2026,0,1,18,4,5,4]`},
	} {
		if got, err := evaluate(t, test.text, env); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.text, got, err, test.want)
		}
	}
}

func TestFunctions(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`size("añb")`, `3`},
		{`size({"a": 1})`, `1`},
		{`[3, 1, 2].min() + [3, 1, 2].max()`, `4`},
		{`min(2, 1) + max(2, 1)`, `3`},
		{`sum([])`, `0`},
		{`sum([0.1, 0.2])`, `0.3`},
		{`abs(-1.5)`, `1.5`},
		{`[round(2.5), round(-2.5), round(1.005, 2), floor(-1.5), ceil(-1.5)]`, `[3,-3,1.01,-2,-1]`},
		{`num("12.50")`, `12.5`},
		{`string(12.50) + string(true) + "x"`, `"12.5truex"`},
		{`string(now)`, `"2026-01-03T03:04:05.5Z"`},
		{`json({"b": 1.0, "a": [null, "é"]})`, `"{\"a\":[null,\"é\"],\"b\":1}"`},
		{`"a,b".split(",")`, `["a","b"]`},
		{`["a", "b"].join("-") + ["x"].join()`, `"a-bx"`},
		{`"abc".replace("b", "--")`, `"a--c"`},
		{`" a ".trim() + "ÄB".lowerAscii() + "äb".upperAscii()`, `"aÄbäB"`},
		{`"abc".startsWith("a") && "abc".endsWith("c") && "abc".contains("b") && "abc".matches("^a.c$")`, `true`},
		{`url_escape("a b/é?&~")`, `"a%20b%2F%C3%A9%3F%26~"`},
		{`sha256("")`, `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`},
		{`{"b": 1, "a": 2}.map(k, k)`, `["a","b"]`},
		{`{"b": 1, ?"a": input.?note}`, `{"b":1}`},
		{`[1, ?input.?note]`, `[1]`},
		{`[1, 2] + [3]`, `[1,2,3]`},
		{`[1] == [1.0] && {"a": 1} == {"a": 1.0}`, `true`},
		{`input.?express.or(optional.of(true)).orValue(false)`, `true`},
		{`[1, 2, 3][?5].orValue(0) + [1, 2, 3][?1].orValue(0)`, `2`},
		{`10 % 4`, `2`},
		{`-input.amount`, `-19.9`},
		{`r"\d" + '''a"b'''`, `"\\da\"b"`},
	} {
		if got, err := evaluate(t, test.text, testEnv()); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.text, got, err, test.want)
		}
	}
}
