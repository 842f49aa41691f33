package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func TestADefinitionIsDrawn(t *testing.T) {
	w := newDesk(t)
	w.write("hello.yaml", helloDefinition)
	for args, want := range map[string]string{
		"graph hello.yaml":                  "● completed – text\n",
		"graph hello.yaml --format mermaid": "flowchart TD\n",
		"graph hello.yaml --format svg":     "<svg xmlns=",
	} {
		if got := w.run(strings.Fields(args)...); got.code != cli.ExitOK || !strings.Contains(got.out, want) || got.err != "" {
			t.Errorf("ringi %s: %+v, want %q", args, got, want)
		}
	}
	w.env["COLUMNS"] = "40"
	for line := range strings.Lines(w.run("graph", "hello.yaml").out) {
		if len([]rune(line)) > 41 {
			t.Errorf("a terminal of 40 columns gets %q", line)
		}
	}
	if got := w.run("graph", "hello.yaml", "--format", "svg", "--out", "hello.svg"); got.code != cli.ExitOK || got.out != "" {
		t.Errorf("into a file: %+v", got)
	}
	drawn, err := os.ReadFile(filepath.Join(w.dir, "hello.svg"))
	if err != nil || !strings.HasPrefix(string(drawn), "<svg ") {
		t.Errorf("the file holds %.40q, %v", drawn, err)
	}
	w.write("wrong.yaml", wrongDefinition)
	if got := w.run("graph", "wrong.yaml"); got.code != cli.ExitProblems || got.out != "" || !strings.Contains(got.err, "RG0001") {
		t.Errorf("a wrong definition: %+v", got)
	}
	if got := w.run("graph", "hello.yaml", "--format", "png"); got.code != cli.ExitUsage || !strings.Contains(got.err, "mermaid") {
		t.Errorf("an unknown format: %+v", got)
	}
}
