package expr_test

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow/expr"
)

// problemCases are conditions with exactly one problem each.
var problemCases = []struct {
	text       string
	offset     int
	kind       string
	message    string // a part of it
	suggestion string // a part of it
}{
	// operands that do not go together
	{`input.amount > "x"`, 0, expr.ProblemType, `input.amount is a number, "x" is text`, `num("x")`},
	{`input.amount > "100"`, 0, expr.ProblemType, `input.amount is a number, "100" is text`, `input.amount > 100`},
	{`input.amount + "x" == "a"`, 0, expr.ProblemType, `"x" is text`, `string(input.amount) + "x"`},
	{`input.order_id == 1`, 0, expr.ProblemType, "can never be equal", "num(input.order_id) == 1"},
	{`now > "2020-01-01T00:00:00Z"`, 0, expr.ProblemType, "now is a time", `timestamp("2020-01-01T00:00:00Z")`},
	{`!input.amount`, 0, expr.ProblemType, "input.amount is a number", ""},
	{`input.amount && true`, 0, expr.ProblemType, "input.amount is a number, not true or false", ""},
	{`input.express.orValue(1) == 1`, 0, expr.ProblemMaybeMissing, "input.express", ""},
	{`input.amount in ["a"]`, 0, expr.ProblemType, "the list holds text", ""},
	{`1 in input.amount`, 5, expr.ProblemType, "in needs a list or an object", ""},
	{`true ? true : "a"`, 0, expr.ProblemType, "both results must be of one kind", ""},
	{`input.amount.foo == 1`, 0, expr.ProblemType, "is a number and has no field", ""},
	{`input.items["a"] == 1`, 0, expr.ProblemType, "is a list and has no field", ""},
	{`input.items["a" + "b"] == 1`, 12, expr.ProblemType, "the position in a list is a number", ""},
	{`input.items[1.5].qty == 1`, 12, expr.ProblemType, "1.5 is not a position", ""},
	{`input.items[-1].qty == 1`, 12, expr.ProblemType, "-1 is not a position", ""},
	{`input.items.sum() > 1`, 0, expr.ProblemType, "each is an object", ""},
	{`input.items.all(i, i.qty > "a")`, 19, expr.ProblemType, "i.qty is a number", ""},
	{`input.amount.exists(x, true)`, 0, expr.ProblemType, "only the elements of a list", ""},
	{`input.note == null`, 0, expr.ProblemType, "never null", "has(input.note)"},
	{`null != input.amount`, 8, expr.ProblemType, "never null", "has(input.amount)"},
	{`{1: 2} == {}`, 1, expr.ProblemType, "the keys of an object are text", `"1"`},
	{`{"a": 1, "a": 2} == {}`, 9, expr.ProblemSyntax, "stands twice", ""},
	{`steps == 1`, 0, expr.ProblemType, "steps is not a value", "steps.<id>.output"},
	{`steps.charge == 1`, 0, expr.ProblemType, "a step is not a value", "steps.charge.output"},

	// names
	{`inptu.amount > 1`, 0, expr.ProblemUnknownRoot, "did you mean input?", "input"},
	{`amount > 1`, 0, expr.ProblemUnknownRoot, "did you mean input.amount?", "input.amount"},
	{`whatever > 1`, 0, expr.ProblemUnknownRoot, "there is input, steps, vars", ""},
	{`input.amuont > 1`, 6, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`input . amuont > 1`, 8, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`input["amuont"] > 1`, 6, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`input.?amuont.hasValue()`, 7, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`has(input.amuont)`, 10, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`"é" == input.amuont`, 14, expr.ProblemUnknownField, `did you mean "amount"?`, "input.amount"},
	{`input.customer.age > 1`, 15, expr.ProblemUnknownField, "it has email, name", ""},
	{`input.items.exists(i, i.qyt > 1)`, 24, expr.ProblemUnknownField, `did you mean "qty"?`, "i.qty"},
	{`vars.lvel == "x"`, 5, expr.ProblemUnknownField, `did you mean "level"?`, "vars.level"},
	{`run.idd == "x"`, 4, expr.ProblemUnknownField, `did you mean "id"?`, "run.id"},
	{`steps.chrge.output.fee > 1`, 6, expr.ProblemUnknownStep, `did you mean "charge"?`, "steps.charge"},
	{`steps.charge.ouput.fee > 1`, 13, expr.ProblemUnknownField, `did you mean "output"?`, "steps.charge.output"},
	{`steps["chrge"].output.fee > 1`, 0, expr.ProblemUnknownStep, `did you mean "charge"?`, "steps.charge"},
	{`sizee(input.items) > 1`, 0, expr.ProblemUnknownFunction, "did you mean size()?", "size()"},
	{`input.items.length() > 1`, 12, expr.ProblemUnknownFunction, "did you mean size()?", "size()"},
	{`input.order_id.startWith("a")`, 15, expr.ProblemUnknownFunction, "did you mean startsWith()?", "startsWith()"},
	{`size(input.items, 1) > 1`, 0, expr.ProblemType, "size() takes 1 value, not 2", ""},

	// what may not be there
	{`input.express`, 0, expr.ProblemMaybeMissing, "optional and may be missing", "input.?express.orValue(false)"},
	{`input.note == "x"`, 0, expr.ProblemMaybeMissing, "optional and may be missing", `input.?note.orValue("")`},
	{`input.?express`, 0, expr.ProblemNotBool, "may be missing", "input.?express.orValue(false)"},
	{`input.?note == "x"`, 0, expr.ProblemMaybeMissing, "input.?note may be missing", "input.?note.orValue(...)"},
	{`input.?note + "x" == "x"`, 0, expr.ProblemMaybeMissing, "input.?note may be missing", "input.?note.orValue(...)"},
	{`input.amount.orValue(1) == 1`, 0, expr.ProblemType, "is always there", "input.?amount.orValue(...)"},
	{`input.?note.orValue(1) == "x"`, 20, expr.ProblemType, "would be text, and 1 is a number", ""},
	{`input.items.exists(i, i.gift)`, 22, expr.ProblemMaybeMissing, "i.gift", "i.?gift.orValue(false)"},
	{`has(input.note) || input.note == "x"`, 19, expr.ProblemMaybeMissing, "input.note", ""},
	{`has(input.note) ? true : input.note == "x"`, 25, expr.ProblemMaybeMissing, "input.note", ""},
	{`steps.review.output.decision == "a"`, 0, expr.ProblemMaybeNotRun, `step "review" may not have run`, `steps.review.output.?decision.orValue("")`},
	{`steps.review.output == {}`, 0, expr.ProblemMaybeNotRun, `step "review" may not have run`, "steps.review.?output.orValue({})"},
	{`has(steps.review.output.decision)`, 4, expr.ProblemMaybeNotRun, `may not have run`, "steps.review.output.?decision.hasValue()"},
	{`steps.ship.output.x == 1`, 0, expr.ProblemLaterStep, `step "ship" has not run`, ""},
	{`steps.ship.outcome == ""`, 0, expr.ProblemLaterStep, `step "ship" has not run`, ""},

	// what is not a condition
	{`input.amount`, 0, expr.ProblemNotBool, "is a number", "input.amount > 0"},
	{`input.order_id`, 0, expr.ProblemNotBool, "is text", `input.order_id != ""`},
	{`input.items`, 0, expr.ProblemNotBool, "is a list", "size(input.items) > 0"},
	{`${ input.amount } > 1`, 0, expr.ProblemInterpolated, "${ } does not belong", "input.amount  > 1"},

	// what is not an expression
	{``, 0, expr.ProblemSyntax, "empty", ""},
	{`input.amount >`, 14, expr.ProblemSyntax, "ends too early", ""},
	{`(input.amount > 1`, 17, expr.ProblemSyntax, ") is missing", ""},
	{`input.amount > 1 and true`, 17, expr.ProblemSyntax, "and cannot stand here", "write && instead of and"},
	{`input.amount = 1`, 13, expr.ProblemSyntax, "", "write == instead of ="},
	{`input?.note == "x"`, 18, expr.ProblemSyntax, "", "write .? instead of ?."},
	{`é > 1`, 0, expr.ProblemSyntax, "é cannot stand here", ""},
	{"input.amount > 1\n  +* 2", 20, expr.ProblemSyntax, "* cannot stand here", ""},
	{`Foo{a: 1} == 1`, 3, expr.ProblemSyntax, "without a type name", `{"name": value}`},
	{`b"x" == "x"`, 0, expr.ProblemSyntax, "bytes are not a JSON value", ""},
	{`input.amount > 1u`, 15, expr.ProblemSyntax, "no suffix", ""},
	{`input.order_id.matches("(")`, 23, expr.ProblemSyntax, "is not a pattern", ""},
	{"\"a\x00b\" == \"\"", 0, expr.ProblemSyntax, "NUL", ""},

	// bounds
	{`input.amount == 12345678901234567890123456789012345`, 16, expr.ProblemNumber, "more than 34 digits", ""},
	{`input.amount > 1e400`, 15, expr.ProblemNumber, "outside", ""},
	{`input.amount > 1e999999999999`, 15, expr.ProblemNumber, "outside", ""},
	{`input.order_id == "` + strings.Repeat("x", 4096) + `"`, 0, expr.ProblemTooLong, "at most 4096", ""},
	{strings.Repeat("(1 + ", 33) + "1" + strings.Repeat(")", 33) + " == 1", 0, expr.ProblemTooDeep, "at most 32", ""},
	{strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " == 1", 0, expr.ProblemTooDeep, "too deep to be read", ""},
	{strings.Repeat("[", 40) + strings.Repeat("]", 40) + " == []", 0, expr.ProblemTooDeep, "at most 32", ""},
}

