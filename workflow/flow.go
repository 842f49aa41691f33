package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A state is what is known at one point of the tree, for every run that gets
// there: which steps have ended, which may have, and what variables hold.
// Since there is no goto, the tree itself is the order of things: a step that
// stands in front of another, in the same block or in one around it, dominates it.
type state struct {
	steps    map[string]bool // true: has run for certain; false: perhaps; missing: cannot have
	vars     map[string]variable
	approved bool     // somebody has approved on the way here, or the run would have ended
	asked    []string // approvals on the way here after which a rejected run goes on
	caught   bool     // the root error exists
}

// A variable is a name given a value by set.
type variable struct {
	typ    *typ
	always bool // on every way here
}

func (st *state) clone() *state {
	out := *st
	out.steps, out.vars = maps.Clone(st.steps), maps.Clone(st.vars)
	out.asked = slices.Clone(st.asked)
	return &out
}

// ask adds approvals that lie behind.
func (st *state) ask(ids ...string) {
	for _, id := range ids {
		if !slices.Contains(st.asked, id) {
			st.asked = append(st.asked, id)
		}
	}
}

// merge is what is known where several ways meet. It changes the first of them.
func merge(ways []*state, caught bool) *state {
	out := ways[0]
	out.caught = caught
	for _, w := range ways[1:] {
		out.approved = out.approved || w.approved
		out.ask(w.asked...)
		for id, certain := range w.steps {
			mine, known := out.steps[id]
			out.steps[id] = known && mine && certain
		}
		for id := range out.steps {
			if _, known := w.steps[id]; !known {
				out.steps[id] = false
			}
		}
		for name, v := range w.vars {
			if mine, known := out.vars[name]; known {
				v = variable{typ: join(mine.typ, v.typ), always: mine.always && v.always}
			} else {
				v.always = false
			}
			out.vars[name] = v
		}
		for name, v := range out.vars {
			if _, known := w.vars[name]; !known {
				v.always = false
				out.vars[name] = v
			}
		}
	}
	return out
}

// perhaps adds all that other knows as something that may have happened.
func (st *state) perhaps(other *state) {
	for id := range other.steps {
		if _, known := st.steps[id]; !known {
			st.steps[id] = false
		}
	}
	for name, v := range other.vars {
		if _, known := st.vars[name]; !known {
			v.always = false
			st.vars[name] = v
		}
	}
	st.ask(other.asked...)
}

// A flow walks the tree in the order in which it runs, compiles each
// expression with what it may read, and reports what depends on the order.
type flow struct {
	p          *parser
	ids        []string        // all steps of the file
	outputs    map[string]*typ // nil is any
	parallel   int             // parallels around the present step
	guards     []string        // conditions around the present step
	afterwards bool            // in on_failure: nothing will be undone any more
}

// checkFlow compiles all expressions and runs the checks that need the order
// of steps.
func (p *parser) checkFlow() {
	d := p.definition
	f := &flow{p: p, outputs: map[string]*typ{}}
	for id, s := range d.steps {
		f.ids = append(f.ids, id)
		if s.Activity != nil && s.Activity.Output != nil {
			f.outputs[id] = s.Activity.Output.typ()
		}
	}
	start := &state{steps: map[string]bool{}, vars: map[string]variable{}}
	f.compile(nil, placeTitle, f.roots(start))
	f.compile(nil, placeStart, &roots{Input: d.Input.typ(), StartOnly: true})
	end, _ := f.block(d.Root, start.clone())
	f.compile(nil, placeOutput, f.roots(end))
	if d.OnFailure != nil {
		failed := start.clone()
		failed.perhaps(end)
		for _, b := range d.blocks {
			for _, s := range b.Steps {
				if _, known := failed.steps[s.ID]; !known && b != d.OnFailure {
					failed.steps[s.ID] = false
				}
			}
		}
		failed.caught = true
		p.checkOnFailure(d.OnFailure)
		f.afterwards = true
		f.block(d.OnFailure, failed)
	}
}

