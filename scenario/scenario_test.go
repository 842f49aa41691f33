package scenario_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ringiflow/ringi/scenario"
	"github.com/ringiflow/ringi/workflow"
)

const order = "../examples/order/order_fulfilment"

// W1 W2 W14 S2 S4 S7: the scenarios beside the examples say what they must come
// to, and they hold.
func TestTheScenariosOfTheExamplesHold(t *testing.T) {
	for _, example := range []string{order, "../examples/hello/hello"} {
		def, file := load(t, example+".yaml", example+"_test.yaml")
		report := scenario.Run(file, def, nil)
		if report.Failed() > 0 || len(report.Results) == 0 {
			var b strings.Builder
			if err := report.WriteText(&b, false); err != nil {
				t.Fatal(err)
			}
			t.Error(b.String())
		}
		if missed := report.Missed(); len(missed) > 0 {
			t.Errorf("no scenario of %s reaches %v", example, missed)
		}
	}
}

func load(t *testing.T, definition, scenarios string) (*workflow.Definition, *scenario.File) {
	t.Helper()
	src, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	def, problems := workflow.Parse(definition, src)
	if def == nil {
		t.Fatal(problems)
	}
	if src, err = os.ReadFile(scenarios); err != nil {
		t.Fatal(err)
	}
	file, wrong := scenario.Read(scenarios, src)
	if wrong == nil {
		wrong = file.Check(def)
	}
	for _, p := range wrong {
		t.Error(p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return def, file
}

// Each script gives a definition, then files of scenarios with what comes of
// them: `go test ./scenario -rewrite` writes what happens now.
func TestScripts(t *testing.T) { // W15 W17 W20 W21 W23 W24
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var def *workflow.Definition
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "define" {
				var problems []workflow.Problem
				if def, problems = workflow.Parse("d.yaml", []byte(d.Input)); def == nil {
					t.Fatal(problems)
				}
				return "ok\n"
			}
			return play(t, def, []byte(d.Input), d.HasArg("junit"))
		})
	})
}

// play reads, checks and plays a file twice, since the same file must have the
// same result.
func play(t *testing.T, def *workflow.Definition, src []byte, junit bool) string {
	once := func() string {
		file, problems := scenario.Read("t.yaml", src)
		if problems == nil {
			problems = file.Check(def)
		}
		var b strings.Builder
		for _, p := range problems {
			b.WriteString(p.String() + "\n")
		}
		if len(problems) > 0 {
			return b.String()
		}
		report, err := scenario.Run(file, def, nil), error(nil)
		if junit {
			err = scenario.WriteJUnit(&b, []scenario.Report{report})
		} else {
			err = report.WriteText(&b, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first, second := once(), once()
	if first != second {
		t.Errorf("the same file played twice:\n%s\n%s", first, second)
	}
	return first
}

// Whatever the bytes are, reading ends with a file or with problems that have a
// place.
func FuzzRead(f *testing.F) {
	src, err := os.ReadFile(order + "_test.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Add([]byte("a: &a [*a]\nscenarios: *a"))
	f.Add([]byte("scenarios: [{name: x, start: {input: {n: 1e999999999}}, expect: {status: completed}}]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, problems := scenario.Read("f.yaml", src)
		if (file == nil) == (len(problems) == 0) {
			t.Fatal("neither a file nor problems, or both")
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 0 || p.Message == "" {
				t.Errorf("a problem without a place: %+v", p)
			}
		}
	})
}