// W3: what is wrong with an expression is found before a run can meet it, at
// its place, in words, with a replacement.
func TestProblemsOfConditions(t *testing.T) {
	for _, test := range problemCases {
		_, problems := expr.CompileCondition(test.text, testScope(t))
		if len(problems) != 1 {
			t.Errorf("%s: got %d problems, want 1: %v", test.text, len(problems), problems)
			continue
		}
		p := problems[0]
		if p.Offset != test.offset || p.Kind != test.kind {
			t.Errorf("%s: got %s at %d, want %s at %d: %s", test.text, p.Kind, p.Offset, test.kind, test.offset, p.Message)
		}
		if !strings.Contains(p.Message, test.message) {
			t.Errorf("%s: message %q does not say %q", test.text, p.Message, test.message)
		}
		if !strings.Contains(p.Suggestion, test.suggestion) || test.suggestion == "" && p.Kind == expr.ProblemMaybeMissing && p.Suggestion == "" {
			t.Errorf("%s: suggestion %q does not say %q", test.text, p.Suggestion, test.suggestion)
		}
	}
}

func TestAllProblemsOfAnExpressionAreReported(t *testing.T) {
	_, problems := expr.CompileCondition(`input.amuont > 1 && steps.chrge.output.fee > 2 && input.note == "x"`, testScope(t))
	var got []string
	for _, p := range problems {
		got = append(got, p.Kind)
	}
	if want := "unknown_field unknown_step maybe_missing"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestProblemsOfTexts(t *testing.T) {
	for _, test := range []struct {
		text   string
		offset int
		kind   string
	}{
		{"Order ${ input.amuont }", 15, expr.ProblemUnknownField},
		{"é ${ input.amuont }", 12, expr.ProblemUnknownField},
		{"a ${ input.?note } b", 4, expr.ProblemMaybeMissing},
		{"${ input.?note }", 2, expr.ProblemMaybeMissing},
		{"a ${ null } b", 4, expr.ProblemNotText},
		{"a ${ input.amount", 2, expr.ProblemSyntax},
		{`${ "}`, 0, expr.ProblemSyntax},
		{"${}", 2, expr.ProblemSyntax},
		{"a\x00b", 0, expr.ProblemSyntax},
	} {
		v, _, problems := expr.CompileText(test.text, testScope(t))
		if v != nil || len(problems) != 1 {
			t.Errorf("%s: got %v, %v", test.text, v, problems)
			continue
		}
		if p := problems[0]; p.Offset != test.offset || p.Kind != test.kind {
			t.Errorf("%s: got %s at %d, want %s at %d: %s", test.text, p.Kind, p.Offset, test.kind, test.offset, p.Message)
		}
	}
}

func TestOnlyInputExistsBeforeTheRun(t *testing.T) {
	scope := &expr.Scope{Input: testScope(t).Input, StartOnly: true}
	if _, _, problems := expr.CompileText("${ input.order_id }", scope); problems != nil {
		t.Errorf("input: %v", problems)
	}
	for _, root := range []string{"steps.charge.output", "vars.level", "run.id", "now", "step.key", "error.code", "event"} {
		_, _, problems := expr.CompileText("${ "+root+" }", scope)
		if len(problems) != 1 || problems[0].Kind != expr.ProblemUnknownRoot {
			t.Errorf("%s: %v", root, problems)
		}
	}
}

func TestRootsExistOnlyWhereTheScopeSaysSo(t *testing.T) {
	scope := &expr.Scope{Input: testScope(t).Input}
	for _, root := range []string{"step.key", "error.code", "event"} {
		_, _, problems := expr.CompileText("${ "+root+" }", scope)
		if len(problems) != 1 || problems[0].Kind != expr.ProblemUnknownRoot {
			t.Errorf("%s: %v", root, problems)
		}
	}
}

// What takes the place of a text must not grow faster than the text.
func TestNoExpressionIsTooMuchForTheCompiler(t *testing.T) {
	for _, text := range []string{
		"input.?note" + strings.Repeat(".optMap(x, x)", 250) + ".hasValue()",
		"event" + strings.Repeat(" == null", 500),
		"event" + strings.Repeat(".output", 500) + " == 1",
		"event" + strings.Repeat(".?output", 400) + ".hasValue()",
		strings.Repeat("!", 200) + "true",
		strings.Repeat("[1].all(x, ", 40) + "true" + strings.Repeat(")", 40),
		strings.Repeat("has(event.x) && ", 200) + "true",
		strings.Repeat("has(event.x) ? true : ", 150) + "true",
		strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000) + " == 1",
		strings.Repeat("{", 2000), strings.Repeat("-", 4000) + "1 == 1", strings.Repeat("[1].map(x, ", 300) + "x" + strings.Repeat(")", 300) + "== []",
	} {
		c, problems := expr.CompileCondition(text, testScope(t))
		if problems == nil {
			_, _ = c.Eval(testEnv())
		}
	}
}

