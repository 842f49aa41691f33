package sim_test

import (
	"encoding/json"
	"flag"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/sim"
)

// -mutants also builds every mutant and plays it until it is found, which takes
// minutes: make mutants.
var playMutants = flag.Bool("mutants", false, "build every mutant of sim/mutants and play it until it is found")

// mutantSeeds is within how many seeds a mutant must be found.
const mutantSeeds = 2000

// A mutant is a patch that breaks one safety rule: a unified diff of one file.
type mutant struct {
	name string
	file string // in the module
	text string // as it becomes
}

// Every mutant fits the code as it is now, so that none of them rots; with
// -mutants each compiles, is found, and the same seeds are clean without it. A
// patch that is put into the folder is picked up by itself.
func TestMutantsBreakOneRuleEachAndAreFound(t *testing.T) { // W31
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob("mutants/*.patch")
	if err != nil || len(patches) < 25 {
		t.Fatalf("%d mutants, %v, want at least 25", len(patches), err)
	}
	last := uint64(0)
	for _, patch := range patches {
		m := apply(t, root, patch)
		if m == nil || !*playMutants {
			continue
		}
		v, ok := m.play(t, root)
		if !ok {
			t.Errorf("%s: %d seeds do not find it", m.name, mutantSeeds)
			continue
		}
		t.Logf("%s: seed %d breaks %q: %.160s", m.name, v.Seed, v.What, v.Message)
		last = max(last, v.Seed)
	}
	if *playMutants {
		for _, v := range sim.Run(t.Context(), sim.Config{Seeds: int(last) + 1}).Found {
			t.Errorf("without any mutant: %s", v.Story)
		}
	}
}

// apply makes a mutant of a patch. Its lines are looked up by what they say, not
// by their numbers.
func apply(t *testing.T, root, patch string) *mutant {
	t.Helper()
	raw, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	m := &mutant{name: strings.TrimSuffix(filepath.Base(patch), ".patch")}
	var was, is strings.Builder
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			m.file = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
		case m.file == "" || strings.HasPrefix(line, "@@"):
		case strings.HasPrefix(line, "-"):
			was.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			is.WriteString(line[1:])
		case strings.HasPrefix(line, " "):
			was.WriteString(line[1:])
			is.WriteString(line[1:])
		}
	}
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return nil
	}
	if n := strings.Count(string(source), was.String()); n != 1 {
		t.Errorf("%s: %s has the lines of the patch %d times, want once: make the patch anew", m.name, m.file, n)
		return nil
	}
	m.text = strings.Replace(string(source), was.String(), is.String(), 1)
	if _, err := format.Source([]byte(m.text)); err != nil {
		t.Errorf("%s: %v", m.name, err)
		return nil
	}
	return m
}

// play builds the program with the mutant in it and plays until it is found.
func (m *mutant) play(t *testing.T, root string) (v sim.Violation, ok bool) {
	t.Helper()
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "ringi")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{changed: []byte(m.text), overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./cmd/ringi")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s does not compile: %v\n%s", m.name, err, out)
		return v, true
	}
	play := exec.CommandContext(t.Context(), program, "sim", "--seed", "0", "--seeds", strconv.Itoa(mutantSeeds), "--first", "--shrink=false", "--json")
	out, err := play.Output()
	var r sim.Report
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		t.Errorf("%s: no report: %v, %v", m.name, err, jsonErr)
		return v, true
	}
	if code := play.ProcessState.ExitCode(); code != min(len(r.Found), 1) {
		t.Errorf("%s: %d violations, and the program ends with %d", m.name, len(r.Found), code)
	}
	if len(r.Found) == 0 {
		return v, false
	}
	return r.Found[0], true
}
