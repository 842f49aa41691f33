package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow/exact"
)

// compare notes what stands otherwise than expected.
func (p *play) compare(e *expectation) {
	if e == nil {
		return
	}
	v := p.state.View()
	p.compareRun(e, v)
	p.compareSteps(e.steps, v)
	if e.path != nil && !slices.EqualFunc(e.path, p.ended, func(a, b pathEntry) bool { return a.step == b.step && a.outcome == b.outcome }) {
		p.differ(place(e.path, e.at), "the path is %s, want %s", route(p.ended), route(e.path))
	}
	if e.undone != nil && !slices.Equal(texts(e.undone), p.undone) {
		p.differ(e.at, "undone are %s, want %s", listed(p.undone), listed(texts(e.undone)))
	}
	if e.left != nil && !slices.Equal(texts(e.left), v.EffectsLeft) {
		p.differ(e.at, "effects_left are %s, want %s", listed(v.EffectsLeft), listed(texts(e.left)))
	}
	if e.emitted != nil {
		p.compareMessages(e)
	}
	p.compareCalls(e.calls)
}

func place(path []pathEntry, otherwise Place) Place {
	if len(path) > 0 {
		return path[0].at
	}
	return otherwise
}

func (p *play) compareRun(e *expectation, v ringi.RunView) {
	p.word(e.status, "status", string(v.Status))
	p.word(e.waitingFor, "waiting_for", v.WaitingFor)
	p.value(e.output, "the output", v.Output)
	if c := e.cause; c != nil {
		cause := ringi.Cause{}
		switch {
		case v.Cause != nil:
			cause = *v.Cause
		case p.state.Unwind != nil:
			cause = p.state.Unwind.Cause
		}
		p.word(c.code, "cause.code", cause.Code)
		p.word(c.step, "cause.step", cause.Step)
	}
	if i := e.incident; i != nil {
		incident := ringi.Incident{}
		if len(v.Incidents) > 0 {
			incident = v.Incidents[0]
		}
		p.word(i.kind, "incident.kind", string(incident.Kind))
		p.word(i.step, "incident.step", incident.Step)
	}
}

// word compares a text that an expectation may have named.
func (p *play) word(want *word, what, got string) {
	if want != nil && want.text != got {
		if got == "" {
			got = "nothing"
		}
		p.differ(want.at, "%s is %s, want %s", what, got, want.text)
	}
}

// value compares JSON by its canonical form: 0.10 equals 0.1, and the order of
// keys does not count.
func (p *play) value(want *value, what string, got json.RawMessage) {
	if want != nil && !same(want.doc, got) {
		p.differ(want.at, "%s is %s, want %s", what, shown(got), shown(want.doc))
	}
}

func same(canonical, doc json.RawMessage) bool {
	if len(doc) == 0 {
		doc = json.RawMessage("null")
	}
	c, err := exact.Canonical(doc)
	return err == nil && string(c) == string(canonical)
}

// longestShown bounds a value in a message, in bytes.
const longestShown = 300

func shown(doc json.RawMessage) string {
	if len(doc) == 0 {
		return "null"
	}
	if len(doc) > longestShown {
		return strings.ToValidUTF8(string(doc[:longestShown]), "") + "…"
	}
	return string(doc)
}

func (p *play) compareSteps(wishes []stepWish, v ringi.RunView) {
	for _, w := range wishes {
		got := ringi.StepView{ID: w.step, Outcome: string(ringi.NotRun)}
		for _, st := range v.Steps {
			if st.ID == w.step {
				got = st
			}
		}
		p.word(w.outcome, "step "+w.step, got.Outcome)
		p.word(w.undo, "the undo of "+w.step, got.Undo)
		p.value(w.output, "the output of "+w.step, got.Output)
		if w.attempts != nil && w.attempts.n != got.Attempts {
			p.differ(w.attempts.at, "step %s had %d attempts, want %d", w.step, got.Attempts, w.attempts.n)
		}
	}
}

func (p *play) compareMessages(e *expectation) {
	for i, w := range e.emitted {
		if i >= len(p.messages) {
			p.differ(w.at, "message %d, %s, was not emitted", i+1, w.typ)
			continue
		}
		m := p.messages[i]
		p.word(&word{w.at, w.typ}, fmt.Sprintf("the type of message %d", i+1), m.Type)
		p.word(w.aggregateType, fmt.Sprintf("the aggregate type of message %d", i+1), m.AggregateType)
		p.word(w.aggregateID, fmt.Sprintf("the aggregate id of message %d", i+1), m.AggregateID)
		p.value(w.data, fmt.Sprintf("the data of message %d", i+1), m.Data)
	}
	for _, m := range p.messages[min(len(p.messages), len(e.emitted)):] {
		p.differ(e.at, "%s was emitted too: %s", m.Type, shown(m.Data))
	}
}

func (p *play) compareCalls(wishes []callWish) {
	for _, w := range wishes {
		var inputs []json.RawMessage
		for _, c := range p.calls {
			if c.activity == w.activity {
				inputs = append(inputs, c.input)
			}
		}
		if w.times != nil && w.times.n != len(inputs) {
			p.differ(w.times.at, "%s was called %d times, want %d", w.activity, len(inputs), w.times.n)
			continue
		}
		for i := range w.inputs {
			p.value(&w.inputs[i], fmt.Sprintf("input %d of %s", i+1, w.activity), inputs[i])
		}
	}
}

func texts(words []word) []string {
	out := []string{}
	for _, w := range words {
		out = append(out, w.text)
	}
	return out
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func route(path []pathEntry) string {
	var parts []string
	for _, e := range path {
		if e.outcome == string(ringi.Succeeded) {
			parts = append(parts, e.step)
		} else {
			parts = append(parts, e.step+" "+e.outcome)
		}
	}
	return listed(parts)
}
