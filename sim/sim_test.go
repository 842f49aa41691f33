package sim_test

import (
	"context"
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/skip"
	"github.com/ringiflow/ringi/sim/story"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// seeds is how many seeds must show everything.
const seeds = 200

// In 200 seeds everything breaks in every way, every command is given, every
// kind of event is written, and every promise holds.
func TestEverythingBreaksAndEveryPromiseHolds(t *testing.T) { // W31 W8 S5
	r := played(t, aside(t), sim.Config{Seeds: seeds, Shrink: true})
	for _, v := range r.Found {
		t.Errorf("%s", v.Story)
	}
	for _, f := range fault.Kinds() {
		if r.Faults[string(f)] == 0 {
			t.Errorf("the fault %s never struck", f)
		}
	}
	for _, a := range []ringi.Action{
		ringi.Start{},
		ringi.BeginActivity{},
		ringi.CompleteActivity{},
		ringi.FailActivity{},
		ringi.FireTimer{},
		ringi.ExpireLease{},
		ringi.DecideApproval{},
		ringi.WithdrawDecision{},
		ringi.DeliverEvent{},
		ringi.SendEvent{},
		ringi.Cancel{},
		ringi.Pause{},
		ringi.Resume{},
		ringi.Terminate{},
		ringi.ResolveIncident{},
	} {
		if name := ringi.ActionName(a); r.Commands[name] == 0 {
			t.Errorf("the command %s was never given", name)
		}
	}
	for _, f := range everyFact() {
		if name := ringi.KindOf(f); r.Events[name] == 0 {
			t.Errorf("the event %s was never written", name)
		}
	}
	if t.Failed() {
		t.Logf("faults %v\ncommands %v\nevents %v", r.Faults, r.Commands, r.Events)
	}
}

// everyFact has one of each kind.
func everyFact() []ringi.Fact {
	return []ringi.Fact{
		ringi.RunStarted{},
		ringi.ActivityScheduled{},
		ringi.ActivityRetried{},
		ringi.ActivityStarted{},
		ringi.ActivitySucceeded{},
		ringi.ActivityFailed{},
		ringi.ActivityTimedOut{},
		ringi.ActivityAwaited{},
		ringi.ActivityWithdrawn{},
		ringi.ProbeAnswered{},
		ringi.OutcomeUnknown{},
		ringi.StepOpened{},
		ringi.StepEnded{},
		ringi.StepReopened{},
		ringi.ScopeOpened{},
		ringi.ScopeClosed{},
		ringi.ScopeHalted{},
		ringi.FailureCaught{},
		ringi.VarsSet{},
		ringi.MessageEmitted{},
		ringi.TimerSet{},
		ringi.TimerFired{},
		ringi.WaitOpened{},
		ringi.EventReceived{},
		ringi.ApprovalOpened{},
		ringi.DecisionRecorded{},
		ringi.DecisionWithdrawn{},
		ringi.UndoRegistered{},
		ringi.UndoSettled{},
		ringi.UndoReplaced{},
		ringi.CancelRequested{},
		ringi.UnwindStarted{},
		ringi.IncidentOpened{},
		ringi.IncidentResolved{},
		ringi.RunPaused{},
		ringi.RunResumed{},
		ringi.LateResult{},
		ringi.EvidenceCounted{},
		ringi.LateEffectFound{},
		ringi.RunEnded{},
	}
}

// A story says what each kind of event means, in words and not by its name.
func TestStoriesHaveWordsForEveryEvent(t *testing.T) { // W31
	for _, f := range everyFact() {
		if got := story.Fact(f); got == ringi.KindOf(f) || got == "" || strings.Contains(got, "{") {
			t.Errorf("the words for %s: %q", ringi.KindOf(f), got)
		}
	}
}

// A story says of each fault what it means.
func TestStoriesHaveWordsForEveryFault(t *testing.T) { // W31
	for _, f := range fault.Kinds() {
		if f.Means() == "" {
			t.Errorf("there are no words for the fault %s", f)
		}
	}
}

// A story keeps what a violation speaks of, and the faults of the whole world.
func TestAStoryIsAboutItsViolation(t *testing.T) { // W31
	lines := []story.Line{
		{At: "1", Text: "FAULT clock jump, before anything: of the database"},
		{At: "2", Text: "run …aaaaaa, event 1: the run starts"},
		{At: "3", Text: "run …bbbbbb, event 1: the run starts"},
		{At: "4", Text: "run …aaaaaa: s1, attempt 1, is handed to worker 2-1 under token 2.1"},
		{At: "5", Text: "FAULT worker stalled, it stands still: worker 1 for 1s"},
		{At: "6", Text: "FAULT worker stalled, it stands still: worker 2 for 1s"},
		{At: "7", Text: "FAULT store outage, it is away: for 1s"},
		{At: "8", Text: "node a asks run …aaaaaa that the timer deadline is due: stale"},
		{At: "9", Text: "node a asks run …aaaaaa that the timer deadline is due: stale"},
	}
	kept, out := story.About(lines, "run …aaaaaa: something is wrong")
	var got []string
	for _, l := range kept {
		got = append(got, l.At)
	}
	if want := "2 4 6 7 8"; strings.Join(got, " ") != want || out != 4 {
		t.Errorf("kept %v and left out %d, want %s and 4", got, out, want)
	}
	source := "steps:\n  - id: s1\n    do:\n      - id: s2\n        wait: { for: 3s }\n  - id: s3\n    wait: { for: 3s }\n"
	if got, want := story.Reached(source, func(s string) bool { return s == "s1" }), "steps:\n  - id: s1\n    do:\n# and 2 steps that it never came to\n"; got != want {
		t.Errorf("the definition is told as\n%swant\n%s", got, want)
	}
}

// All faults at once, and each of them alone, break no promise.
func TestFaultsAllAtOnceAndEachAloneBreakNoPromise(t *testing.T) { // W31
	program := aside(t)
	for _, v := range played(t, program, sim.Config{Seed: 5000, Seeds: 20, Faults: fault.Kinds()}).Found {
		t.Errorf("all at once: %s", v.Story)
	}
	for i, f := range fault.Kinds() {
		r := played(t, program, sim.Config{Seed: 6000 + 100*uint64(i), Seeds: 2, Faults: []fault.Kind{f}})
		for _, v := range r.Found {
			t.Errorf("%s alone: %s", f, v.Story)
		}
	}
}

// The same seed gives the same steps, whatever runs beside it.
func TestTheSameSeedGivesTheSameTrace(t *testing.T) { // W31
	one := sim.Run(t.Context(), sim.Config{Seed: 3, Seeds: fewer(8), Parallel: 1})
	two := sim.Run(t.Context(), sim.Config{Seed: 3, Seeds: fewer(8), Parallel: 3})
	if one.TraceDigest != two.TraceDigest || one.Steps != two.Steps {
		t.Errorf("two plays of the same seeds: %s after %d steps, %s after %d", one.TraceDigest, one.Steps, two.TraceDigest, two.Steps)
	}
	if other := sim.Run(t.Context(), sim.Config{Seed: 4, Seeds: fewer(8)}); other.TraceDigest == one.TraceDigest {
		t.Error("other seeds give the same trace")
	}
}

// found is what a simulation with a planted fault must come to.
func found(t *testing.T, c sim.Config, what ...string) {
	t.Helper()
	c.Shrink = !raced // which plays a seed a hundred times
	for first := uint64(0); first < seeds; first += 10 {
		c.Seed, c.Seeds = first, 10
		r := sim.Run(t.Context(), c)
		for _, v := range r.Found {
			if !strings.Contains(strings.Join(what, " "), v.What) {
				t.Errorf("it was found as %q, want one of %q: %s", v.What, what, v.Message)
			}
			for _, part := range []string{"BROKEN: ", "RIGHT WOULD BE: ", "SEEN: ", "seed ", "ringi: v1", "What happened", "VIOLATION " + v.What, "To repeat it: ringi sim --seed "} {
				if !strings.Contains(v.Story, part) {
					t.Errorf("the story does not hold %q:\n%s", part, v.Story)
				}
			}
			repeats(t, c, v)
			return
		}
	}
	t.Errorf("%d seeds did not find it", seeds)
}

// repeats plays the command that a violation prints, which must break the same
// promise.
func repeats(t *testing.T, c sim.Config, v sim.Violation) {
	t.Helper()
	again := sim.Config{Rules: c.Rules, Store: c.Store}
	flags := flag.NewFlagSet("ringi sim", flag.ContinueOnError)
	flags.Uint64Var(&again.Seed, "seed", 0, "")
	flags.IntVar(&again.Nodes, "nodes", 0, "")
	flags.IntVar(&again.Workers, "workers", 0, "")
	flags.IntVar(&again.Starts, "starts", 0, "")
	flags.IntVar(&again.Steps, "steps", 0, "")
	faults, skipped := flags.String("faults", "", ""), flags.String("skip", "", "")
	words, ok := strings.CutPrefix(v.Command, "ringi sim ")
	err := flags.Parse(strings.Fields(words))
	if err == nil {
		again.Faults, err = fault.Parse(*faults)
	}
	if err == nil {
		again.Skip, err = skip.Parse(*skipped)
	}
	if err != nil || !ok {
		t.Fatalf("%q cannot be repeated: %v", v.Command, err)
	}
	if r := sim.Run(t.Context(), again); len(r.Found) != 1 || r.Found[0].What != v.What || r.Found[0].Step != v.Step {
		t.Errorf("%q finds %+v, and was to repeat %q at step %d", v.Command, r.Found, v.What, v.Step)
	}
}

// A simulation that is stopped plays what has begun to its end, and makes what it
// found no smaller.
func TestAStoppedSimulationTellsWhatItFound(t *testing.T) { // W31
	ctx, stop := context.WithCancel(t.Context())
	var clock counter
	var plays atomic.Int64
	r := sim.Run(ctx, sim.Config{
		Seed: 4, Shrink: true, Parallel: 1,
		Smaller: func(_ uint64, n, _ int) {
			plays.Store(int64(n))
			stop()
		},
		Rules: func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
			d, err := ringi.Decide(def, s, cmd, ev)
			d.Answer.By = clock.next()
			return d, err
		},
	})
	if r.Seeds != 1 || r.Violations != 1 || plays.Load() != 1 || !strings.Contains(r.Found[0].Story, "To repeat it: ringi sim --seed 4") {
		t.Errorf("%d seeds, %d violations after %d plays to make it smaller, want 1, 1 and 1: %+v", r.Seeds, r.Violations, plays.Load(), r.Found)
	}
}

