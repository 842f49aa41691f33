package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// checked returns the problems of a definition as "line:column id", in order.
func checked(src string) string {
	_, problems := workflow.Parse("f.yaml", []byte(src))
	var out []string
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.ID))
	}
	return strings.Join(out, ", ")
}

// A checkCase is a definition whose steps begin in line 3.
type checkCase struct {
	name  string
	steps string
	want  string // "" is none
}

func runChecks(t *testing.T, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src := "ringi: v1\nname: n\n" + c.steps
			if got := checked(src); got != c.want {
				_, problems := workflow.Parse("f.yaml", []byte(src))
				t.Errorf("got  %s\nwant %s\n%v", got, c.want, problems)
			}
		})
	}
}

func TestYAMLTrapsAreRecognised(t *testing.T) { // W3
	runChecks(t, []checkCase{
		{"a conditional in a plain value", "steps:\n  - id: a\n    set:\n      x: ${ input.a ? 1 : 2 }\n", "6:10 RG0005"},
		{"a conditional in a plain condition", "steps:\n  - id: a\n    when: input.a ? input.b : input.c\n    wait: { for: 1h }\n", "5:11 RG0005"},
		{"a conditional in a list, which YAML reads as a mapping", "steps:\n  - id: a\n    set:\n      x:\n        - ${ input.a ? 1 : 2 }\n", "7:11 RG0005"},
		{"a conditional over two lines", "steps:\n  - id: a\n    set:\n      x: ${ input.a ?\n        1 : 2 }\n", "6:10 RG0005"},
		{"a map literal", "steps:\n  - id: a\n    set:\n      x: ${ {\"a\": 1} }\n", "6:10 RG0005"},
		{"an expression in braces", "steps:\n  - { id: a, set: { x: ${ input.a } } }\n", "4:24 RG0006"},
		{"an expression in brackets", "steps:\n  - id: a\n    set: { x: [1, ${ input.a }, 2] }\n", "5:19 RG0006"},
		{"text around an expression in braces", "steps:\n  - id: a\n    set: { x: a ${ input.a } b }\n", "5:15 RG0006"},
		{"two traps and a misspelt key", "steps:\n  - id: a\n    set: { x: ${ input.a }, y: ${ input.b ? 'x' : 'y' } }\n  - id: b\n    actvity: a\n", "5:15 RG0006, 5:32 RG0006, 7:5 RG0001"},
		{"a misspelt key on the line of a trap", "steps:\n  - { id: a, set: { x: ${ input['a'] } }, effct: pure }\n", "4:24 RG0006, 4:43 RG0001"},
		{"a comment sign", "steps:\n  - id: a\n    set:\n      x: ${ input.a + ' #' }\n", "6:10 RG0007"},
		{"a real comment behind an expression", "steps:\n  - id: a\n    set:\n      x: ${ input.a } # not 'x: y'\n", ""},
		{"a negation", "steps:\n  - id: a\n    when: !input.a && input.b\n    wait: { for: 1h }\n", "5:11 RG0008"},
		{"a condition that begins with a quote", "steps:\n  - id: a\n    when: \"a\" == input.x\n    wait: { for: 1h }\n", "5:11 RG0004"},
		{"a colon in a title", "steps:\n  - id: a\n    title: Step: one\n    wait: { for: 1h }\n", "5:12 RG0004"},
		{"no trap in a block of text", "description: |\n  x: ${ a ? b : c }\n  { k: ${ x } }\nsteps:\n  - { id: a, wait: { for: 1h } }\n", ""},
		{"no trap in quotes", "steps:\n  - id: a\n    set: { x: \"${ input.a ? 1 : 2 }\", y: '{ k: ${ input.x } }' }\n", ""},
		{"no trap in a comment", "# x: ${ a ? b : c }\nsteps:\n  - { id: a, wait: { for: 1h } } # { k: ${ x } }\n", ""},
	})
}

