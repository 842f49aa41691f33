package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/workflow"
)

// numbered repeats a format with a running number.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// expressions is a step with many expressions in its input.
func expressions(lines string) string {
	return "ringi: v1\nname: n\nsteps:\n  - id: a\n    activity: a\n    effect: pure\n    with:\n" + lines
}

// Hostile files are refused for what they are, and cost little memory; that
// they cost little time shows in the time that this test takes.
func TestHostileFilesAreRefusedCheaply(t *testing.T) { // W3
	bomb := "ringi: v1\nname: n\nlabels:\n  a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("  %c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	fill := func(s string) string { return strings.Repeat(s, (workflow.MaxSource-100)/len(s)) }
	for _, c := range []struct{ name, src, want string }{
		{"ten megabytes", strings.Repeat("a: b\n", 2<<20), "RG0011"},
		{"an alias bomb", bomb, "RG0011"},
		{"a long text repeated", expressions("      t: &t " + strings.Repeat("x", 900_000) + "\n      l: [" + strings.Repeat("*t,", 20_000) + "]\n"), "RG0011"},
		{"open brackets", fill("["), "RG0011"},
		{"ten thousand brackets", strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), "RG0012"},
		{"more brackets than the YAML parser takes", strings.Repeat("[", 20_000), "RG0012"},
		{"nested JSON", strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000), "RG0012"},
		{"dashes", fill("- "), "RG0012"},
		{"commas", "[" + fill("a,") + "]", "RG0011"},
		{"question marks", fill("?\n"), "RG0011"},
		{"unknown keys", numbered(50_000, "k%d: x\n"), "RG0001"},
		{"open expressions", numbered(100_000, "a%d: ${\n"), "RG0011"},
		{"steps", "ringi: v1\nname: n\nsteps:\n" + numbered(3_000, "  - { id: s%d, wait: { for: 1h } }\n"), "RG0026"},
		{"short expressions", expressions("      l: [" + strings.Repeat("\"${ input.x }\",", 6_000) + "]\n"), "RG0026"},
		{"long expressions", expressions(numbered(250, "      x%d: \"${ '"+strings.Repeat("x", 4000)+"' }\"\n")), "RG0026"},
		{"chained expressions", expressions(numbered(8, "      x%d: \"${ "+strings.Repeat("1+", 2030)+"1 }\"\n")), "RG0309"},
		{"nested expressions", expressions(numbered(8, "      x%d: \"${ "+strings.Repeat("(", 4000)+" }\"\n")), "RG0309"},
		{"a large schema", "ringi: v1\nname: n\ninput:\n  properties:\n" + numbered(20_000, "    p%d: { type: string }\n") + "steps: [ { id: a, wait: { for: 1h } } ]\n", "RG0026"},
		{"a number as long as the universe", "ringi: 1e999999999", "RG0017"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, problems := workflow.Parse("f.yaml", []byte(c.src))
			runtime.ReadMemStats(&after)
			if d != nil {
				t.Error("accepted")
			}
			found := false
			for _, p := range problems {
				found = found || p.ID == c.want
			}
			if !found {
				t.Errorf("got %v, want %s", problems, c.want)
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 256 {
				t.Errorf("allocated %d MB in all, want at most 256", mb)
			}
		})
	}
}

// An honest definition of the largest size is accepted within the same bounds.
func TestTheLargestDefinitionIsAccepted(t *testing.T) {
	src := "ringi: v1\nname: n\nsteps:\n" + numbered(workflow.MaxSteps, "  - { id: s%d, activity: a, effect: idempotent, when: input.x > 1, with: { a: \"${ input.x }\" }, compensate: { activity: u, with: { k: \"${ step.key }\" } } }\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, problems := workflow.Parse("f.yaml", []byte(src))
	runtime.ReadMemStats(&after)
	if d == nil || d.Steps() != workflow.MaxSteps {
		t.Fatal(problems)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 256 {
		t.Errorf("allocated %d MB in all, want at most 256", mb)
	}
}

// The same document in JSON is the same definition, with the same digest, and
// has the same problems.
func TestJSONIsTheSameLanguage(t *testing.T) { // W2
	files, err := filepath.Glob("rules/*/right.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range append(files, "testdata/order_fulfilment.yaml") {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tree any
		if err := yaml.Unmarshal(src, &tree); err != nil {
			t.Fatal(err)
		}
		doc, err := json.MarshalIndent(tree, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fromYAML, _ := workflow.Parse(file, src)
		fromJSON, problems := workflow.Parse("f.json", doc)
		if fromYAML == nil || fromJSON == nil || len(problems) > 0 {
			t.Fatalf("%s: %v", file, problems)
		}
		if fromYAML.Digest != fromJSON.Digest || len(fromYAML.Digest) != 64 {
			t.Errorf("%s: digests %s and %s", file, fromYAML.Digest, fromJSON.Digest)
		}
	}
}

func TestTheDigestCoversTheDocumentAsItIs(t *testing.T) { // W2
	digest := func(src string) string {
		d, problems := workflow.Parse("f.yaml", []byte("ringi: v1\nname: n\nsteps:\n"+src))
		if d == nil {
			t.Fatal(problems)
		}
		return d.Digest
	}
	step := "  - { id: a, set: { x: %s } }\n"
	same := digest(fmt.Sprintf(step, "0.1"))
	if digest("# a comment\n"+fmt.Sprintf(step, "0.10")) != same || digest("  -   set:  {x: 0.1}\n      id: a\n") != same {
		t.Error("layout, comments, order of keys and trailing zeros must not count")
	}
	if digest(fmt.Sprintf(step, "9007199254740993")) == digest(fmt.Sprintf(step, "9007199254740992")) {
		t.Error("large numbers must differ")
	}
	if digest("  - { id: a, activity: a, effect: pure }\n") == digest("  - { id: a, activity: a, effect: pure, queue: default }\n") {
		t.Error("defaults must not be filled in")
	}
}

// FuzzParse looks for files that make Parse panic, or accept what it cannot
// write down and read again.
func FuzzParse(f *testing.F) {
	for _, r := range workflow.Rules() {
		f.Add([]byte(r.Wrong))
		f.Add([]byte(r.Right))
	}
	src, err := os.ReadFile("testdata/order_fulfilment.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Fuzz(func(t *testing.T, src []byte) {
		d, problems := workflow.Parse("f.yaml", src)
		lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") + 2
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" || p.Suggestion == "" {
				t.Errorf("a problem without place or advice: %+v", p)
			}
			if _, known := workflow.Explain(p.ID); !known {
				t.Errorf("nobody can explain %s", p.ID)
			}
		}
		if d == nil {
			return
		}
		again, problems := workflow.Parse("f.json", d.Source)
		if again == nil || again.Digest != d.Digest {
			t.Errorf("the canonical form reads differently: %v\n%s", problems, d.Source)
		}
	})
}
