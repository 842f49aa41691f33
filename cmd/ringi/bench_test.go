package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// The object that scripts rely on, measured with a worker in a process of its own.
func TestBenchW3PrintsOneObjectAndLeavesNothing(t *testing.T) {
	w := newDesk(t)
	p := w.process("bench", "w3", "--database", "sqlite:bench.db", "--mode", "http", "--inflight", "4", "--runs", "20", "--warm", "0s", "--floor-for", "1ms", "--json")
	if code := p.exit(); code != cli.ExitOK {
		t.Fatalf("exits with %d: %s", code, p.err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, p.out)
	}
	want := strings.Fields("bytesPerRun commits cpuMsPerRun fileSystem floorBatch floorP50Ms floorRunsPerSecond floorSameBatch fsyncP50Ms inflight meanBatch mode name p50Ms p95Ms p99Ms rowsPerRun runs runsPerSecond seconds store")
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("the keys are %q", keys)
	}
	if got["name"] != "w3" || got["mode"] != "http" || got["runs"] != 20.0 || !strings.Contains(p.err.String(), "no mismatch") {
		t.Errorf("%v, told %s", got, p.err)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "bench.db*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchW3RefusesWhatIsNoMeasure(t *testing.T) {
	w := newDesk(t)
	for _, args := range []string{"--inflight 0", "--rate -1", "--mode remote", "--runs -1", "--warm -1s"} {
		if got := w.run(append([]string{"bench", "w3"}, strings.Fields(args)...)...); got.code != cli.ExitUsage {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
