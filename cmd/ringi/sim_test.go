package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/sim"
)

// W31: one seed gives one report, as the one object on standard output.
func TestSimGivesTheSameReportForTheSameSeed(t *testing.T) {
	w := newDesk(t)
	var one, two sim.Report
	w.ok(&one, "sim", "--seed", "11", "--seeds", "2", "--json")
	w.ok(&two, "sim", "--seed", "11", "--seeds", "2", "--json")
	if one.Seeds != 2 || one.Steps == 0 || one.Violations != 0 || one.TraceDigest == "" || one.TraceDigest != two.TraceDigest {
		t.Errorf("two reports of seed 11: %+v, %+v", one, two)
	}
	got := w.run("sim", "--seed", "11", "--json")
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got.out), &fields); err != nil || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("standard output is not one object: %v\n%s", err, got.out)
	}
	for _, name := range []string{"seeds", "steps", "faults", "commands", "events", "traceDigest", "violations"} {
		if fields[name] == nil {
			t.Errorf("the report does not hold %s: %s", name, got.out)
		}
	}
}

func TestSimRefusesWhatMakesNoSense(t *testing.T) {
	w := newDesk(t)
	for _, args := range [][]string{
		{"--faults", "earthquake"},
		{"--skip", "9-3"},
		{"--seeds", "0"},
		{"--seeds", "many"},
		{"--nodes", "-3"},
		{"--workers", "-1"},
		{"--starts", "-1"},
		{"--steps", "-100"},
		{"--parallel", "-2"},
		{"--seed", "-4"},
		{"--nodes", "99999999999999999999"},
	} {
		got := w.run(append([]string{"sim"}, args...)...)
		if got.code != cli.ExitUsage || got.out != "" || strings.Contains(got.err, "strconv") {
			t.Errorf("sim %v: code %d, want %d, and nothing of Go's own words\n%s", args, got.code, cli.ExitUsage, got.err)
		}
	}
}
