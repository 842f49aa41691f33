package draw

import (
	"fmt"
	"slices"
	"strings"
)

// A designer draws definitions from the grammar: every verb, every contract,
// blocks in each other. What it draws passes the checker, which is checked.
type designer struct {
	d        *Dice
	name     string
	steps    int  // drawn so far
	most     int  // how many there may be
	parallel int  // blocks around the present one that run beside others
	doubtful bool // more calls of which nobody may know whether they took place
}

// mostSteps keeps a definition below the quota of an engine.
const mostSteps = 12

// A view is what expressions at a place may read.
type view struct {
	outputs []string // steps whose output is certain and has a number n
	vars    []string // numbers that are certainly set
	caught  bool     // an error can be read
}

func (v view) clone() view {
	return view{slices.Clone(v.outputs), slices.Clone(v.vars), v.caught}
}

// Definition draws one definition of a name and returns its source. In a
// doubtful one there are more calls of which nobody may know whether they took
// place.
func Definition(d *Dice, name string, doubtful bool) string {
	g := &designer{d: d, name: name, doubtful: doubtful}
	return g.definition()
}

// definition draws one definition and returns its source.
func (g *designer) definition() string {
	g.most = g.d.From(2, mostSteps)
	top := object{{"ringi", "v1"}, {"name", g.name}}
	if g.d.Hit(0.4) {
		top = append(top, field{"title", quote("Case ${ input.s } of ${ run.requester }")})
	}
	if g.d.Hit(0.2) {
		top = append(top, field{"labels", object{{"team", "north"}}})
	}
	top = append(top, field{"input", inputSchema()})
	if g.d.Hit(0.3) {
		top = append(top, field{"start", object{{"key", quote("${ input.s }")}}})
	}
	if g.d.Hit(0.3) {
		top = append(top, field{"deadline", object{
			{"after", One(g.d, "1m", "5m", "30m", "2h")}, {"then", One(g.d, "compensate", "compensate", "incident")},
		}})
	}
	v := &view{}
	steps := g.block(1, v, true)
	top = append(top, field{"steps", steps})
	if g.d.Hit(0.4) && passes(steps) {
		top = append(top, field{"output", object{{"n", quote("${ " + g.number(v) + " }")}}})
	}
	if g.d.Hit(0.35) {
		top = append(top, field{"on_failure", object{{"steps", g.onFailure()}}})
	}
	var b strings.Builder
	top.write(&b, "")
	return b.String()
}

func inputSchema() object {
	return object{
		{"type", "object"},
		{"required", list("n", "z", "s")},
		{"properties", object{
			{"n", object{{"type", "number"}}},
			{"z", object{{"type", "number"}}},
			{"s", object{{"type", "string"}}},
		}},
	}
}

// passes reports whether a run can come out behind a block.
func passes(steps []any) bool {
	return len(steps) == 0 || passesStep(steps[len(steps)-1].(object))
}

func passesStep(s object) bool {
	body, caught := true, false
	for _, f := range s {
		switch f.key {
		case "when":
			return true
		case "fail", "finish":
			body = false
		case "do":
			body = passes(f.value.([]any))
		case "parallel":
			for _, branch := range f.value.(object)[0].value.(object) {
				body = body && passes(branch.value.([]any))
			}
		case "choose":
			body = slices.ContainsFunc(f.value.([]any), passesCase)
		case "catch":
			caught = slices.ContainsFunc(f.value.([]any), passesCase)
		}
	}
	return body || caught
}

// passesCase looks at the block of a case or a catch, which stands last in it.
func passesCase(c any) bool {
	fields := c.(object)
	return passes(fields[len(fields)-1].value.([]any))
}

// number draws an expression that yields a number; some fail on some inputs.
func (g *designer) number(v *view) string {
	switch k := g.d.Below(10); {
	case k < 3 && len(v.outputs) > 0:
		return "steps." + One(g.d, v.outputs...) + ".output.n + 1"
	case k < 5 && len(v.vars) > 0:
		return "vars." + One(g.d, v.vars...) + " + input.n"
	case k == 5:
		return "input.n / input.z"
	}
	return One(g.d, "input.n", "input.n + 1", "input.n * 2 - 1")
}