func TestTheSuggestionOfATrapIsTheQuotedValue(t *testing.T) {
	for src, want := range map[string]string{
		"ringi: ${ a ? b : c }":      `quote the value: "${ a ? b : c }"`,
		`ringi: ${ a ? "b" : "c" }`:  `quote the value: '${ a ? "b" : "c" }'`,
		`ringi: ${ a ? "it's" : b }`: `quote the value: '${ a ? "it''s" : b }'`,
		"ringi: { k: ${ x } }":       `quote the value: "${ x }"`,
	} {
		_, problems := workflow.Parse("f.yaml", []byte(src))
		found := slices.ContainsFunc(problems, func(p workflow.Problem) bool { return p.Suggestion == want })
		if !found {
			t.Errorf("%s: got %v, want %s", src, problems, want)
		}
	}
}

// The place of a problem is where the reader sees it, however the value is written.
func TestProblemsInExpressionsHaveTheirExactPlace(t *testing.T) { // W3
	runChecks(t, []checkCase{
		{"plain", "steps:\n  - id: a\n    set:\n      x: ${ 1 + nope }\n", "6:17 RG0303"},
		{"two in a text", "steps:\n  - id: a\n    set:\n      x: ${ nope } and ${ nada }\n", "6:13 RG0303, 6:27 RG0303"},
		{"double quotes with escapes", "steps:\n  - id: a\n    set: { x: \"\\t\\u00e9\\x41 \\\" ${ nope }\" }\n", "5:35 RG0303"},
		{"single quotes", "steps:\n  - id: a\n    set: { x: 'it''s ${ nope }' }\n", "5:25 RG0303"},
		{"other alphabets", "steps:\n  - id: a\n    set: { x: \"注文 ${ nope }\" }\n", "5:22 RG0303"},
		{"literal block", "steps:\n  - id: a\n    set:\n      x: |\n        one\n\n        two ${ 1 +\n          nope }\n", "10:11 RG0303"},
		{"folded block", "steps:\n  - id: a\n    set:\n      x: >-\n        ${ 1\n        + nope\n        }\n", "8:11 RG0303"},
		{"folded block with a paragraph", "steps:\n  - id: a\n    set:\n      x: >\n        one\n        two\n\n        three ${ nope }\n", "10:18 RG0303"},
		{"quoted over lines", "steps:\n  - id: a\n    set:\n      x: \"one\n        two ${ nope }\"\n", "7:16 RG0303"},
		{"plain over lines", "steps:\n  - id: a\n    set:\n      x: one\n        two ${ nope }\n", "7:16 RG0303"},
		{"with an anchor", "steps:\n  - id: a\n    set:\n      x: &x ${ nope }\n", "6:16 RG0303"},
		{"condition", "steps:\n  - id: a\n    when: nope > 1\n    wait: { for: 1h }\n", "5:11 RG0303"},
		{"windows line ends", "steps:\r\n  - id: a\r\n    set:\r\n      x: >-\r\n        one\r\n        ${ nope }\r\n", "8:12 RG0303"},
	})
	json := "{\"ringi\":\"v1\",\"name\":\"n\",\n \"steps\":[{\"id\":\"a\",\"set\":{\"x\":\"\\ud83d\\ude00 \\u00e9 ${ nope }\"}}]}"
	if got, want := checked(json), "2:56 RG0303"; got != want {
		t.Errorf("JSON with escapes: got %s, want %s", got, want)
	}
}

