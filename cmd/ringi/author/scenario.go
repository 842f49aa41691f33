package author

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/scenario"
	"github.com/ringiflow/ringi/workflow"
)

// scenarioSuffix marks a file of scenarios: order_test.yaml tests order.yaml.
const scenarioSuffix = "_test.yaml"

// holdsScenarios tells a file of scenarios from a definition that has such a name.
func (f sourceFile) holdsScenarios() bool {
	const key = "\nscenarios:"
	return strings.HasSuffix(f.name, scenarioSuffix) && (bytes.Contains(f.text, []byte(key)) || bytes.HasPrefix(f.text, []byte(key[1:])))
}

// A testedScenario is one line of test --json.
type testedScenario struct {
	File        string             `json:"file"`
	Name        string             `json:"name"`
	Passed      bool               `json:"passed"`
	VirtualMS   int64              `json:"virtualMs"`
	Differences []scenario.Problem `json:"differences"`
}

// Tested is what test --json prints.
type Tested struct {
	Scenarios []testedScenario   `json:"scenarios"`
	Passed    int                `json:"passed"`
	Failed    int                `json:"failed"`
	Problems  []scenario.Problem `json:"problems"` // of the files: they were not played
	Missed    []string           `json:"missed"`   // file: step, for each step that no scenario reaches

	reports []scenario.Report
}

type testFlags struct {
	match   string
	verbose bool
	junit   string
}

func (p program) testCommand() *cobra.Command {
	var f testFlags
	c := &cobra.Command{
		Use: "test FILE...", Short: "Test definitions with the scenarios beside them", Args: cli.AtLeastOne("FILE"),
		Long: `Plays scenarios under virtual time, without a server or a worker: what workers
answer, what people do and how much time passes stands in order_test.yaml beside
order.yaml, together with what must come of it. FILE is a definition, its file of
scenarios, or a directory with such files.

Exits with 1 if a scenario comes out otherwise than it says, and with 6 if a file
has problems. docs/scenarios.md shows how to write them.`,
		Example: "  ringi test order.yaml\n  ringi test definitions --run declined -v\n  ringi test definitions --junit report.xml",
		RunE:    func(_ *cobra.Command, args []string) error { return p.test(args, f) },
	}
	c.Flags().StringVar(&f.match, "run", "", "only scenarios whose name matches this regular expression")
	cli.SettingFlags(c, cli.QuotaSettings()...)
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "tell what happened in those that passed too")
	c.Flags().StringVar(&f.junit, "junit", "", "also write the results to this file, in JUnit's form")
	return c
}

func (p program) test(args []string, f testFlags) error {
	match, err := regexp.Compile(f.match)
	if err != nil {
		return cli.Usage("", "--run is not a regular expression: %v", err)
	}
	files, err := p.scenarioFiles(args)
	if err != nil {
		return err
	}
	out := Tested{Scenarios: []testedScenario{}, Problems: []scenario.Problem{}, Missed: []string{}}
	for _, name := range files {
		if err := p.testFile(&out, name, match); err != nil {
			return err
		}
	}
	if f.junit != "" {
		if err := p.writeJUnit(f.junit, out.reports); err != nil {
			return err
		}
	}
	if p.JSON() {
		err = p.PrintJSON(out)
	} else {
		err = p.printTested(out, f.verbose)
	}
	switch {
	case err != nil:
		return err
	case len(out.Problems) > 0:
		return &cli.Ending{Code: cli.ExitProblems}
	case out.Failed > 0:
		return &cli.Ending{Code: cli.ExitFailed}
	}
	return nil
}

// scenarioFiles are the files of scenarios that the arguments mean, each once:
// *.yaml names a definition and its scenarios.
func (p program) scenarioFiles(args []string) ([]string, error) {
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range args {
		info, err := os.Stat(p.Path(name))
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			found, err := filepath.Glob(filepath.Join(p.Path(name), "*"+scenarioSuffix))
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, cli.Usage("write order"+scenarioSuffix+" beside order.yaml", "there are no scenarios in %s", name)
			}
			for _, path := range found {
				add(filepath.Join(name, filepath.Base(path)))
			}
		case strings.HasSuffix(name, scenarioSuffix):
			add(name)
		default:
			beside := strings.TrimSuffix(name, filepath.Ext(name)) + scenarioSuffix
			if _, err := os.Stat(p.Path(beside)); err != nil {
				return nil, cli.Usage("write its scenarios into "+beside, "there are no scenarios for %s", name)
			}
			add(beside)
		}
	}
	return out, nil
}

// testFile plays one file of scenarios, or notes why it cannot be played.
func (p program) testFile(out *Tested, name string, match *regexp.Regexp) error {
	src, err := p.readSource(name)
	if err != nil {
		return err
	}
	file, problems := scenario.Read(name, src.text)
	if len(problems) > 0 {
		out.Problems = append(out.Problems, problems...)
		return nil
	}
	definition := strings.TrimSuffix(name, scenarioSuffix) + ".yaml"
	if file.Definition != "" {
		definition = filepath.Join(filepath.Dir(name), file.Definition)
	}
	if src, err = p.readSource(definition); err != nil {
		return err
	}
	def, found := workflow.Check(definition, src.text, p.Quotas())
	if def == nil {
		for _, d := range found {
			if d.Severity == workflow.SeverityError {
				out.Problems = append(out.Problems, scenario.Problem{
					File: d.File, Place: scenario.Place{Line: d.Line, Column: d.Column}, Message: d.ID + ": " + d.Message, Suggestion: d.Suggestion,
				})
			}
		}
		return nil
	}
	if problems = file.Check(def); len(problems) > 0 {
		out.Problems = append(out.Problems, problems...)
		return nil
	}
	out.add(scenario.Run(file, def, match.MatchString), match.String() != "")
	return nil
}

func (t *Tested) add(r scenario.Report, some bool) {
	t.reports = append(t.reports, r)
	for _, res := range r.Results {
		s := testedScenario{r.File, res.Scenario.Name, res.Passed(), res.Took.Milliseconds(), []scenario.Problem{}}
		s.Differences = append(s.Differences, res.Differences...)
		t.Scenarios = append(t.Scenarios, s)
	}
	t.Failed += r.Failed()
	t.Passed += len(r.Results) - r.Failed()
	if some { // what the others reach is not known
		return
	}
	for _, step := range r.Missed() {
		t.Missed = append(t.Missed, r.File+": "+step)
	}
}

func (p program) printTested(t Tested, verbose bool) error {
	var b bytes.Buffer
	for _, r := range t.reports {
		if err := r.WriteText(&b, verbose); err != nil {
			return err
		}
	}
	for _, problem := range t.Problems {
		fmt.Fprintf(&b, "%s\n", problem)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(p.Stdout, cli.Plain(strings.TrimSuffix(line, "\n"))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (p program) writeJUnit(name string, reports []scenario.Report) error {
	f, err := os.Create(p.Path(name))
	if err != nil {
		return err
	}
	return errors.Join(scenario.WriteJUnit(f, reports), f.Close())
}
