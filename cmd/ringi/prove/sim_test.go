package prove

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/sim"
	"github.com/ringiflow/ringi/workflow"
)

// A watcher is a standard error that ends the simulation at a word.
type watcher struct {
	bytes.Buffer
	word string
	end  func()
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.word != "" && strings.Contains(w.String(), w.word) {
		w.end()
	}
	return n, err
}

// play runs the program with one command that plays a simulation, two seconds
// and a bit on every look at the clock.
func play(t *testing.T, c sim.Config, word string) (code int, out, told string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clock time.Time
	stdout, stderr := &bytes.Buffer{}, &watcher{word: word, end: cancel}
	p := &cli.Program{
		Name: "ringi", Args: []string{"play", "--json"}, Env: func(string) string { return "" },
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Now: func() time.Time {
			clock = clock.Add(progressEvery + time.Millisecond)
			return clock
		},
	}
	code = p.Run(ctx, func(p *cli.Program) *cobra.Command {
		root := &cobra.Command{Use: "ringi"}
		root.AddCommand(&cobra.Command{Use: "play", RunE: func(cmd *cobra.Command, _ []string) error {
			p.Drain()
			return program{p}.sim(cmd.Context(), c)
		}})
		return root
	})
	return code, stdout.String(), stderr.String()
}

// A simulation that finds something ends with 1, tells the story with the
// command that repeats it, and counts it in the one object on standard output.
func TestSimEndsWithOneWhenAPromiseIsBroken(t *testing.T) { // W31
	var times atomic.Int64
	planted := func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
		d, err := ringi.Decide(def, s, cmd, ev)
		d.Answer.By = fmt.Sprint(times.Add(1)) // another answer each time
		return d, err
	}
	code, out, told := play(t, sim.Config{Seed: 4, Rules: planted}, "")
	if code != cli.ExitFailed || !strings.Contains(out, `"violations":1`) {
		t.Errorf("code %d, want %d, and one violation in %s", code, cli.ExitFailed, out)
	}
	for _, part := range []string{"BROKEN: ", "To repeat it: ringi sim --seed 4", "1 of 1 seeds break a promise"} {
		if !strings.Contains(told, part) {
			t.Errorf("standard error does not hold %q:\n%s", part, told)
		}
	}
	if code, out, told := play(t, sim.Config{Seed: 4}, ""); code != cli.ExitOK || !strings.Contains(out, `"violations":0`) {
		t.Errorf("without the fault: code %d, want %d: %s\n%s", code, cli.ExitOK, out, told)
	}
}

// A simulation that plays until it is stopped says every now and then how far it
// is, also where nobody sits at a terminal; one of a few seeds does not.
func TestSimSaysHowFarItIs(t *testing.T) { // W31
	code, out, told := play(t, sim.Config{Seed: 11, Seeds: -1}, "steps a second, 0 violations\n")
	if code != cli.ExitOK || !strings.Contains(out, `"violations":0`) {
		t.Errorf("stopped by its user: code %d, want %d: %s\n%s", code, cli.ExitOK, out, told)
	}
	if code, _, told := play(t, sim.Config{Seed: 11, Seeds: 2}, ""); code != cli.ExitOK || strings.Contains(told, "violations\n") {
		t.Errorf("two seeds: code %d, and progress where nobody asked for it:\n%s", code, told)
	}
}
