package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow"
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

func TestDefinitionsAreLaidOut(t *testing.T) {
	w := newDesk(t)
	const untidy, tidy = "name: n\nringi: v1 # one\nsteps:\n- set: { a: ${ input.x } }\n  id: s\n", "ringi: v1  # one\nname: n\nsteps:\n  - id: s\n    set: { a: \"${ input.x }\" }\n"
	w.write("a.yaml", untidy)
	w.write("b.yaml", tidy)
	if got := w.run("fmt", "a.yaml"); got.code != cli.ExitOK || got.out != tidy {
		t.Errorf("printed: %+v", got)
	}
	if got := w.runWith(untidy, "fmt", "-"); got.code != cli.ExitOK || got.out != tidy {
		t.Errorf("from standard input: %+v", got)
	}
	if got := w.run("fmt", "--check", "a.yaml", "b.yaml"); got.code != cli.ExitProblems || got.out != "a.yaml\n" {
		t.Errorf("checked: %+v", got)
	}
	if got := w.run("fmt", "-w", "a.yaml", "b.yaml"); got.code != cli.ExitOK || got.out != "a.yaml\n" {
		t.Errorf("written: %+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "a.yaml")); err != nil || string(text) != tidy {
		t.Errorf("the file holds %q, %v", text, err)
	}
	var out struct {
		Changed  []string           `json:"changed"`
		Problems []workflow.Problem `json:"problems"`
		Errors   int                `json:"errors"`
		Warnings int                `json:"warnings"`
	}
	w.ok(&out, "fmt", "--check", "a.yaml", "b.yaml")
	if len(out.Changed) != 0 {
		t.Errorf("afterwards: %+v", out)
	}
	w.write("c.yaml", "ringi: [v1\n")
	w.exits(cli.ExitProblems, &out, "fmt", "-w", "c.yaml")
	if out.Errors != 1 || out.Problems[0].ID != "RG0004" {
		t.Errorf("what is no YAML: %+v", out)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "c.yaml")); err != nil || string(text) != "ringi: [v1\n" {
		t.Errorf("a file that cannot be read is %q, %v", text, err)
	}
}

func TestTheSchemaOfDefinitionsIsPrinted(t *testing.T) {
	w := newDesk(t)
	var schema map[string]any
	w.ok(&schema, "schema")
	if schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" || schema["$defs"] == nil {
		t.Errorf("the schema is %v", schema)
	}
	if got := w.run("schema"); got.code != cli.ExitOK || !strings.Contains(got.out, "\n  \"$defs\": {\n") {
		t.Errorf("for people: %+v", got)
	}
}

// Every template is a beginning that needs nothing: it has no problems, its
// scenarios pass, it is laid out, its schema is the one of this program.
func TestATemplateIsAGoodBeginning(t *testing.T) {
	var list struct {
		Templates []struct{ Name, About string } `json:"templates"`
	}
	newDesk(t).ok(&list, "init", "--list")
	if len(list.Templates) < 4 {
		t.Errorf("the templates are %+v", list)
	}
	for _, template := range list.Templates {
		w := newDesk(t)
		var made struct {
			Template string   `json:"template"`
			Files    []string `json:"files"`
		}
		w.ok(&made, "init", "new", "--template", template.Name)
		if made.Template != template.Name || len(made.Files) != 4 || template.About == "" {
			t.Fatalf("%s: %+v", template.Name, made)
		}
		for _, file := range made.Files {
			if filepath.Ext(file) != ".yaml" {
				continue
			}
			if got := w.run("fmt", "--check", file); got.code != cli.ExitOK {
				t.Errorf("%s is not laid out: %+v", file, got)
			}
			if strings.HasSuffix(file, "_test.yaml") {
				continue
			}
			if got := w.run("check", file); got.code != cli.ExitOK || !strings.Contains(got.out, "no problems") {
				t.Errorf("%s: %+v", file, got)
			}
			if got := w.run("test", file); got.code != cli.ExitOK {
				t.Errorf("%s: %+v", file, got)
			}
		}
		readme, err := os.ReadFile(filepath.Join(w.dir, "new", "README.md"))
		if err != nil || !strings.Contains(string(readme), "ringi start ") {
			t.Errorf("the README of %s does not say how to run it: %v", template.Name, err)
		}
		schema, err := os.ReadFile(filepath.Join(w.dir, "new", "ringi.schema.json"))
		if err != nil || string(schema) != w.run("schema").out {
			t.Errorf("the schema of %s is another one: %v", template.Name, err)
		}
	}
}

