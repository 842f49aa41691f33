package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/author"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow"
)

const wrongDefinition = `ringi: v1
name: order
steps:
  - id: greet
    actvity: mail.text
    effect: pure
  - id: greet
    set: { a: 1 }
`

func TestCheckNamesLineColumnAndRule(t *testing.T) {
	w := newDesk(t)
	w.write("order.yaml", wrongDefinition)
	var got struct {
		Problems []struct {
			File       string `json:"file"`
			Line       int    `json:"line"`
			Column     int    `json:"column"`
			ID         string `json:"id"`
			Severity   string `json:"severity"`
			Message    string `json:"message"`
			Suggestion string `json:"suggestion"`
		} `json:"problems"`
		Errors   int `json:"errors"`
		Warnings int `json:"warnings"`
	}
	w.exits(cli.ExitProblems, &got, "check", "order.yaml")
	if got.Errors == 0 || got.Errors+got.Warnings != len(got.Problems) {
		t.Errorf("counts %d errors and %d warnings in %d problems", got.Errors, got.Warnings, len(got.Problems))
	}
	first := got.Problems[0]
	if first.File != "order.yaml" || first.Line != 5 || first.Column != 5 || first.ID != "RG0001" || first.Severity != "error" || first.Suggestion == "" {
		t.Errorf("the first problem is %+v", first)
	}
}

func TestCheckShowsTheLineWithAMark(t *testing.T) {
	w := newDesk(t)
	w.write("order.yaml", wrongDefinition)
	got := w.run("check", "order.yaml")
	want := "   5 |     actvity: mail.text\n     |     ^\n"
	if got.code != cli.ExitProblems || !strings.Contains(got.out, "order.yaml:5:5: error RG0001: ") || !strings.Contains(got.out, want) || !strings.Contains(got.out, "ringi explain ID") {
		t.Errorf("exits with %d and prints\n%s", got.code, got.out)
	}
}

func TestCheckAcceptsWhatIsRight(t *testing.T) {
	w := newDesk(t)
	w.write("hello.yaml", helloDefinition)
	if got := w.run("check", "hello.yaml"); got.code != cli.ExitOK || got.out != "hello.yaml: no problems\n" {
		t.Errorf("%+v", got)
	}
	if got := w.runWith(helloDefinition, "check", "-"); got.code != cli.ExitOK {
		t.Errorf("from standard input: %+v", got)
	}
	w.write("wrong.yaml", wrongDefinition)
	got := w.run("check", "gone.yaml", "wrong.yaml", "missing.yaml")
	if got.code != cli.ExitNotFound || !strings.Contains(got.out, "wrong.yaml:5:5") || !strings.Contains(got.err, "gone.yaml") || !strings.Contains(got.err, "missing.yaml") {
		t.Errorf("files of which some are missing: %+v", got)
	}
	if got := w.run("check", "gone.yaml"); got.code != cli.ExitNotFound || got.out != "" {
		t.Errorf("a missing file: %+v", got)
	}
}

func TestAFindingIsShownAndAccepted(t *testing.T) {
	w := newDesk(t)
	w.write("loose.yaml", "ringi: v1\nname: loose\nsteps:\n  - id: call\n    activity: shop.call\n")
	var got author.Checked
	w.ok(&got, "check", "loose.yaml")
	if got.Errors != 0 || got.Warnings == 0 {
		t.Errorf("%+v", got)
	}
}

func TestExplainShowsWrongAndRight(t *testing.T) {
	w := newDesk(t)
	got := w.run("explain", "rg0001")
	if got.code != cli.ExitOK || !strings.Contains(got.out, "wrong:") || !strings.Contains(got.out, "right:") || !strings.Contains(got.out, "actvity") {
		t.Errorf("%+v", got)
	}
	var rule workflow.Rule
	w.ok(&rule, "explain", "RG0001")
	if rule.ID != "RG0001" || rule.Wrong == "" || rule.Right == "" {
		t.Errorf("%+v", rule)
	}
	if got := w.run("explain", "RG9999"); got.code != cli.ExitNotFound {
		t.Errorf("an unknown rule: %+v", got)
	}
	if got := w.run("explain"); got.code != cli.ExitOK || strings.Count(got.out, "\n") < len(workflow.Rules()) {
		t.Errorf("the list: %+v", got)
	}
}