func (g *designer) condition(v *view) string {
	if g.d.Hit(0.15) {
		return "input.n / input.z > 1"
	}
	return One(g.d, "input.n > 5", "input.n <= 5", g.number(v)+" > 3", `input.s == "a"`, "true")
}

// block draws a list of steps. last says that it may end the run.
func (g *designer) block(depth int, v *view, last bool) []any {
	var out []any
	for n := g.d.From(1, max(1, 5-depth)); n > 0 && (g.steps < g.most || len(out) == 0); n-- {
		s := g.step(depth, v, last && g.d.Hit(0.5))
		out = append(out, s)
		if !passesStep(s) {
			break
		}
	}
	return out
}

// step draws one step.
func (g *designer) step(depth int, v *view, mayEnd bool) (s object) {
	g.steps++
	id := fmt.Sprintf("s%d", g.steps)
	s = object{{"id", id}}
	when := g.d.Hit(0.12)
	if when {
		s = append(s, field{"when", g.condition(v)})
	}
	inside := v
	if when {
		c := v.clone()
		inside = &c
	}
	if depth > 1 && g.d.Hit(0.06) {
		return append(s, field{"fail", object{{"code", One(g.d, "declined", "over_limit")}, {"message", quote("at ${ input.s }")}}})
	}
	if mayEnd && g.parallel == 0 && g.d.Hit(0.08) {
		return append(s, field{"finish", object{{"output", quote("${ " + g.number(inside) + " }")}}})
	}
	deep := depth < 4 && g.steps < g.most
	k := g.d.Below(100)
	if g.doubtful && g.d.Hit(0.5) {
		k = 99
	}
	switch {
	case k < 16 && deep:
		s = g.branches(s, depth, inside)
	case k < 22 && deep:
		s = g.choose(s, depth, inside)
	case k < 30 && deep:
		s = g.do(s, depth, inside)
	case k < 35:
		s = g.approval(s, inside)
	case k < 41:
		s = g.wait(s, inside)
	case k < 46:
		s = append(s, field{"emit", object{
			{"type", One(g.d, "case.moved", "case.done")},
			{"aggregate", object{{"type", "Case"}, {"id", quote(One(g.d, "${ input.s }", "${ run.id }"))}}},
			{"data", object{{"n", quote("${ " + g.number(inside) + " }")}}},
		}})
		s = g.catch(s, depth, inside, "expression")
	case k < 50:
		name := "v" + id
		s = append(s, field{"set", object{{name, quote("${ " + g.number(inside) + " }")}}})
		if inside.vars = append(inside.vars, name); g.d.Hit(0.1) {
			inside.vars = inside.vars[:len(inside.vars)-1]
			s = g.catch(s, depth, inside, "expression")
		}
	default:
		s = g.activity(s, id, depth, inside)
	}
	return s
}

func (g *designer) branches(s object, depth int, v *view) object {
	g.parallel++
	defer func() { g.parallel-- }()
	var all object
	after := v.clone()
	for _, name := range []string{"left", "right", "third"}[:g.d.From(2, 3)] {
		c := v.clone()
		all = append(all, field{name, g.block(depth+1, &c, false)})
		after.outputs = append(after.outputs, c.outputs[len(v.outputs):]...)
		after.vars = append(after.vars, c.vars[len(v.vars):]...)
	}
	s = append(s, field{"parallel", object{{"branches", all}}})
	handled := g.catch(s, depth, v, "declined", "timed_out", "*")
	if len(handled) == len(s) && passesStep(s) {
		*v = after
	}
	return handled
}