// What the checker must not refuse.
func TestConditionsWithoutProblems(t *testing.T) {
	for _, text := range []string{
		`has(input.note) && input.note == "x"`,
		`!has(input.note) || input.note == "x"`,
		`has(input.note) ? input.note == "x" : true`,
		`!(!has(input.note)) && input.note == "x"`,
		`has(input.extra) && has(input.extra.a) && input.extra.a == 1`,
		`input.items.exists(i, has(i.gift) && i.gift)`,
		`input.items.filter(i, i.?gift.orValue(false)).all(i, i.qty > 0)`,
		`input.?note.optMap(n, n + "!").orValue("") == "x"`,
		`input.?customer.email.orValue("") == "x"`,
		`input.?extra.?anything.orValue(1) == 1`,
		`steps.review.outcome == "succeeded" && steps.review.output.decision == "a"`,
		`steps.review.outcome != "succeeded" || steps.review.output.decision == "a"`,
		`has(steps.review.output) && steps.review.output.decision == "x"`,
		`steps.review.output.?decision.orValue("") == "x"`,
		`steps.review.error.code == ""`,
		`steps["charge"].output["fee"] > 0`,
		`input["amount"] > 0`,
		`event.anything.at[0].all == 1`,
		`event == null || event.x in [1, 2]`,
		`[1, "a", null].exists(x, x == 1)`,
		`[].exists(x, x == 1)`,
		`(input.amount > 1 ? 1 : null) == null`,
		`size(input.items) > 2`,
		`input.items.map(i, i.qty).sum() > 1`,
		`input.items.exists_one(i, i.qty == 1)`,
		`duration("1h") < now - run.started_at`,
		`now + duration("1h") > timestamp("2020-01-01T00:00:00Z")`,
		`input.items.first().qty.orValue(0) == 2 && input.items.last().?gift.orValue(false)`,
		`"a" + "b" in {"ab": 1}`,
		`true // a note with a } and a "`,
		strings.Repeat("1 + ", 100) + "1 == 101",
		strings.Repeat("true && ", 100) + "true",
	} {
		if _, problems := expr.CompileCondition(text, testScope(t)); problems != nil {
			t.Errorf("%s: %v", text, problems)
		}
	}
}
