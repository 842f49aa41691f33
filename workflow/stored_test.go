package workflow_test

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// W2: what stands under a digest is what was published under it, or refused.
func TestAStoredDefinitionIsWhatItsDigestSays(t *testing.T) {
	def, problems := workflow.Parse("a.yaml", []byte("ringi: v1\nname: a\nsteps:\n  - { id: s, activity: work.s, effect: pure }\n"))
	if def == nil {
		t.Fatal(problems)
	}
	if got, err := workflow.Stored("a", def.Digest, def.Source); err != nil || got.Digest != def.Digest {
		t.Errorf("untouched: %v", err)
	}
	changed := []byte(strings.Replace(string(def.Source), "work.s", "work.t", 1))
	for what, c := range map[string]struct {
		name, digest string
		source       []byte
		want         string
	}{
		"source": {"a", def.Digest, changed, "was changed"},
		"digest": {"a", "other", def.Source, "was changed"},
		"name":   {"b", def.Digest, def.Source, "is of a"},
		"bytes":  {"a", def.Digest, []byte("{"), "cannot be read"},
	} {
		if _, err := workflow.Stored(c.name, c.digest, c.source); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("another %s: %v, want an error with %q", what, err, c.want)
		}
	}
}
