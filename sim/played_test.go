package sim_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/sim"
)

// A world is one goroutine, in which the race detector finds nothing and which
// it makes eight times as slow. Under it most seeds are therefore played by the
// program, built without it: the same seeds with the same outcome. What runs
// side by side, the seeds of one simulation, is played in this process too, by
// the tests with planted faults and the one that compares traces.

// fewer is a number of seeds that are played in this process: under the race
// detector a quarter.
func fewer(seeds int) int {
	if raced {
		return max(seeds/4, 1)
	}
	return seeds
}

// played plays seeds: here, or by a program that was built aside.
func played(t *testing.T, program string, c sim.Config) sim.Report {
	t.Helper()
	if program == "" {
		return sim.Run(t.Context(), c)
	}
	args := []string{"sim", "--json", "--seed", strconv.FormatUint(c.Seed, 10), "--seeds", strconv.Itoa(max(c.Seeds, 1))}
	if c.Faults != nil {
		names := make([]string, len(c.Faults))
		for i, f := range c.Faults {
			names[i] = string(f)
		}
		args = append(args, "--faults", strings.Join(names, ","))
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var story strings.Builder
	cmd.Stderr = &story
	out, err := cmd.Output()
	var r sim.Report
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		t.Fatalf("no report: %v, %v\n%s", err, jsonErr, story.String())
	}
	for i := range r.Found {
		r.Found[i].Story = story.String()
	}
	return r
}

// aside builds the program that plays for a test under the race detector; else
// there is none. The flags are those of make build, which has most of it.
func aside(t *testing.T) (program string) {
	t.Helper()
	if !raced {
		return ""
	}
	program = filepath.Join(t.TempDir(), "ringi")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/ringi")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
