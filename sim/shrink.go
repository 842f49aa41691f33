package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/sim/story"
)

// mostReplays bounds how often a program is played while it is made smaller.
const mostReplays = 160

// A shrinker makes the smallest program that still breaks the same promise.
type shrinker struct {
	ctx     context.Context // ends it; a program is smaller by then, or not
	best    options
	last    *world // the last play of best
	what    string
	replays int
}

// shrink leaves out what the violation does not need: nodes, workers and runs,
// kinds of faults, and single perturbations, large spans first. It ends with ctx.
func shrink(ctx context.Context, o options, w *world) options {
	s := &shrinker{ctx: ctx, best: o, last: w, what: w.violation.What}
	if w.violation.Step < w.shape.steps {
		s.try(func(o *options) { o.Steps = w.violation.Step })
	}
	s.fewer(w.shape.starts, func(o *options, n int) { o.Starts = n })
	s.fewer(w.shape.nodes, func(o *options, n int) { o.Nodes = n })
	s.fewer(w.shape.workers, func(o *options, n int) { o.Workers = n })
	s.faults()
	for size := max(s.last.ordinal/2, 1); size >= 1 && s.replays < mostReplays; size /= 2 {
		for from := 1; from <= s.last.ordinal && s.replays < mostReplays; from += size {
			if !s.best.Skip.Has(from) || !s.best.Skip.Has(min(from+size-1, s.last.ordinal)) {
				s.try(func(o *options) { o.Skip = o.Skip.With(from, from+size-1) })
			}
		}
	}
	return s.best
}

// try plays a changed program and keeps it if it breaks the same promise.
func (s *shrinker) try(change func(*options)) bool {
	if s.ctx.Err() != nil {
		s.replays = mostReplays
	}
	if s.replays++; s.replays > mostReplays {
		return false
	}
	if tell := s.best.Smaller; tell != nil {
		tell(s.best.Seed, s.replays, mostReplays)
	}
	o := s.best
	change(&o)
	w := newWorld(o)
	w.play()
	if w.violation == nil || w.violation.What != s.what {
		return false
	}
	s.best, s.last = o, w
	return true
}

func (s *shrinker) fewer(have int, set func(*options, int)) {
	for n := 1; n < have; n++ {
		if s.try(func(o *options) { set(o, n) }) {
			return
		}
	}
}

// faults leaves out kinds that are not needed. Naming those that are changes
// their strength, so that the first try is to name all that struck.
func (s *shrinker) faults() {
	var struck []fault.Kind
	for _, f := range fault.Kinds() {
		if s.last.count.faults[string(f)] > 0 {
			struck = append(struck, f)
		}
	}
	if s.try(func(o *options) { o.Faults = []fault.Kind{} }) || !s.try(func(o *options) { o.Faults = struck }) {
		return
	}
	for _, f := range struck {
		s.try(func(o *options) {
			o.Faults = slices.DeleteFunc(slices.Clone(o.Faults), func(x fault.Kind) bool { return x == f })
		})
	}
}

// story writes the program and what happened down for a reader.
func (w *world) story(v *Violation) string {
	var b strings.Builder
	rule := story.RuleOf(v.What)
	fmt.Fprintf(&b, "BROKEN: %s\nRIGHT WOULD BE: %s\nSEEN: %s\n", rule.Broken, rule.Right, v.Message)
	fmt.Fprintf(&b, "(seed %d, step %d, the check %q)\n\n", v.Seed, v.Step, v.What)
	fmt.Fprintf(&b, "The world: %d nodes of ringi (a, b, …) on one store, %d workers, a service that does what workers call,\n", len(w.nodes), w.shape.workers)
	fmt.Fprintf(&b, "people (alice to erin, op is an operator, robot a machine), and at most %d starts of:\n", w.shape.starts)
	for _, source := range w.sourcesAbout(v) {
		fmt.Fprintf(&b, "\n%s", source)
	}
	b.WriteString("\nWhat happened (time since the beginning; FAULT is what the simulator broke on purpose; deeper lines\nhappened while somebody waited for the store; a run is named by the end of its id):\n")
	lines, out := story.About(w.tracer.lines, v.Message)
	for _, l := range lines {
		fmt.Fprintf(&b, "%12s  %s\n", l.At, l.Text)
	}
	if out > 0 {
		fmt.Fprintf(&b, "(%d lines about other runs, workers and repetitions are left out)\n", out)
	}
	fmt.Fprintf(&b, "\nTo repeat it: %s\n", v.Command)
	return b.String()
}

// sourcesAbout are the definitions of the runs that a violation speaks of, with
// the steps that those have come to; all when it speaks of none.
func (w *world) sourcesAbout(v *Violation) []string {
	runs := story.Runs(v.Message)
	var sources []string
	for i, def := range w.definitions {
		var of []*shadow
		for _, sh := range w.watch.all() {
			if slices.Contains(runs, short(sh.key.Run)) && sh.state.Digest == def.Digest {
				of = append(of, sh)
			}
		}
		switch {
		case len(runs) == 0:
			sources = append(sources, w.sources[i])
		case len(of) > 0:
			sources = append(sources, story.Reached(w.sources[i], func(step string) bool {
				return slices.ContainsFunc(of, func(sh *shadow) bool { return promise.StepOf(sh.state, step) != nil })
			}))
		}
	}
	return sources
}