// A result that counts whatever the token stands for. A failure that does so
// hides the effect of the attempt after it, and a begin that does so waits for an
// end that nobody can tell.
func TestRulesThatForgetTheFencingTokenAreFound(t *testing.T) { // W31
	found(t, sim.Config{Rules: func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
		d, err := ringi.Decide(def, s, cmd, ev)
		switch cmd.Do.(type) {
		case ringi.CompleteActivity, ringi.FailActivity, ringi.BeginActivity:
			d.Needs = nil
		}
		return d, err
	}}, "token", "attempt", "begin", "double_effect", "effect_forgotten", "lease", "liveness")
}

// Rules that read a clock of their own decide differently each time.
func TestRulesThatAreNoFunctionAreFound(t *testing.T) { // W8
	var clock counter
	found(t, sim.Config{Rules: func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
		d, err := ringi.Decide(def, s, cmd, ev)
		if _, ok := cmd.Do.(ringi.FireTimer); ok && len(d.Events) > 0 {
			d.Answer.By = clock.next()
		}
		return d, err
	}}, "decide_twice")
}

// A store that writes the same transition twice.
func TestAStoreThatDoublesACommitIsFound(t *testing.T) { // W31
	found(t, sim.Config{Store: func(s store.Store) store.Store { return doubling{s} }}, "sequence", "rows")
}
