package workflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// Each rule has a wrong and a right definition. The wrong one breaks exactly
// that rule at exactly the place in want.txt, the right one breaks none.
func TestEachRuleHasAWrongAndARightExample(t *testing.T) { // W3
	seen := map[string]bool{}
	for _, r := range workflow.Rules() {
		seen[r.ID] = true
		t.Run(r.ID, func(t *testing.T) {
			if r.Title == "" || r.Why == "" || r.Wrong == "" || r.Right == "" {
				t.Fatalf("the rule lacks a title, a reason or an example: %+v", r)
			}
			place, pad, err := wanted(r.ID)
			if err != nil {
				t.Fatalf("every rule needs rules/%s/want.txt: %v", r.ID, err)
			}
			wrong := r.Wrong
			if pad { // the rule is about size, which nobody wants to read
				wrong += strings.Repeat("# padding\n", workflow.MaxSource/10+1)
			}
			_, problems := workflow.Check("wrong.yaml", []byte(wrong), workflow.Quotas{})
			got := ""
			for _, p := range problems {
				got += fmt.Sprintf("%d:%d %s %s\n", p.Line, p.Column, p.ID, p.Severity)
				if p.Message == "" || p.Suggestion == "" {
					t.Errorf("a problem says what is wrong and what to write instead: %+v", p)
				}
			}
			if want := fmt.Sprintf("%s %s %s\n", place, r.ID, r.Severity); got != want {
				t.Errorf("wrong.yaml: got %swant %s%v", got, want, problems)
			}
			if d, problems := workflow.Check("right.yaml", []byte(r.Right), workflow.Quotas{}); d == nil || len(problems) > 0 {
				t.Errorf("right.yaml has problems: %v", problems)
			}
		})
	}
	dirs, err := filepath.Glob("rules/RG*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !seen[filepath.Base(dir)] {
			t.Errorf("%s is the example of no rule", dir)
		}
	}
}

// wanted reads want.txt: line:column, and "pad" where the test makes the file long.
func wanted(id string) (place string, pad bool, err error) {
	text, err := os.ReadFile(filepath.Join("rules", id, "want.txt"))
	words := strings.Fields(string(text) + " -")
	return words[0], len(words) > 2, err
}