const longDefinition = `ringi: v1
name: long
steps:
`

// W3: what check says is what publishing says, also of quotas.
func TestAQuotaIsAProblemBeforeAndWhilePublishing(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("long.yaml", longDefinition+numbered(60, "  - { id: s%d, set: { a%d: 1 } }\n"))
	for _, verb := range []string{"check", "publish"} {
		var got author.Published
		w.exits(cli.ExitProblems, &got, verb, "long.yaml")
		if got.Errors != 1 || got.Problems[0].ID != "RG0032" || got.Problems[0].Line != 24 || got.Problems[0].Suggestion == "" {
			t.Errorf("%s says %+v", verb, got)
		}
	}
	if got := w.run("check", "long.yaml"); !strings.Contains(got.out, "1 error, 0 warnings") || !strings.Contains(got.out, "raised it") {
		t.Errorf("check prints %s", got.out)
	}
}

// numbered repeats a format with a running number, twice each.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, i)
	}
	return b.String()
}

// W2: publishing the same again changes nothing, and nothing is published when
// one of the files is wrong.
func TestPublishIsAllOrNothing(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("hello.yaml", helloDefinition)
	w.write("wrong.yaml", wrongDefinition)
	var got author.Published
	w.exits(cli.ExitProblems, &got, "publish", "hello.yaml", "wrong.yaml")
	if len(got.Published) != 0 || got.Errors == 0 {
		t.Errorf("with a wrong file: %+v", got)
	}
	w.ok(&got, "publish", "hello.yaml")
	if len(got.Published) != 1 || got.Published[0].Name != "hello" || got.Published[0].Version != 1 || !got.Published[0].Created || len(got.Published[0].Digest) != 64 {
		t.Errorf("the first time: %+v", got.Published)
	}
	w.ok(&got, "publish", "hello.yaml")
	if got.Published[0].Version != 1 || got.Published[0].Created {
		t.Errorf("the same again: %+v", got.Published)
	}
	w.write("hello.yaml", strings.Replace(helloDefinition, "hello to", "welcome", 1))
	w.ok(&got, "publish", "hello.yaml")
	if got.Published[0].Version != 2 || !got.Published[0].Created {
		t.Errorf("changed: %+v", got.Published)
	}
}

// W1: the default quotas are not hard limits: an operator raises them by settings,
// which whoever checks a definition may have too.
func TestAnOperatorRaisesTheQuotasOfDefinitions(t *testing.T) {
	long := "ringi: v1\nname: long\nsteps:\n"
	for i := range workflow.DefaultSteps + 1 {
		long += fmt.Sprintf("  - { id: s%d, set: { a%d: %d } }\n", i, i, i)
	}
	w := newDesk(t)
	w.write("long.yaml", long)
	if got := w.run("check", "long.yaml"); got.code != cli.ExitProblems || !strings.Contains(got.out, "ask an operator to raise the quota") {
		t.Errorf("above the quota: %+v", got)
	}
	if got := w.run("check", "--quota-steps", "21", "long.yaml"); got.code != cli.ExitOK {
		t.Errorf("below a quota that was raised: %+v", got)
	}
	for _, wrong := range []string{"0", "1001", "many"} {
		if got := w.run("check", "--quota-steps", wrong, "long.yaml"); got.code != cli.ExitUsage || !strings.Contains(got.err, "from 1 to 1000") {
			t.Errorf("a quota of %s: %+v", wrong, got)
		}
	}
	w.env["RINGI_QUOTA_STEPS"] = "21"
	w.start("serve")
	if got := w.run("publish", "long.yaml"); got.code != cli.ExitOK {
		t.Errorf("published where the quota was raised: %+v", got)
	}
}
