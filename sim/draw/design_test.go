package draw_test

import (
	"fmt"
	"testing"

	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/workflow"
)

// What is drawn must be valid: a simulator that runs three of a hundred
// definitions proves little.
func TestEveryDrawnDefinitionPassesTheChecker(t *testing.T) {
	verbs := map[workflow.Verb]int{}
	for seed := range uint64(400) {
		source := draw.Definition(draw.New(seed, draw.StreamDesign), "drawn", seed%4 == 3)
		def, problems := workflow.Parse("drawn.yaml", []byte(source))
		if def == nil {
			for _, p := range problems {
				if p.Severity == workflow.SeverityError {
					t.Errorf("seed %d: %d:%d %s %s", seed, p.Line, p.Column, p.ID, p.Message)
				}
			}
			t.Fatalf("seed %d:\n%s", seed, source)
		}
		for i := range 40 {
			if s := def.Step(fmt.Sprintf("s%d", i)); s != nil {
				verbs[s.Verb]++
			}
		}
	}
	for _, v := range []workflow.Verb{
		workflow.VerbActivity, workflow.VerbApproval, workflow.VerbWait, workflow.VerbChoose, workflow.VerbParallel,
		workflow.VerbEmit, workflow.VerbSet, workflow.VerbDo, workflow.VerbFail, workflow.VerbFinish,
	} {
		if verbs[v] == 0 {
			t.Errorf("the verb %s was never drawn", v)
		}
	}
}
