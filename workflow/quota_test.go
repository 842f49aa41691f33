package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// quotaOf is a definition of exactly this size.
func quotaOf(s workflow.Size) string {
	text := "ringi: v1\nname: n\nsteps:\n  - { id: wide, parallel: { branches: {"
	for i := range s.Width {
		text += fmt.Sprintf(" b%d: [ { id: w%d, wait: { for: 1h } } ],", i, i)
	}
	text += " } } }\n"
	steps := 1 + s.Width
	for i := 1; i < s.Depth; i++ {
		text += strings.Repeat("  ", 2*i-1) + fmt.Sprintf("- id: d%d\n", i) + strings.Repeat("  ", 2*i-1) + "  do:\n"
		steps++
	}
	for i := range s.Steps - steps {
		text += strings.Repeat("  ", 2*s.Depth-1) + fmt.Sprintf("- { id: s%d, wait: { for: 1h } }\n", i)
	}
	return text
}

// What check says before publishing is what publishing says: both call Check.
func TestQuotasAreProblemsWithAPlace(t *testing.T) { // W3
	q := workflow.Quotas{Steps: 12, Depth: 4, Width: 3}
	if d, problems := workflow.Check("f.yaml", []byte(quotaOf(workflow.Size{Steps: 12, Depth: 4, Width: 3})), q); d == nil || len(problems) > 0 {
		t.Fatalf("exactly at the quotas: %v", problems)
	}
	for _, c := range []struct {
		size  workflow.Size
		id    string
		names string
	}{
		{workflow.Size{Steps: 13, Depth: 4, Width: 3}, "RG0032", "step 13"},
		{workflow.Size{Steps: 40, Depth: 4, Width: 3}, "RG0032", "12 steps"},
		{workflow.Size{Steps: 12, Depth: 5, Width: 3}, "RG0033", "5 deep"},
		{workflow.Size{Steps: 14, Depth: 7, Width: 2}, "RG0033", "5 deep"},
		{workflow.Size{Steps: 12, Depth: 4, Width: 4}, "RG0034", "4 branches"},
	} {
		src := []byte(quotaOf(c.size))
		d, problems := workflow.Check("f.yaml", src, q)
		n := 0
		for _, p := range problems {
			if p.ID != c.id {
				continue
			}
			if n++; p.Line < 4 || p.Column < 2 || p.Suggestion == "" || !strings.Contains(p.Message, c.names) || !strings.Contains(p.Message, "of this server") {
				t.Errorf("%+v: %+v", c.size, p)
			}
		}
		if n != 1 || d != nil {
			t.Errorf("%+v: %v", c.size, problems)
		}
		if d, problems := workflow.Parse("f.yaml", src); d == nil || len(problems) > 0 {
			t.Errorf("%+v: what was published once must stay readable: %v", c.size, problems)
		} else if got := d.Measure(); got != c.size {
			t.Errorf("the test means %+v and made %+v", c.size, got)
		}
	}
	_, problems := workflow.Check("f.yaml", []byte(quotaOf(workflow.Size{Steps: 21, Depth: 1, Width: 1})), workflow.Quotas{})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "unless the server's operator has raised it") {
		t.Errorf("by default: %v", problems)
	}
}

func TestTextThatIsNestedTooDeepHasAPlace(t *testing.T) {
	head := "ringi: v1\nname: order # [\nsteps:\n  - x: "
	for name, c := range map[string]struct {
		src          string
		line, column int
	}{
		"brackets":         {head + strings.Repeat("[", 100) + strings.Repeat("]", 100), 4, 0},
		"too many of them": {head + strings.Repeat("[", 20_000), 4, 0},
		"braces":           {head + strings.Repeat("{a: ", 20_000), 4, 0},
		"dashes":           {head + "\n      " + strings.Repeat("- ", 20_000) + "a", 5, 0},
		"JSON":             {"{\"ringi\": \"v1\",\n\"a\":" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", 2, 0},
	} {
		_, problems := workflow.Parse("f.yaml", []byte(c.src))
		found := false
		for _, p := range problems {
			if p.ID == "RG0012" {
				found = true
				if p.Line != c.line || p.Column < 60 || p.Column > 400 {
					t.Errorf("%s: at %d:%d", name, p.Line, p.Column)
				}
			}
		}
		if !found {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestAFileThatIsTooLargeIsNotSaidToHaveTheSizeThatWasRead(t *testing.T) {
	read := strings.Repeat("a: b\n", 10<<20/5)[:workflow.MaxSource+1] // whoever reads ten megabytes stops here
	_, problems := workflow.Parse("f.yaml", []byte(read))
	if len(problems) != 1 || problems[0].ID != "RG0011" || strings.Contains(problems[0].Message, "1048577") || !strings.Contains(problems[0].Message, "more than 1048576 bytes") {
		t.Errorf("%v", problems)
	}
}
