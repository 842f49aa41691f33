package main

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/ringiflow/ringi/bench/chaos"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// O7, O8, O9, O-11, O-16, O-35: nothing is lost, doubled, out of order or stuck while
// producers, relays, consumers, broker and database are killed, stopped and starved.
// An hour of it is a command: ringi bench chaos-outbox --for 1h.
func TestAnOutboxSurvivesWhateverHappensAroundIt(t *testing.T) {
	w := newDesk(t)
	binary := buildProgram(t, "-buildvcs=false")
	p := w.processOf(binary, "bench", "chaos-outbox", "--for", "25s", "--json")
	if code := p.exit(); code != cli.ExitOK {
		t.Fatalf("exits with %d: %s\n%s", code, p.out, p.err)
	}
	var r chaos.Result
	if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil {
		t.Fatalf("%v: %s", err, p.out)
	}
	if len(r.Failings()) > 0 || r.Produced == 0 || r.Effects != r.Produced {
		t.Errorf("%+v\n%s", r, p.err)
	}
	if r.Kills == 0 || r.Stops == 0 || r.BrokerRestarts == 0 || r.DatabaseRestarts == 0 {
		t.Errorf("the faults did not hit: %+v\n%s", r, p.err)
	}
	if len(r.PublishedByRelay) != 3 {
		t.Errorf("published by %v", r.PublishedByRelay)
	}
	for relay, n := range r.PublishedByRelay {
		if n == 0 {
			t.Errorf("%s published nothing\n%s", relay, p.err)
		}
	}
	if out, _ := exec.CommandContext(t.Context(), "pgrep", "-af", binary).Output(); len(out) > 0 {
		t.Errorf("left behind: %s", out)
	}
}
