package conformance_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The libraries are typed, and their own tests pass; each is counted here.

// compiled is sdk/typescript made into what node runs, once per run of the tests.
var compiled = sync.OnceValue(func() error {
	tsc := exec.Command("node", "node_modules/typescript/bin/tsc")
	tsc.Dir = "../typescript"
	if out, err := tsc.CombinedOutput(); err != nil {
		return fmt.Errorf("sdk/typescript does not compile: %w\n%s\n(if the compiler is missing, run tools/need-sdk.sh)", err, out)
	}
	return nil
})

func TestTypeScriptCompiles(t *testing.T) {
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
}

func TestPythonPassesItsTypeCheck(t *testing.T) {
	python, err := filepath.Abs("../../bin/sdk-python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	mypy := exec.Command(python, "-m", "mypy")
	mypy.Dir = "../python"
	if out, err := mypy.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n(if the type checker is missing, run tools/need-sdk.sh)", err, out)
	}
}

func TestUnitsOfPython(t *testing.T) {
	cmd := exec.Command(needed(t, "python3"), "-W", "error", "-m", "unittest", "-v")
	cmd.Dir = "../python/tests"
	cmd.Env = append(cmd.Environ(), "PYTHONPATH=../src", "PYTHONDONTWRITEBYTECODE=1")
	count(t, cmd, regexp.MustCompile(`(?m)^(\w+) \(.*\) \.\.\. (.*)$`), "ok")
}

func TestUnitsOfTypeScript(t *testing.T) {
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../typescript/test/*.test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(needed(t, "node"), append([]string{"--test", "--test-reporter=tap"}, files...)...)
	count(t, cmd, regexp.MustCompile(`(?m)^ *(?:not )?ok \d+ - (.*)()$`), "")
}

// count runs the tests of another language and makes a test of each: pattern
// finds their names and how they went, which is to be passed.
func count(t *testing.T, cmd *exec.Cmd, pattern *regexp.Regexp, passed string) {
	t.Helper()
	out, failed := cmd.CombinedOutput()
	found := pattern.FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		t.Fatalf("no tests were run: %v\n%s", failed, out)
	}
	for _, f := range found {
		t.Run(strings.ReplaceAll(f[1], "_", " "), func(t *testing.T) {
			if f[2] != passed || strings.HasPrefix(strings.TrimSpace(f[0]), "not ok") || strings.Contains(f[1], "# SKIP") {
				t.Errorf("%s", f[0])
			}
		})
	}
	if failed != nil {
		t.Errorf("%v\n%s", failed, out)
	}
}
