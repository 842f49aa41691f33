package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi"
)

// MaxSource bounds a file of scenarios in bytes.
const MaxSource = 1 << 20

// Read reads a file of scenarios; name is for messages. It returns nil and every
// problem when the file is not one.
func Read(name string, src []byte) (*File, []Problem) {
	r := &reader{file: name}
	if len(src) > MaxSource {
		r.report(Place{1, 1}, fmt.Sprintf("the file has more than %d bytes", MaxSource), "split it")
		return nil, r.problems
	}
	root := r.root(src)
	if root == nil {
		return nil, r.problems
	}
	file := r.readFile(root)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return file, nil
}

func (r *reader) readFile(root *yaml.Node) *File {
	f := r.mapping(root, "a file of scenarios", "definition", "people", "answers", "step_answers", "scenarios")
	file := &File{Name: r.file, Definition: r.text(f["definition"], "definition"), people: r.people(f["people"])}
	answers, steps := r.scripts(f["answers"]), r.scripts(f["step_answers"])
	list := r.list(f["scenarios"], "scenarios")
	if len(list) == 0 {
		r.report(at(root), "the file has no scenarios", "add scenarios: with a list of them")
	}
	seen := map[string]bool{}
	for _, n := range list {
		s := r.scenario(n, file)
		if s.Name != "" && seen[s.Name] {
			r.report(s.At, fmt.Sprintf("there is a scenario %q already", s.Name), "give each a name of its own")
		}
		seen[s.Name] = true
		s.answers, s.steps = over(answers, s.answers), over(steps, s.steps)
		file.Scenarios = append(file.Scenarios, s)
	}
	return file
}

// over lays a scenario's scripts over those of the file.
func over(all, own map[string]script) map[string]script {
	out := make(map[string]script, len(all)+len(own))
	for name, s := range all {
		out[name] = s
	}
	for name, s := range own {
		out[name] = s
	}
	return out
}

func (r *reader) people(n *yaml.Node) map[string]person {
	out := map[string]person{}
	if n == nil {
		return out
	}
	f := r.mapping(n, "people")
	for _, key := range names(n) {
		p := person{at: at(key)}
		for _, g := range r.list(f[key.Value], "the groups of "+key.Value) {
			p.groups = append(p.groups, r.text(g, "a group"))
		}
		out[key.Value] = p
	}
	return out
}

func (r *reader) scenario(n *yaml.Node, file *File) *Scenario {
	f := r.mapping(n, "a scenario", "name", "start", "answers", "step_answers", "then", "expect")
	s := &Scenario{At: at(n), file: file, Name: r.text(f["name"], "name")}
	if s.Name == "" {
		r.report(s.At, "the scenario has no name", "add name: what happens, in a few words")
	}
	s.start = r.opening(f["start"], s.At)
	s.answers, s.steps = r.scripts(f["answers"]), r.scripts(f["step_answers"])
	for _, m := range r.list(f["then"], "then") {
		s.moves = append(s.moves, r.move(m))
	}
	if f["expect"] == nil && !slices.ContainsFunc(s.moves, func(m move) bool { return m.expect != nil || m.refused != "" }) {
		r.report(s.At, fmt.Sprintf("the scenario %q expects nothing, so it cannot fail", s.Name), "add expect: with the status at least")
	}
	s.expect = r.expectation(f["expect"])
	return s
}

func (r *reader) opening(n *yaml.Node, where Place) opening {
	o := opening{at: where, by: "requester", input: []byte("{}"), when: beginning()}
	if n == nil {
		return o
	}
	f := r.mapping(n, "start", "by", "key", "input", "at")
	o.at, o.key = at(n), r.text(f["key"], "key")
	if f["by"] != nil {
		o.by = r.text(f["by"], "by")
	}
	if f["input"] != nil {
		o.input = r.json(f["input"])
	}
	if f["at"] != nil {
		o.when = r.instant(f["at"], "at")
	}
	return o
}

func (r *reader) scripts(n *yaml.Node) map[string]script {
	out := map[string]script{}
	if n == nil {
		return out
	}
	f := r.mapping(n, "answers")
	for _, key := range names(n) {
		s := script{at: at(key)}
		v := behind(f[key.Value])
		if v.Kind == yaml.SequenceNode {
			for _, item := range v.Content {
				s.answers = append(s.answers, r.answer(item))
			}
		} else {
			s.answers = append(s.answers, r.answer(v))
		}
		if len(s.answers) == 0 {
			r.report(s.at, "there are no answers in the list", "add one, or remove the key")
		}
		out[key.Value] = s
	}
	return out
}