// roots says what an expression may read in that state.
func (f *flow) roots(st *state) *roots {
	r := &roots{
		Input: f.p.definition.Input.typ(), Error: st.caught,
		Steps: make(map[string]stepType, len(f.ids)), Vars: make(map[string]*typ, len(st.vars)), MaybeVars: map[string]*typ{},
	}
	for _, id := range f.ids {
		certain, known := st.steps[id]
		r.Steps[id] = stepType{Output: f.outputs[id], Maybe: known && !certain, Later: !known}
	}
	for name, v := range st.vars {
		if v.always {
			r.Vars[name] = v.typ
		} else {
			r.MaybeVars[name] = v.typ
		}
	}
	return r
}

// compile compiles the expressions of a step that stand at that place.
func (f *flow) compile(s *Step, at place, r *roots) {
	for _, x := range f.p.slots[s] {
		if x.place == at {
			f.p.compileSlot(x, r, s)
		}
	}
}

// block walks a block and returns what is known behind it, and whether a run
// can get there.
func (f *flow) block(b *Block, st *state) (*state, bool) {
	passes := true
	for i, s := range b.Steps {
		if !passes {
			f.p.report(f.p.at[s].at.position, ruleUnreachable, fmt.Sprintf("no run gets here: %s ends it before", b.Steps[i-1].ID),
				"remove the steps behind it, or give it a condition: when: …")
		}
		st, passes = f.step(s, st)
	}
	return st, passes
}

// step walks one step. It may change the state that it is given.
func (f *flow) step(s *Step, before *state) (*state, bool) {
	r, caught := f.roots(before), before.caught
	f.compile(s, placeBefore, r)
	f.compileCalls(s, r)
	when := f.p.at[s].get("when")
	if when != nil {
		f.guards = append(f.guards, when.text)
		defer func() { f.guards = f.guards[:len(f.guards)-1] }()
	}
	inside := before // where nobody comes back to it, the step can go on in the same state
	if when != nil || len(s.Catch) > 0 {
		inside = before.clone()
	}
	after, passes := f.body(s, inside)
	var ways []*state
	if passes {
		if s.ID != "" {
			after.steps[s.ID] = !f.mayLackOutput(s)
		}
		ways = append(ways, after)
	}
	for _, c := range s.Catch {
		handler := before.clone()
		handler.perhaps(after)
		handler.steps[s.ID] = false
		handler.caught = true
		if end, ends := f.block(c.Do, handler); ends {
			ways = append(ways, end)
		}
	}
	if when != nil {
		before.steps[s.ID] = false
		ways = append(ways, before)
	}
	switch {
	case len(ways) == 0:
		after.steps[s.ID] = false
		return after, false
	case len(ways) == 1 && ways[0] == after:
		return after, true
	}
	out := merge(ways, caught)
	out.perhaps(after)
	return out, true
}

// mayLackOutput reports whether a run can go on behind the step without its output.
func (f *flow) mayLackOutput(s *Step) bool {
	switch {
	case s.Approval != nil:
		return s.Approval.OnReject == "continue"
	case s.Wait != nil:
		return s.Wait.Timeout > 0 && s.Wait.Then == "continue"
	case s.Activity != nil:
		return s.Activity.OnUnknown == UnknownAssumeApplied && !f.repeats(s)
	}
	return false
}

// repeats reports whether a lost answer is asked for again until it is known.
func (f *flow) repeats(s *Step) bool {
	return s.Activity.Effect == Pure || s.Activity.Effect == Idempotent
}

// compileCalls compiles what belongs to the calls of an http step, and to a
// step's probe and undo.
func (f *flow) compileCalls(s *Step, before *roots) {
	if s.Activity == nil {
		return
	}
	probe := *before
	probe.StepKey = true
	f.compile(s, placeCall, &probe)
	f.compile(s, placeProbe, &probe)
	undo := new(roots)
	*undo = probe
	for _, x := range f.p.slots[s] {
		if x.place != placeUndo {
			continue
		}
		if !undo.Steps[s.ID].Maybe && x.node.mentions(s.ID) { // the step has an outcome by then, and perhaps no output
			undo.Steps = maps.Clone(before.Steps)
			undo.Steps[s.ID] = stepType{Output: f.outputs[s.ID], Maybe: true}
		}
		f.p.compileSlot(x, undo, s)
	}
	f.p.compose(s)
}