func TestAFileBehindALinkIsLaidOutAndTheLinkStays(t *testing.T) {
	w := newDesk(t)
	w.write("real.yaml", "name:   n\nringi: v1\nsteps: []\n")
	link := filepath.Join(w.dir, "link.yaml")
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Fatal(err)
	}
	if got := w.run("fmt", "-w", "link.yaml"); got.code != cli.ExitOK || got.out != "link.yaml\n" {
		t.Errorf("written: %+v", got)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.yaml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "real.yaml")); err != nil || string(text) != "ringi: v1\nname: n\nsteps: []\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	w := newDesk(t)
	w.write("README.md", "mine")
	got := w.run("init")
	if got.code != cli.ExitConflict || !strings.Contains(got.err, "README.md exists already") {
		t.Errorf("beside a file of that name: %+v", got)
	}
	entries, err := os.ReadDir(w.dir)
	if text, rerr := os.ReadFile(filepath.Join(w.dir, "README.md")); err != nil || rerr != nil || len(entries) != 1 || string(text) != "mine" {
		t.Errorf("%d files, %q, %v, %v", len(entries), text, err, rerr)
	}
	if got := w.run("init", "README.md"); got.code != cli.ExitUsage || !strings.Contains(got.err, "README.md is a file") {
		t.Errorf("into a file: %+v", got)
	}
	if got := w.run("init", "new", "--template", "nothing"); got.code != cli.ExitUsage {
		t.Errorf("an unknown template: %+v", got)
	}
	if got := w.run("init", "new"); got.code != cli.ExitOK || !strings.Contains(got.out, filepath.Join("new", "purchase.yaml")+"\n") || !strings.Contains(got.err, "README.md says how") {
		t.Errorf("into a new directory: %+v", got)
	}
}

// Whoever types *.yaml means the definitions, and the scenarios once.
func TestScenariosBesideDefinitionsAreLeftOut(t *testing.T) {
	w := newDesk(t)
	if got := w.run("init", "trip", "--template", "saga"); got.code != cli.ExitOK {
		t.Fatalf("init: %+v", got)
	}
	if got := w.run("check", "trip/trip.yaml", "trip/trip_test.yaml"); got.code != cli.ExitOK || !strings.Contains(got.err, "trip_test.yaml was left out") {
		t.Errorf("both checked: %+v", got)
	}
	if got := w.run("check", "trip/trip_test.yaml"); got.code != cli.ExitUsage || !strings.Contains(got.err, "ringi test trip/trip_test.yaml") {
		t.Errorf("the scenarios alone checked: %+v", got)
	}
	if got := w.run("fmt", "--check", "trip/trip.yaml", "trip/trip_test.yaml"); got.code != cli.ExitOK || got.err != "" {
		t.Errorf("both laid out: %+v", got)
	}
	if got := w.run("graph", "trip/trip_test.yaml"); got.code != cli.ExitUsage || !strings.Contains(got.err, "holds scenarios") {
		t.Errorf("drawn: %+v", got)
	}
	if got := w.run("test", "trip/trip.yaml", "trip/trip_test.yaml"); got.code != cli.ExitOK || strings.Count(got.out, "trip_test.yaml") != 1 {
		t.Errorf("tested: %+v", got)
	}
	definition, err := os.ReadFile(filepath.Join(w.dir, "trip/trip.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("load_test.yaml", string(definition))
	if got := w.run("check", "load_test.yaml"); got.code != cli.ExitOK {
		t.Errorf("a definition with the name of scenarios: %+v", got)
	}
}
