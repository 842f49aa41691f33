package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The streams in testdata were recorded with go test -json and shortened:
// no times, no frames of the testing package.
func TestTallyOfRecordedRuns(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		last   string
		code   int
		shows  []string
		hides  []string
	}{
		{
			name: "tests and subtests that pass are counted and say nothing", stream: "good",
			last: "4 passed, 0 failed, 0 skipped", code: 0,
			shows: []string{"ok    example.org/shop/good: 4"},
			hides: []string{"not shown", "=== RUN"},
		},
		{
			name: "a failing subtest fails its parent and a skipped test fails the run", stream: "bad",
			last: "1 passed, 2 failed, 1 skipped", code: 1,
			shows: []string{
				"FAIL  example.org/shop/bad TestTotal/two_items", "total = 3, want 4",
				"SKIP  example.org/shop/bad TestLater", "no database here",
				"FAIL  example.org/shop/bad: 2 of 4",
			},
		},
		{
			name: "a package that does not build is a failure with the compiler's words", stream: "broken",
			last: "0 passed, 1 failed, 0 skipped", code: 1,
			shows: []string{"broken_test.go:5:32: undefined: undefinedName", "example.org/shop/broken (build)"},
		},
		{
			name: "a panic fails the test that it ended", stream: "panics",
			last: "1 passed, 1 failed, 0 skipped", code: 1,
			shows: []string{"panic: assignment to entry in nil map", "panics_test.go:9", "example.org/shop/panics TestNilMap"},
		},
		{
			name: "a test under which the process ended is a failure", stream: "exits",
			last: "0 passed, 1 failed, 0 skipped", code: 1,
			shows: []string{"example.org/shop/exits TestLeaves", "(began and never ended)"},
		},
		{
			name: "a test that ran into the time-out is a failure with the stack", stream: "slow",
			last: "0 passed, 1 failed, 0 skipped", code: 1,
			shows: []string{"panic: test timed out after 1s", "slow_test.go:5", "example.org/shop/slow TestWaitsForEver"},
		},
		{
			name: "a stream that breaks off fails what was under way", stream: "killed",
			last: "0 passed, 2 failed, 0 skipped", code: 1,
			shows: []string{"example.org/shop/good TestAdds", "example.org/shop/good TestAdds/small"},
		},
		{
			name: "a result from the cache counts and says so", stream: "cached",
			last: "4 passed, 0 failed, 0 skipped", code: 0,
			shows: []string{"unchanged since they last passed"},
		},
		{
			name: "no test at all is no success", stream: "empty",
			last: "0 passed, 0 failed, 0 skipped", code: 1,
			shows: []string{"-     example.org/shop/empty: no tests", "no test ran"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream, err := os.Open(filepath.Join("testdata", tt.stream+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var out bytes.Buffer
			sum := newTally(&out)
			if err := read(stream, sum, &out); err != nil {
				t.Fatal(err)
			}
			sum.endOfRun()
			if code := sum.finish(time.Second); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			report := out.String()
			lines := strings.Split(strings.TrimSpace(report), "\n")
			if last := lines[len(lines)-1]; last != tt.last {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			for _, want := range tt.shows {
				if !strings.Contains(report, want) {
					t.Errorf("report does not say %q:\n%s", want, report)
				}
			}
			for _, unwanted := range tt.hides {
				if strings.Contains(report, unwanted) {
					t.Errorf("report says %q:\n%s", unwanted, report)
				}
			}
		})
	}
}

func TestGoCommandThatFailsByItselfIsOneFailure(t *testing.T) {
	var out bytes.Buffer
	sum := newTally(&out)
	sum.add(event{Action: "pass", Package: "example.org/shop", Test: "TestOne"})
	sum.add(event{Action: "pass", Package: "example.org/shop"})
	sum.commandFailed("tools", errors.New("go test: exit status 1"))
	if code := sum.finish(time.Second); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "1 passed, 1 failed, 0 skipped\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("report ends with %q, want %q", out.String(), want)
	}
	if want := "in tools: go test: exit status 1"; !strings.Contains(out.String(), want) {
		t.Errorf("report %q does not say %q", out.String(), want)
	}
}

func TestLinesThatAreNoEventsArePassedOn(t *testing.T) {
	var out bytes.Buffer
	sum := newTally(&out)
	stream := strings.NewReader("go: downloading a module\n{\"no\":\"action\"}\n")
	if err := read(stream, sum, &out); err != nil {
		t.Fatal(err)
	}
	if want := "go: downloading a module\n{\"no\":\"action\"}\n"; out.String() != want {
		t.Errorf("passed on %q, want %q", out.String(), want)
	}
}

// The whole program against a real module, in which one directory is missing.
func TestProgramSumsSeveralDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.org/two\n\ngo 1.26\n")
	write("two_test.go", "package two\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {}\n\nfunc TestTwo(t *testing.T) {}\n")

	var out, errs bytes.Buffer
	if code := run([]string{"-dirs", dir, "./..."}, &out, &errs); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if want := "2 passed, 0 failed, 0 skipped\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("report ends with %q, want %q", out.String(), want)
	}

	out.Reset()
	if code := run([]string{"-dirs", dir + "," + filepath.Join(dir, "missing"), "./..."}, &out, &errs); code != 1 {
		t.Errorf("exit code %d with a missing directory, want 1", code)
	}
	if want := "2 passed, 1 failed, 0 skipped\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("report ends with %q, want %q", out.String(), want)
	}

	out.Reset()
	if code := run([]string{"-limit", "1ns", "-dirs", dir, "./..."}, &out, &errs); code != 1 {
		t.Errorf("exit code %d after the limit, want 1", code)
	}
	if want := "stopped after the limit of 1ns"; !strings.Contains(out.String(), want) {
		t.Errorf("report %q does not say %q", out.String(), want)
	}

	if code := run([]string{"-unknown"}, &out, &errs); code != 2 {
		t.Errorf("exit code %d for an unknown flag, want 2", code)
	}
}
