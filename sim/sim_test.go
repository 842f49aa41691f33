package sim_test

import (
	"testing"

	"github.com/ringiflow/ringi/sim"
)

// The same seed gives the same steps, whatever runs beside it.
func TestTheSameSeedGivesTheSameTrace(t *testing.T) { // W31
	one := sim.Run(t.Context(), sim.Config{Seed: 3, Seeds: 10, Parallel: 1})
	two := sim.Run(t.Context(), sim.Config{Seed: 3, Seeds: 10, Parallel: 3})
	if one.TraceDigest != two.TraceDigest || one.Steps != two.Steps {
		t.Errorf("two plays of the same seeds: %s after %d steps, %s after %d", one.TraceDigest, one.Steps, two.TraceDigest, two.Steps)
	}
	other := sim.Run(t.Context(), sim.Config{Seed: 4, Seeds: 10})
	if other.TraceDigest == one.TraceDigest {
		t.Error("other seeds give the same trace")
	}
}
