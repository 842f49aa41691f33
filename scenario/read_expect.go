package scenario

import (
	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi"
)

func (r *reader) expectation(n *yaml.Node) *expectation {
	if n == nil {
		return nil
	}
	f := r.mapping(n, "expect", "status", "waiting_for", "output", "path", "steps", "undone", "emitted", "effects_left", "cause", "incident", "calls")
	e := &expectation{
		at:         at(n),
		status:     r.oneOf(f["status"], "status", statuses()...),
		waitingFor: r.oneOf(f["waiting_for"], "thing that a run waits for", "approval", "timer", "event"),
		output:     r.value(f["output"]),
		path:       r.path(f["path"]),
		steps:      r.stepWishes(f["steps"]),
		undone:     r.words(f["undone"], "undone"),
		emitted:    r.messages(f["emitted"]),
		left:       r.words(f["effects_left"], "effects_left"),
		calls:      r.calls(f["calls"]),
	}
	if len(f) == 0 {
		r.report(e.at, "expect names nothing", "add the status at least")
	}
	if c := f["cause"]; c != nil {
		g := r.mapping(c, "cause", "code", "step")
		e.cause = &causeWish{r.word(g["code"], "code"), r.word(g["step"], "step")}
	}
	if i := f["incident"]; i != nil {
		g := r.mapping(i, "incident", "kind", "step")
		e.incident = &incidentWish{r.word(g["kind"], "kind"), r.word(g["step"], "step")}
	}
	return e
}

func statuses() []string {
	var out []string
	for _, s := range ringi.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func (r *reader) words(n *yaml.Node, what string) []word {
	if n == nil {
		return nil
	}
	out := []word{}
	for _, item := range r.list(n, what) {
		out = append(out, word{at(item), r.text(item, "an entry of "+what)})
	}
	return out
}

// path reads the steps in the order in which they ended: a bare id succeeded,
// {id: outcome} ended otherwise.
func (r *reader) path(n *yaml.Node) []pathEntry {
	if n == nil {
		return nil
	}
	out := []pathEntry{}
	for _, item := range r.list(n, "path") {
		if b := behind(item); b.Kind == yaml.MappingNode {
			f := r.mapping(b, "an entry of path")
			if len(f) != 1 {
				r.report(at(item), "an entry of path names one step", "write - step, or - step: outcome")
			}
			for _, key := range names(b) {
				out = append(out, pathEntry{at(item), key.Value, r.text(f[key.Value], "the outcome")})
			}
			continue
		}
		out = append(out, pathEntry{at(item), r.text(item, "an entry of path"), string(ringi.Succeeded)})
	}
	return out
}

func (r *reader) stepWishes(n *yaml.Node) []stepWish {
	if n == nil {
		return nil
	}
	var out []stepWish
	f := r.mapping(n, "steps")
	for _, key := range names(n) {
		w := stepWish{at: at(key), step: key.Value}
		if v := behind(f[key.Value]); v.Kind == yaml.ScalarNode {
			w.outcome = r.word(v, "the outcome")
		} else {
			g := r.mapping(v, "a step", "outcome", "attempts", "output", "undo")
			w.outcome, w.attempts = r.word(g["outcome"], "outcome"), r.count(g["attempts"], "attempts")
			w.output, w.undo = r.value(g["output"]), r.word(g["undo"], "undo")
		}
		out = append(out, w)
	}
	return out
}

func (r *reader) messages(n *yaml.Node) []messageWish {
	if n == nil {
		return nil
	}
	out := []messageWish{}
	for _, item := range r.list(n, "emitted") {
		if b := behind(item); b.Kind == yaml.ScalarNode {
			out = append(out, messageWish{at: at(b), typ: r.text(b, "the type")})
			continue
		}
		f := r.mapping(item, "a message", "type", "aggregate", "data")
		w := messageWish{at: at(item), typ: r.text(f["type"], "type"), data: r.value(f["data"])}
		if a := f["aggregate"]; a != nil {
			g := r.mapping(a, "aggregate", "type", "id")
			w.aggregateType, w.aggregateID = r.word(g["type"], "type"), r.word(g["id"], "id")
		}
		out = append(out, w)
	}
	return out
}

// calls reads how often activities were handed out, or with which inputs.
func (r *reader) calls(n *yaml.Node) []callWish {
	if n == nil {
		return nil
	}
	var out []callWish
	f := r.mapping(n, "calls")
	for _, key := range names(n) {
		w := callWish{at: at(key), activity: key.Value}
		if v := behind(f[key.Value]); v.Kind == yaml.SequenceNode {
			for _, item := range v.Content {
				w.inputs = append(w.inputs, value{at(item), r.json(item)})
			}
			w.times = &count{at(v), len(w.inputs)}
		} else {
			w.times = r.count(v, "the number of calls")
		}
		out = append(out, w)
	}
	return out
}