func (g *designer) choose(s object, depth int, v *view) object {
	var cases []any
	for range g.d.From(1, 2) {
		c := v.clone()
		cases = append(cases, object{{"if", g.condition(v)}, {"do", g.block(depth+1, &c, false)}})
	}
	c := v.clone()
	otherwise := []any{}
	if g.d.Hit(0.5) {
		otherwise = g.block(depth+1, &c, false)
	}
	cases = append(cases, object{{"else", otherwise}})
	s = append(s, field{"choose", cases})
	return g.catch(s, depth, v, "declined", "*")
}

func (g *designer) do(s object, depth int, v *view) object {
	c := v.clone()
	body := g.block(depth+1, &c, false)
	s = append(s, field{"do", body})
	handled := g.catch(s, depth, v, "declined", "timed_out", "rejected", "*")
	if len(handled) == len(s) && passes(body) {
		*v = c
	}
	return handled
}

// catch adds a handler now and then.
func (g *designer) catch(s object, depth int, v *view, on ...string) object {
	if depth > 3 || g.steps >= g.most || !g.d.Hit(0.4) {
		return s
	}
	words := []string{One(g.d, on...)}
	if words[0] == "*" {
		words[0] = `"*"`
	}
	c := v.clone()
	c.caught = true
	body := []any{}
	if g.d.Hit(0.6) {
		body = g.block(depth+1, &c, false)
	}
	return append(s, field{"catch", []any{object{{"on", list(words...)}, {"do", body}}}})
}

func (g *designer) wait(s object, v *view) object {
	switch g.d.Below(5) {
	case 0:
		return append(s, field{"wait", object{{"for", One(g.d, "3s", "40s", "10m", "3h")}}})
	case 1:
		return append(s, field{"wait", object{{"until", quote(One(g.d, "2026-01-01T00:02:00Z", "2026-01-01T01:00:00Z"))}}})
	}
	w := object{{"event", One(g.d, EventNames()...)}, {"key", quote("${ input.s }")}}
	if g.d.Hit(0.6) {
		w = append(w, field{"timeout", object{{"after", One(g.d, "20s", "5m", "2h")}, {"then", One(g.d, "fail", "continue")}}})
	}
	s = append(s, field{"wait", w})
	return g.catch(s, 1, v, "timed_out", "*")
}

// EventNames are the names of the events that definitions wait for.
func EventNames() []string { return []string{"paid", "signed"} }

func (g *designer) approval(s object, v *view) object {
	var ask []any
	for _, name := range []string{"First", "Second"}[:g.d.From(1, 2)] {
		from := list(quote(One(g.d, "group:finance", "group:managers", "group:finance", "user:alice")))
		lane := object{{"name", name}, {"from", from}}
		if from[0] != quote("user:alice") && g.d.Hit(0.6) {
			lane = append(lane, field{"quorum", "2"})
		}
		ask = append(ask, lane)
	}
	a := object{
		{"title", quote("Allow ${ input.s }?")},
		{"subject", object{{"n", quote("${ input.n }")}, {"s", quote("${ input.s }")}}},
		{"ask", ask},
	}
	if g.d.Hit(0.2) {
		a = append(a, field{"separation", list(quote("user:bob"))})
	}
	if g.d.Hit(0.7) {
		a = append(a, field{"expires", object{{"after", One(g.d, "30s", "5m", "2h")}}})
	}
	if g.d.Hit(0.3) {
		a = append(a, field{"on_reject", "continue"})
	}
	s = append(s, field{"approval", a})
	return g.catch(s, 1, v, "rejected", "expired", "*")
}

func (g *designer) onFailure() []any {
	steps := []any{object{{"id", "told"}, {"emit", object{
		{"type", "case.failed"},
		{"aggregate", object{{"type", "Case"}, {"id", quote("${ input.s }")}}},
		{"data", object{{"code", quote("${ error.code }")}}},
	}}}}
	if g.d.Hit(0.5) {
		steps = append(steps, object{
			{"id", "closed"},
			{"activity", One(g.d, "work.look", "work.put")},
			{"effect", "idempotent"},
			{"timeouts", object{{"attempt", "20s"}, {"heartbeat", "10s"}}},
		})
	}
	return steps
}
