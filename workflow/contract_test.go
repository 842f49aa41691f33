package workflow_test

import (
	"testing"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

const undo = `compensate: { activity: u, with: { key: "${ step.key }" } }`

func TestContractsAreCheckedAgainstThemselves(t *testing.T) { // S6, S7
	runChecks(t, []checkCase{
		{"a compensation of a pure step", "steps:\n  - id: a\n    activity: a\n    effect: pure\n    " + undo + "\n", "7:5 RG0105"},
		{"a key of a pure step", "steps:\n  - id: a\n    activity: a\n    effect: pure\n    key: k\n", "7:5 RG0105"},
		{"an irreversible pure step", "steps:\n  - id: a\n    activity: a\n    effect: pure\n    irreversible: true\n", "7:5 RG0105"},
		{"on_unknown of an idempotent step", "steps:\n  - id: a\n    activity: a\n    effect: idempotent\n    on_unknown: fail\n    " + undo + "\n", "7:5 RG0105"},
		{"a probe of an idempotent step", "steps:\n  - id: a\n    activity: a\n    effect: idempotent\n    probe: { activity: p }\n    " + undo + "\n", "7:5 RG0105"},
		{"a backoff with one attempt", "steps:\n  - id: a\n    activity: a\n    effect: pure\n    retry: { attempts: 1, backoff: { initial: 2s } }\n", "7:27 RG0105"},
		{"a backoff of an at_most_once step", "steps:\n  - id: a\n    activity: a\n    effect: at_most_once\n    retry: { backoff: { initial: 2s } }\n    " + undo + "\n", "7:14 RG0105"},
		{"one attempt of an at_most_once step", "steps:\n  - id: a\n    activity: a\n    effect: at_most_once\n    retry: { attempts: 1 }\n    " + undo + "\n", ""},
		{"time-outs of an emit", "steps:\n  - id: a\n    emit: { type: t, aggregate: { type: A, id: \"1\" } }\n    timeouts: { total: 5s }\n", "6:5 RG0105"},
		{"a retry of an approval", "steps:\n  - id: a\n    approval: { ask: [ { from: [group:g] } ] }\n    retry: { attempts: 2 }\n", "6:5 RG0105"},
		{"an output of a wait", "steps:\n  - id: a\n    wait: { for: 1h }\n    output: { type: object }\n", "6:5 RG0105"},
		{"a time-out of a wait for a time", "steps:\n  - id: a\n    wait: { for: 1h, timeout: { after: 2h } }\n", "5:22 RG0105"},
		{"a catch of a fail", "steps:\n  - fail: { code: c }\n    catch: [ { on: [c], do: [] } ]\n", "5:5 RG0105"},
		{"an undeclared effect without undo", "steps:\n  - id: a\n    activity: a\n", "5:5 RG0201, 5:5 RG0206"},
		{"an undo by http", "steps:\n  - id: a\n    activity: a\n    effect: idempotent\n    compensate: { http: { method: PATCH } }\n", "7:25 RG0018"},
		{"a probe by http", "steps:\n  - id: a\n    activity: a\n    effect: probeable\n    probe: { http: { method: PUT, url: \"https://a.example\" } }\n    " + undo + "\n", "7:30 RG0024"},
		{"an undo that is tried more than once and must not", "steps:\n  - id: a\n    activity: a\n    effect: idempotent\n    compensate: { activity: u, effect: at_most_once, retry: { attempts: 2 } }\n", "7:73 RG0202"},
		{"an undo that reads an output with care", "steps:\n  - id: a\n    activity: a\n    effect: idempotent\n    compensate: { activity: u, with: { id: \"${ steps.a.?output.orValue('') }\" } }\n", ""},
		{"an undo that reads an earlier output", "steps:\n  - { id: z, activity: z, effect: pure }\n  - id: a\n    activity: a\n    effect: idempotent\n    compensate: { activity: u, with: { id: \"${ steps.z.output }\" } }\n", ""},
		{"an approval behind a condition in front of an irreversible step", "steps:\n  - id: ok\n    when: input.x > 5\n    approval: { ask: [ { from: [group:g] } ] }\n  - { id: a, activity: a, effect: idempotent, irreversible: true }\n", ""},
		{"an approval whose no does not matter", "steps:\n  - id: ok\n    approval: { ask: [ { from: [group:g] } ], on_reject: continue }\n  - { id: a, activity: a, effect: idempotent, irreversible: true }\n", "6:47 RG0207"},
		{"an approval whose no is looked at", "steps:\n  - id: ok\n    approval: { ask: [ { from: [group:g] } ], on_reject: continue }\n  - { id: a, when: steps.ok.outcome == \"succeeded\", activity: a, effect: idempotent, irreversible: true }\n", ""},
		{"an approval in the branch beside", "steps:\n  - id: p\n    parallel:\n      branches:\n        one: [ { id: ok, approval: { ask: [ { from: [group:g] } ] } } ]\n        two: [ { id: a, activity: a, effect: idempotent, irreversible: true } ]\n", "8:58 RG0205, 8:58 RG0207"},
		{"on_failure with a side effect that must not repeat", "steps:\n  - { id: a, wait: { for: 1h } }\non_failure:\n  steps:\n    - { id: b, activity: b, effect: at_most_once }\n", "7:16 RG0115"},
		{"on_failure with an idempotent activity", "steps:\n  - { id: a, wait: { for: 1h } }\non_failure:\n  steps:\n    - { id: b, activity: b, effect: idempotent }\n", ""},
		{"on_failure with a wait in a catch", "steps:\n  - { id: a, wait: { for: 1h } }\non_failure:\n  steps:\n    - id: b\n      activity: b\n      effect: pure\n      catch: [ { on: [timed_out], do: [ { id: w, wait: { for: 1h } } ] } ]\n", "10:50 RG0115"},
		{"finish inside a parallel inside a choose", "steps:\n  - id: p\n    parallel:\n      branches:\n        one: [ { id: c, choose: [ { if: input.x, do: [ { finish: {} } ] }, { else: [] } ] } ]\n", "7:58 RG0107"},
		{"a name that two branches set", "steps:\n  - id: p\n    parallel:\n      branches:\n        one: [ { id: a, set: { v: 1 } } ]\n        two: [ { id: b, set: { v: 2 } } ]\n", "8:32 RG0108"},
		{"a name that two cases set", "steps:\n  - id: p\n    choose:\n      - if: input.x\n        do: [ { id: a, set: { v: 1 } } ]\n      - else: [ { id: b, set: { v: 2 } } ]\n", ""},
		{"steps behind cases that all end", "steps:\n  - id: p\n    choose:\n      - if: input.x\n        do: [ { finish: {} } ]\n      - else: [ { fail: { code: c } } ]\n  - { id: b, wait: { for: 1h } }\n", "9:5 RG0106"},
		{"two users where two must agree", "steps:\n  - id: a\n    approval: { ask: [ { from: [user:a, user:a], quorum: 2 } ] }\n", "5:58 RG0401"},
		{"a user from the input counts as anybody", "steps:\n  - id: a\n    approval: { ask: [ { from: [user:a, \"user:${ input.boss }\"], quorum: 2 } ] }\n", ""},
		{"a quorum of none", "steps:\n  - id: a\n    approval: { ask: [ { from: [user:a], quorum: 0 } ] }\n", "5:50 RG0025"},
		{"a wait for nothing", "steps:\n  - id: a\n    wait: {}\n", "5:11 RG0018"},
		{"a parallel without branches", "steps:\n  - id: a\n    parallel: { branches: {} }\n", "5:27 RG0027"},
		{"an empty branch", "steps:\n  - id: a\n    parallel: { branches: { one: [] } }\n", "5:34 RG0027"},
	})
}

func TestTheBrokenDefinitionsOfTheAcceptance(t *testing.T) { // W3
	input := "input: { type: object, required: [n, s], properties: { n: { type: number }, s: { type: string } } }\n"
	runChecks(t, []checkCase{
		{"a wrong type in an expression", input + "steps:\n  - id: w\n    when: input.n > input.s\n    wait: { for: 1h }\n", "6:11 RG0304"},
		{"an unknown key", "steps:\n  - id: w\n    wait: { fro: 1h }\n", "5:13 RG0001"},
		{"two steps with one id", "steps:\n  - { id: w, wait: { for: 1h } }\n  - { id: w, wait: { for: 1h } }\n", "5:11 RG0104"},
		{"a misspelt verb is told once", "steps:\n  - { id: a, actvity: a, efect: pure }\noutput: \"${ steps.a.output }\"\n", "4:14 RG0001, 4:26 RG0001"},
		{"all of a file at once", input + "steps:\n  - id: W\n    wait: { for: 1 }\n  - id: x\n    effect: pure\n    with: { a: \"${ input.m }\" }\n  - activity: y\n    efect: pure\n", "5:9 RG0022, 6:18 RG0023, 7:5 RG0101, 10:5 RG0103, 11:5 RG0001"},
	})
	for src, want := range map[string]string{
		"":                        "1:1 RG0003",
		"just text":               "1:1 RG0003",
		"- a\n- b":                "1:1 RG0003",
		"[]":                      "1:1 RG0003",
		"{}":                      "1:1 RG0018",
		"{\"ringi\": \"v1\",":     "1:1 RG0004",
		"ringi: v1\n\tname: x":    "2:2 RG0004",
		"ringi: v1\nname: \"x\n":  "2:7 RG0004",
		"a: [1, 2\nb: 3":          "1:4 RG0004",
		"ringi: v1\nname: *x":     "2:7 RG0010",
		"a: &a [*a]":              "1:8 RG0010",
		"ringi: v1\n  name: x\n":  "2:3 RG0004",
		"ringi: v1\nname: x\nx\n": "3:1 RG0004",
	} {
		if got := checked(src); got != want {
			_, problems := workflow.Parse("f.yaml", []byte(src))
			t.Errorf("%q: got %s, want %s\n%v", src, got, want, problems)
		}
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	src := `ringi: v1
name: n
defaults: { queue: q, timeouts: { attempt: 5s }, retry: { attempts: 9, backoff: { max: 2m } } }
steps:
  - { id: pure, activity: a, effect: pure }
  - { id: once, activity: a, effect: at_most_once, accepted: fine, timeouts: { heartbeat: 500ms }, queue: own }
  - { id: some, activity: a, effect: idempotent, retry: { attempts: 2, stop_on: [no] }, ` + undo + ` }
  - { id: ask, activity: a, effect: probeable, probe: { activity: p }, ` + undo + ` }
  - { id: people, approval: { ask: [ { from: [group:g] } ] } }
  - { id: time, wait: { event: e, key: k } }
  - { fail: { code: c }, when: input.x == 1 }
  - { finish: { output: 5 } }
`
	d, problems := workflow.Parse("f.yaml", []byte(src))
	if d == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	backoff := workflow.Retry{Initial: time.Second, Factor: 2, Max: 2 * time.Minute}
	for id, attempts := range map[string]int{"pure": 9, "once": 1, "some": 2, "ask": 9} {
		r := d.Step(id).Retry
		if r.Attempts != attempts || r.Initial != backoff.Initial || r.Factor != backoff.Factor || r.Max != backoff.Max {
			t.Errorf("%s: got %+v, want %d attempts and %+v", id, r, attempts, backoff)
		}
	}
	if got, want := d.Step("once").Timeouts, (workflow.Timeouts{Attempt: 5 * time.Second, Total: 15 * time.Minute, Heartbeat: 500 * time.Millisecond}); got != want {
		t.Errorf("time-outs: got %+v, want %+v", got, want)
	}
	if got := d.Step("pure").Activity.Queue + d.Step("once").Activity.Queue + d.Step("some").Activity.Compensate.Queue; got != "qownq" {
		t.Errorf("queues: got %s", got)
	}
	if u := d.Step("some").Activity.Compensate; u.Effect != workflow.Idempotent || u.Retry.Attempts != 5 || u.Retry.Max != 5*time.Minute {
		t.Errorf("undo: got %+v", u)
	}
	if p := d.Step("ask").Activity.Probe; p.Effect != workflow.Pure || p.Retry.Attempts != 5 {
		t.Errorf("probe: got %+v", p)
	}
	if a := d.Step("people").Approval; a.ExpireAfter != 72*time.Hour || a.OnReject != "fail" || a.Risk != "normal" || a.Ask[0].Quorum != 1 || a.Title == nil || a.Subject == nil {
		t.Errorf("approval: got %+v", a)
	}
	if s := d.Step("fail_1"); s == nil || d.Step("finish_2") == nil || s.Line != 11 || s.Index != 6 || s.In != d.Root {
		t.Errorf("steps without an id: %+v", s)
	}
	if got, want := d.Measure(), (workflow.Size{Steps: 8, Depth: 1, Width: 1}); got != want {
		t.Errorf("size: got %+v, want %+v", got, want)
	}
}

func TestRulesAreExplained(t *testing.T) {
	r, ok := workflow.Explain("RG0005")
	if !ok || r.Title == "" || r.Severity != workflow.SeverityError {
		t.Errorf("got %+v", r)
	}
	if _, ok := workflow.Explain("RG9999"); ok {
		t.Error("an id that does not exist was explained")
	}
	last := ""
	for _, r := range workflow.Rules() {
		if r.ID <= last {
			t.Errorf("%s stands behind %s", r.ID, last)
		}
		last = r.ID
	}
}
