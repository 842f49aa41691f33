package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail, in place of Package
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// tally counts tests and prints what a reader has to see. It is not safe for
// concurrent use.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	failures                []string // "package test", in order of arrival
	packages                map[string]*testPackage
	builds                  map[string]*strings.Builder // compiler output by import path
}

// testPackage is a package whose tests are under way.
type testPackage struct {
	open   map[string]bool             // tests that began and have not ended
	output map[string]*strings.Builder // by test; "" is the package itself
	tests  int
	failed int
	cached bool
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, packages: map[string]*testPackage{}, builds: map[string]*strings.Builder{}}
}

// add takes one event, in the order in which go test printed them.
func (t *tally) add(ev event) {
	switch ev.Action {
	case "build-output":
		buffer(t.builds, ev.ImportPath).WriteString(ev.Output)
		return
	case "build-fail":
		fmt.Fprint(t.out, buffer(t.builds, ev.ImportPath).String())
		delete(t.builds, ev.ImportPath)
		return
	}

	p := t.packages[ev.Package]
	if p == nil {
		p = &testPackage{open: map[string]bool{}, output: map[string]*strings.Builder{}}
		t.packages[ev.Package] = p
	}
	switch ev.Action {
	case "run":
		p.open[ev.Test] = true
	case "output":
		if ev.Test == "" && strings.HasSuffix(strings.TrimSpace(ev.Output), "(cached)") {
			p.cached = true
		}
		if !noise(ev.Output) {
			buffer(p.output, ev.Test).WriteString(ev.Output)
		}
	case "pass", "fail", "skip":
		if ev.Test != "" {
			t.endTest(ev.Package, p, ev.Test, ev.Action)
		} else {
			t.endPackage(ev, p)
		}
	}
}

func (t *tally) endTest(pkg string, p *testPackage, test, how string) {
	delete(p.open, test)
	p.tests++
	switch how {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		fmt.Fprintf(t.out, "SKIP  %s %s: nothing is skipped here; make the test run everywhere or remove it\n%s", pkg, test, p.text(test))
	case "fail":
		t.fail(pkg, p, test, p.text(test))
	}
	delete(p.output, test)
}

// endPackage settles the tests that never ended and a failure that belongs to
// no test, then prints the package's line.
func (t *tally) endPackage(ev event, p *testPackage) {
	t.failOpen(ev.Package, p)
	if ev.Action == "fail" && p.failed == 0 {
		what := "(package)"
		if ev.FailedBuild != "" {
			what = "(build)"
		}
		t.fail(ev.Package, p, what, p.text(""))
	} else if p.failed > 0 {
		fmt.Fprint(t.out, p.text(""))
	}
	switch {
	case p.failed > 0:
		fmt.Fprintf(t.out, "FAIL  %s: %d of %d, %.1fs\n", ev.Package, p.failed, p.tests, ev.Elapsed)
	case p.tests == 0:
		fmt.Fprintf(t.out, "-     %s: no tests\n", ev.Package)
	case p.cached:
		fmt.Fprintf(t.out, "ok    %s: %d, unchanged since they last passed\n", ev.Package, p.tests)
	default:
		fmt.Fprintf(t.out, "ok    %s: %d, %.1fs\n", ev.Package, p.tests, ev.Elapsed)
	}
	delete(t.packages, ev.Package)
}

func (t *tally) fail(pkg string, p *testPackage, test, output string) {
	t.failed++
	p.failed++
	t.failures = append(t.failures, pkg+" "+test)
	fmt.Fprintf(t.out, "\nFAIL  %s %s\n%s\n", pkg, test, output)
}

// failOpen counts what began and never ended: the process died under it.
func (t *tally) failOpen(pkg string, p *testPackage) {
	var open []string
	for test := range p.open {
		open = append(open, test)
	}
	slices.Sort(open)
	for _, test := range open {
		delete(p.open, test)
		p.tests++
		t.fail(pkg, p, test, p.text(test)+"    (began and never ended)\n")
	}
}

// endOfRun settles packages that never reported an end: go test was killed.
func (t *tally) endOfRun() {
	var open []string
	for pkg := range t.packages {
		open = append(open, pkg)
	}
	slices.Sort(open)
	for _, pkg := range open {
		p := t.packages[pkg]
		t.failOpen(pkg, p)
		if p.failed == 0 {
			t.fail(pkg, p, "(package)", p.text("")+"    (began and never ended)\n")
		}
		delete(t.packages, pkg)
	}
}

// commandFailed records that the go command itself failed in dir. It counts
// only when no test accounts for it.
func (t *tally) commandFailed(dir string, err error) {
	fmt.Fprintf(t.out, "in %s: %v\n", dir, err)
	if t.failed == 0 {
		t.failed++
		t.failures = append(t.failures, dir+" (go test)")
	}
}

// finish prints the end of the report and returns the exit code.
func (t *tally) finish(took time.Duration) int {
	if len(t.failures) > 0 {
		fmt.Fprintf(t.out, "\nfailed:\n  %s\n", strings.Join(t.failures, "\n  "))
	}
	if t.passed+t.failed+t.skipped == 0 {
		fmt.Fprintln(t.out, "no test ran: check the package patterns and -run")
	}
	fmt.Fprintf(t.out, "took %v\n", took.Round(100*time.Millisecond))
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	if t.passed == 0 || t.failed > 0 || t.skipped > 0 {
		return 1
	}
	return 0
}

// text is what a test printed, or the package itself if test is empty.
func (p *testPackage) text(test string) string {
	if b := p.output[test]; b != nil {
		return b.String()
	}
	return ""
}

// noise reports whether a line only says that a test goes on.
func noise(line string) bool {
	for _, prefix := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func buffer(m map[string]*strings.Builder, key string) *strings.Builder {
	b := m[key]
	if b == nil {
		b = &strings.Builder{}
		m[key] = b
	}
	return b
}
