package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/author"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

const helloScenarios = `people: { bob: [] }
answers: { hello.greet: { output: { text: hello } } }
scenarios:
  - name: bob is greeted
    start: { input: { who: bob } }
    expect: { status: completed }
  - name: nobody is greeted
    start: { input: { who: nobody } }
    expect: { status: failed }
`

func TestScenariosBesideADefinitionAreTested(t *testing.T) {
	w := newDesk(t)
	w.write("order.yaml", "ringi: v1\nname: order\nsteps:\n  - { id: greet, activity: hello.greet, effect: pure }\n  - { id: end, when: \"input.who == 'ann'\", set: { a: 1 } }\n")
	w.write("order_test.yaml", helloScenarios)
	for _, args := range [][]string{{"order.yaml"}, {"order_test.yaml"}, {"."}} {
		got := w.run(append([]string{"test"}, args...)...)
		want := []string{"--- FAIL: nobody is greeted", "order_test.yaml:9:23: status is completed, want failed", "FAIL  order_test.yaml  1 of 2 scenarios failed"}
		for _, line := range want {
			if got.code != cli.ExitFailed || !strings.Contains(got.out, line) {
				t.Fatalf("test %v exits with %d, lacks %q and prints\n%s%s", args, got.code, line, got.out, got.err)
			}
		}
	}
	if got := w.run("test", "order.yaml", "--run", "^bob", "-v"); got.code != cli.ExitOK || !strings.Contains(got.out, "ok    order_test.yaml  1 scenario, 1 of 2 steps reached, not end") {
		t.Errorf("%+v", got)
	}
	var all author.Tested
	w.exits(cli.ExitFailed, &all, "test", "order.yaml", "--junit", "report.xml")
	if all.Passed != 1 || all.Failed != 1 || len(all.Scenarios) != 2 || len(all.Missed) != 1 {
		t.Errorf("%+v", all)
	}
	report, err := os.ReadFile(filepath.Join(w.dir, "report.xml"))
	if err != nil || !strings.Contains(string(report), `tests="2" failures="1"`) {
		t.Errorf("%v\n%s", err, report)
	}
}

func TestScenariosThatCannotBePlayedAreNamed(t *testing.T) {
	w := newDesk(t)
	w.write("order.yaml", wrongDefinition)
	w.write("order_test.yaml", helloScenarios)
	if got := w.run("test", "order.yaml"); got.code != cli.ExitProblems || !strings.Contains(got.out, "order.yaml:5:5: RG0001") {
		t.Errorf("a wrong definition: %+v", got)
	}
	w.write("hello.yaml", helloDefinition)
	w.write("hello_test.yaml", "scenarios: [{ name: a, expect: { statsu: completed } }]")
	if got := w.run("test", "hello.yaml"); got.code != cli.ExitProblems || !strings.Contains(got.out, "did you mean status?") {
		t.Errorf("wrong scenarios: %+v", got)
	}
	w.write("lonely.yaml", helloDefinition)
	if got := w.run("test", "lonely.yaml"); got.code != cli.ExitUsage || !strings.Contains(got.err, "lonely_test.yaml") {
		t.Errorf("no scenarios: %+v", got)
	}
	if got := w.run("test", "gone.yaml"); got.code != cli.ExitNotFound {
		t.Errorf("no file: %+v", got)
	}
}