func (r *reader) answer(n *yaml.Node) answer {
	n = behind(n)
	a := answer{at: at(n)}
	if n.Kind == yaml.ScalarNode {
		if a.lost = n.Value == "lost"; !a.lost {
			r.report(a.at, fmt.Sprintf("%q is no answer", n.Value), "write lost, { output: … } or { fail: … }")
		}
		return a
	}
	f := r.mapping(n, "an answer", "output", "fail", "takes")
	a.takes = r.duration(f["takes"], "takes")
	switch {
	case f["output"] != nil && f["fail"] != nil:
		r.report(a.at, "an answer is an output or a failure, not both", "remove one of them")
	case f["fail"] != nil:
		a.failure = r.failure(f["fail"])
	default:
		a.output = r.json(f["output"])
	}
	return a
}

func (r *reader) failure(n *yaml.Node) *ringi.Failure {
	if n = behind(n); n.Kind == yaml.ScalarNode {
		return &ringi.Failure{Code: r.text(n, "fail")}
	}
	f := r.mapping(n, "fail", "code", "message", "retryable", "applied")
	out := &ringi.Failure{Code: r.text(f["code"], "code"), Message: r.text(f["message"], "message"), Retryable: r.flag(f["retryable"], "retryable")}
	if out.Code == "" {
		r.report(at(n), "a failure has a code", "add code: as the worker would report it")
	}
	if w := r.oneOf(f["applied"], "answer to whether it happened", string(ringi.AppliedNo), string(ringi.AppliedUnknown)); w != nil {
		out.Applied = ringi.Applied(w.text)
	}
	return out
}

func moveWords() []string {
	return []string{"approve", "reject", "withdraw", "event", "pass", "cancel", "pause", "resume", "terminate", "resolve", "expect"}
}

// move reads one entry of then: a mapping whose one key says what happens.
func (r *reader) move(n *yaml.Node) move {
	f := r.mapping(n, "a move", moveWords()...)
	m := move{at: at(n)}
	if len(f) != 1 {
		r.report(m.at, "a move has exactly one key", "write one of "+strings.Join(moveWords(), ", "))
		return m
	}
	for m.word = range f { // the one
	}
	v := f[m.word]
	switch m.word {
	case "pass":
		m.pass = r.duration(v, "pass")
	case "expect":
		m.expect = r.expectation(v)
	case "approve", "reject":
		g := r.mapping(v, m.word, "step", "by", "comment", "refused")
		m.step, m.comment = r.text(g["step"], "step"), r.text(g["comment"], "comment")
		r.person(&m, g, v)
	case "withdraw":
		g := r.mapping(v, m.word, "step", "by", "reason", "refused")
		m.step = r.text(g["step"], "step")
		r.person(&m, g, v)
	case "event":
		r.event(&m, v)
	case "resolve":
		r.resolve(&m, v)
	default: // cancel, pause, resume, terminate
		r.person(&m, r.mapping(v, m.word, "by", "reason", "refused"), v)
	}
	return m
}

// person reads what every move of a person has.
func (r *reader) person(m *move, f fields, n *yaml.Node) {
	m.by, m.reason, m.refused = r.text(f["by"], "by"), r.text(f["reason"], "reason"), r.text(f["refused"], "refused")
	if m.by == "" {
		r.report(at(behind(n)), m.word+" does not say who does it", "add by: with one of people")
	}
}

func (r *reader) event(m *move, n *yaml.Node) {
	f := r.mapping(n, "event", "name", "key", "id", "data")
	m.event = ringi.SentEvent{ID: r.text(f["id"], "id"), Name: r.text(f["name"], "name"), Key: r.text(f["key"], "key"), Data: r.json(f["data"])}
	if m.event.Name == "" {
		r.report(m.at, "an event has a name", "add name:")
	}
}

func (r *reader) resolve(m *move, n *yaml.Node) {
	f := r.mapping(n, "resolve", "step", "how", "by", "reason", "output", "activity", "input", "refused")
	r.person(m, f, n)
	m.step = r.text(f["step"], "step")
	how := r.oneOf(f["how"], "way to resolve an incident", resolutions()...)
	if how == nil {
		r.report(m.at, "resolve does not say how", "add how: with one of "+strings.Join(resolutions(), ", "))
		return
	}
	m.resolve = ringi.ResolveIncident{How: ringi.Resolution(how.text), Reason: m.reason, Activity: r.text(f["activity"], "activity")}
	if f["output"] != nil {
		m.resolve.Output = r.json(f["output"])
	}
	if f["input"] != nil {
		m.resolve.Input = r.json(f["input"])
	}
}

func resolutions() []string {
	return []string{
		string(ringi.ResolveRetry), string(ringi.ResolveDone), string(ringi.ResolveNotDone),
		string(ringi.ResolveSkipUndo), string(ringi.ResolveRunOther), string(ringi.ResolveUndoRest),
	}
}