// body walks what a step does, and returns what is known behind it. It may
// change the state that it is given.
func (f *flow) body(s *Step, before *state) (*state, bool) {
	switch {
	case s.Activity != nil:
		if !f.afterwards {
			f.p.findings(s, before.approved || f.asked(before))
		}
	case s.Do != nil:
		return f.block(s.Do, before)
	case s.Choose != nil:
		return f.choose(s, before)
	case s.Parallel != nil:
		return f.branches(s, before)
	case s.Set != nil:
		f.set(s, before)
	case s.Approval != nil:
		if s.Approval.OnReject == "fail" {
			before.approved = true
		} else {
			before.ask(s.ID)
		}
	case s.Finish != nil:
		if f.parallel > 0 {
			f.p.report(f.p.at[s].key("finish").position, ruleFinishBeside, "finish stands inside a parallel, where other branches may still be at work",
				"end the branch, and finish behind the parallel")
		}
		return before, false
	case s.Fail != nil:
		return before, false
	}
	return before, true
}

// asked reports whether a condition around the present step looks at an
// approval that lets a rejected run go on.
func (f *flow) asked(st *state) bool {
	for _, guard := range f.guards {
		for _, id := range st.asked {
			if strings.Contains(guard, "steps."+id+".") {
				return true
			}
		}
	}
	return false
}

// choose walks the cases: one of them is taken, or none where else is missing.
func (f *flow) choose(s *Step, before *state) (*state, bool) {
	var ways []*state
	end := before.clone()
	walk := func(b *Block) {
		after, passes := f.block(b, before.clone())
		end.perhaps(after)
		if passes {
			ways = append(ways, after)
		}
	}
	depth := len(f.guards)
	for _, c := range s.Choose.Cases {
		if c.If != nil {
			f.guards = append(f.guards, c.If.Source())
		}
		walk(c.Do)
	}
	if s.Choose.Else != nil {
		walk(s.Choose.Else)
	} else {
		ways = append(ways, before)
	}
	f.guards = f.guards[:depth]
	if len(ways) == 0 {
		return end, false
	}
	out := merge(ways, before.caught)
	out.perhaps(end)
	return out, true
}

// branches walks branches that run side by side: none sees the other, and
// behind them all are done.
func (f *flow) branches(s *Step, before *state) (*state, bool) {
	f.parallel++
	defer func() { f.parallel-- }()
	f.p.besideFailure(s.Parallel)
	out, all := before.clone(), true
	for _, b := range s.Parallel.Branches {
		after, passes := f.block(b, before.clone())
		all = all && passes
		maps.Copy(out.steps, after.steps)
		for name, v := range after.vars {
			_, mine := before.vars[name]
			if _, taken := out.vars[name]; taken && !mine {
				f.sameVariable(b, name)
			}
			out.vars[name] = v
		}
		out.approved = out.approved || after.approved
		out.ask(after.asked...)
	}
	return out, all
}

// sameVariable reports a variable that two branches of a parallel set.
func (f *flow) sameVariable(b *Block, name string) {
	for _, s := range b.Steps {
		if _, k := f.p.at[s].get("set").field(name); k != nil && s.Verb == VerbSet {
			f.p.report(k.position, ruleSetTwice, fmt.Sprintf("another branch of the parallel sets %s too", name), "use another name")
			return
		}
		for _, inner := range s.Blocks() {
			f.sameVariable(inner, name)
		}
	}
}

// set walks a set: its names are new in the scope.
func (f *flow) set(s *Step, st *state) {
	n := f.p.at[s].get("set")
	for _, v := range s.Set {
		value, key := n.field(v.Name)
		if key == nil {
			continue // it has no usable name
		}
		if _, taken := st.vars[v.Name]; taken {
			f.p.report(key.position, ruleSetTwice, fmt.Sprintf("%s has a value already; a name is set once", v.Name), "use another name")
		}
		st.vars[v.Name] = variable{typ: f.p.types[value], always: true}
	}
}
