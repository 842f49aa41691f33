package sim_test

import (
	"testing"

	"github.com/ringiflow/ringi/sim"
	"github.com/ringiflow/ringi/sim/fault"
)

// Seeds that once found a fault play on without one. What a seed plays changes
// with the simulator; the fault itself has a test of its own where it was.
func TestSeedsThatFoundAFaultAreCleanNow(t *testing.T) { // W31
	for _, c := range []struct {
		name   string
		seed   uint64
		faults []fault.Kind
	}{
		{"an attempt is given up beside one that somebody works on", 87, fault.Kinds()},
		{"a timer's row is not dropped from a database that was restored meanwhile", 28, nil},
		{"a timer's row is not dropped after a restore, with everything breaking", 289, fault.Kinds()},
		{"a lease is held to the time that its giver knew", 613964, fault.Kinds()},
		{"a lease that was over is given up by a node that slept since", 1488, nil},
	} {
		for _, v := range sim.Run(t.Context(), sim.Config{Seed: c.seed, Faults: c.faults}).Found {
			t.Errorf("%s: %s", c.name, v.Story)
		}
	}
}
