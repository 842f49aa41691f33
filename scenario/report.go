package scenario

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// A Report is what came of the scenarios of one file.
type Report struct {
	File    string
	Results []Result
	Steps   []string // all of the definition, in the order of the file
}

// Run plays the scenarios of a file whose names match; nil matches all.
func Run(file *File, def *workflow.Definition, match func(name string) bool) Report {
	c := &checker{}
	c.learn(def)
	out := Report{File: file.Name, Steps: c.steps}
	for _, s := range file.Scenarios {
		if match == nil || match(s.Name) {
			out.Results = append(out.Results, Play(def, s))
		}
	}
	return out
}

// Failed counts the scenarios that came out otherwise than expected.
func (r Report) Failed() int {
	n := 0
	for _, res := range r.Results {
		if !res.Passed() {
			n++
		}
	}
	return n
}

// Missed lists the steps that no scenario reached.
func (r Report) Missed() []string {
	return slices.DeleteFunc(slices.Clone(r.Steps), func(id string) bool {
		return slices.ContainsFunc(r.Results, func(res Result) bool { return slices.Contains(res.Reached, id) })
	})
}

// longestStory is how many lines of a scenario are shown: its beginning and its
// end tell why it went in a circle.
const longestStory = 100

// WriteText writes the report in the form of `go test`: what failed with all
// that happened in it, then a line for the file. Verbose tells of the others too.
func (r Report) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, res := range r.Results {
		word := "PASS"
		if !res.Passed() {
			word = "FAIL"
		} else if !verbose {
			continue
		}
		fmt.Fprintf(&b, "--- %s: %s (%s of virtual time)\n", word, res.Scenario.Name, res.Took)
		for _, d := range res.Differences {
			fmt.Fprintf(&b, "    %s\n", d)
		}
		for i, line := range res.Story {
			switch rest := len(res.Story) - longestStory; {
			case rest <= 0 || i < longestStory/2 || i >= longestStory/2+rest:
				fmt.Fprintf(&b, "    %s\n", line)
			case i == longestStory/2:
				fmt.Fprintf(&b, "    %9s  … %d lines more …\n", "", rest)
			}
		}
	}
	missed := r.Missed()
	reached := fmt.Sprintf("%d of %d steps reached", len(r.Steps)-len(missed), len(r.Steps))
	if len(missed) > 0 && verbose {
		reached += ", not " + strings.Join(missed, ", ")
	}
	switch failed := r.Failed(); {
	case failed > 0:
		fmt.Fprintf(&b, "FAIL  %s  %d of %s failed\n", r.File, failed, counted(len(r.Results), "scenario"))
	case len(r.Results) == 0:
		fmt.Fprintf(&b, "ok    %s  no scenario of that name\n", r.File)
	default:
		fmt.Fprintf(&b, "ok    %s  %s, %s\n", r.File, counted(len(r.Results), "scenario"), reached)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"` // of virtual time: the other is next to nothing
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes reports in the XML form that build servers read.
func WriteJUnit(w io.Writer, reports []Report) error {
	var doc junitSuites
	for _, r := range reports {
		suite := junitSuite{Name: r.File, Tests: len(r.Results), Failures: r.Failed()}
		for _, res := range r.Results {
			c := junitCase{Class: r.File, Name: res.Scenario.Name, Seconds: fmt.Sprintf("%.3f", res.Took.Seconds())}
			if !res.Passed() {
				var lines []string
				for _, d := range res.Differences {
					lines = append(lines, d.String())
				}
				c.Failure = &junitFailure{Message: lines[0], Text: strings.Join(append(lines, res.Story...), "\n")}
			}
			suite.Cases = append(suite.Cases, c)
		}
		doc.Suites = append(doc.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