func TestExpressionsReadOnlyWhatHasRun(t *testing.T) { // W3
	pure := func(id, rest string) string {
		return fmt.Sprintf("  - { id: %s, activity: a, effect: pure%s }\n", id, rest)
	}
	reads := func(id, of string) string { return pure(id, ", with: { v: \"${ steps."+of+".output }\" }") }
	runChecks(t, []checkCase{
		{"an earlier step", "steps:\n" + pure("a", "") + reads("b", "a"), ""},
		{"a later step", "steps:\n" + reads("b", "a") + pure("a", ""), "4:56 RG0306"},
		{"the step itself", "steps:\n" + reads("a", "a"), "4:56 RG0306"},
		{"a step behind a condition", "steps:\n" + pure("a", ", when: input.x == 1") + reads("b", "a"), "5:56 RG0305"},
		{"the outcome of such a step", "steps:\n" + pure("a", ", when: input.x == 1") + pure("b", ", when: steps.a.outcome == \"not_run\""), ""},
		{"such a step read with care", "steps:\n" + pure("a", ", when: input.x == 1") + pure("b", ", with: { v: \"${ steps.a.?output.orValue({}) }\" }"), ""},
		{"a step whose failure is caught", "steps:\n" + pure("a", ", catch: [ { on: [\"*\"], do: [] } ]") + reads("b", "a"), "5:56 RG0305"},
		{"a step whose failure ends the run", "steps:\n" + pure("a", ", catch: [ { on: [\"*\"], do: [ { fail: { code: x } } ] } ]") + reads("b", "a"), ""},
		{"a step in one case", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: a, activity: a, effect: pure } ]\n      - else: []\n" + reads("b", "a"), "9:56 RG0305"},
		{"the one case that goes on", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: a, activity: a, effect: pure } ]\n      - else: [ { fail: { code: x } } ]\n" + reads("b", "a"), ""},
		{"another case", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: a, activity: a, effect: pure } ]\n      - else: [ { id: b, activity: b, effect: pure, with: { v: \"${ steps.a.output }\" } } ]\n", "8:68 RG0306"},
		{"a branch beside", "steps:\n  - id: p\n    parallel:\n      branches:\n        one: [ { id: a, activity: a, effect: pure } ]\n        two: [ { id: b, activity: b, effect: pure, with: { v: \"${ steps.a.output }\" } } ]\n" + reads("c", "a"), "8:67 RG0306"},
		{"a step in a do", "steps:\n  - id: d\n    do: [ { id: a, activity: a, effect: pure } ]\n" + reads("b", "a"), ""},
		{"a step in a do with a catch", "steps:\n  - id: d\n    do: [ { id: a, activity: a, effect: pure } ]\n    catch: [ { on: [\"*\"], do: [] } ]\n" + reads("b", "a"), "7:56 RG0305"},
		{"an approval that lets a rejected run go on", "steps:\n  - id: a\n    approval: { ask: [ { from: [group:g] } ], on_reject: continue }\n" + reads("b", "a"), "6:56 RG0305"},
		{"a wait that goes on at its time-out", "steps:\n  - id: a\n    wait: { event: e, key: k, timeout: { after: 1d, then: continue } }\n" + reads("b", "a"), "6:56 RG0305"},
		{"the error in a catch", "steps:\n" + pure("a", ", catch: [ { on: [\"*\"], do: [ { id: s, set: { c: \"${ error.code }\", o: \"${ steps.a.outcome }\" } } ] } ]"), ""},
		{"the error elsewhere", "steps:\n  - id: s\n    set: { c: \"${ error.code }\" }\n", "5:19 RG0303"},
		{"the key of a step elsewhere", "steps:\n  - id: s\n    set: { c: \"${ step.key }\" }\n", "5:19 RG0303"},
		{"any step in on_failure", "steps:\n" + pure("a", "") + "on_failure:\n  steps:\n    - id: s\n      set: { o: \"${ steps.a.outcome }\", c: \"${ error.code }\", v: \"${ steps.a.?output.orValue(0) }\" }\n", ""},
		{"an output in on_failure", "steps:\n" + pure("a", "") + "on_failure:\n  steps:\n    - id: s\n      set: { v: \"${ steps.a.output }\" }\n", "8:21 RG0305"},
		{"a variable", "steps:\n  - id: s\n    set: { total: 5 }\n  - id: w\n    when: vars.total > 3\n    wait: { for: 1h }\n", ""},
		{"a variable that one case sets", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: s, set: { total: 5 } } ]\n      - else: []\n  - id: w\n    when: vars.total > 3\n    wait: { for: 1h }\n", "10:11 RG0312"},
		{"such a variable read with care", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: s, set: { total: 5 } } ]\n      - else: []\n  - id: w\n    when: vars.?total.orValue(0) > 3\n    wait: { for: 1h }\n", ""},
		{"a variable that every case sets", "steps:\n  - id: c\n    choose:\n      - if: input.x == 1\n        do: [ { id: s, set: { total: 5 } } ]\n      - else: [ { id: u, set: { total: 6 } } ]\n  - id: w\n    when: vars.total > 3\n    wait: { for: 1h }\n", ""},
		{"a variable of the wrong type", "steps:\n  - id: s\n    set: { total: five }\n  - id: w\n    when: vars.total > 3\n    wait: { for: 1h }\n", "7:11 RG0304"},
		{"a variable that nobody sets", "steps:\n  - id: w\n    when: vars.total > 3\n    wait: { for: 1h }\n", "5:16 RG0302"},
	})
}
