package workflow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// Parse reads and checks a definition in YAML or JSON. It returns every
// problem of the file at once, in the order of the file. The definition is nil
// when one of them has severity error; otherwise the problems are findings
// that do not keep it from being published. file is only a name for messages.
// Whatever src holds, Parse does not panic and stays within two seconds and
// 256 MB.
func Parse(file string, src []byte) (*Definition, []Problem) { return parse(file, src, nil) }

// parse is Parse, and holds the definition against quotas if there are some.
func parse(file string, src []byte, quotas *Quotas) (*Definition, []Problem) {
	p := newParser(file, src, quotas)
	if root := p.readDocument(src); root != nil {
		p.document(root)
	}
	if p.failed {
		return nil, sortProblems(p.problems)
	}
	return p.definition, sortProblems(p.problems)
}

func newParser(file string, src []byte, quotas *Quotas) *parser {
	p := &parser{
		form: grammar.New(), quotas: quotas,
		file: newSource(file, nil), definition: &Definition{steps: map[string]*Step{}},
		ids: map[string]*node{}, at: map[*Step]fields{}, slots: map[*Step][]slot{}, types: map[*node]*typ{}, requests: map[*Step][]*request{},
		counts: map[Severity]int{},
	}
	if len(src) <= MaxSource {
		p.file = newSource(file, src)
	}
	p.src = p.file
	return p
}

// A parser reads one definition. It goes over the document once for its form
// (grammar_*.go), collecting expressions, and then over the tree of steps in
// the order in which they run (flow.go), where it knows the types of what each
// expression may read.
type parser struct {
	file       *source // as given
	src        *source // as read: with the quotes that patch added
	edits      []edit
	problems   []Problem
	counts     map[Severity]int // of problems, also of those that were not kept
	failed     bool             // one of them is an error
	form       *grammar.Grammar
	quotas     *Quotas // nil: none
	nodes      int     // of the document
	bytes      int     // of its texts
	stopped    bool    // reading the document was given up
	definition *Definition
	defaults   defaults

	ids      map[string]*node     // where each id stands
	at       map[*Step]fields     // each step's mapping
	slots    map[*Step][]slot     // the expressions of each step; those of the definition under nil
	types    map[*node]*typ       // of compiled values
	requests map[*Step][]*request // the http calls of each step
	steps    int                  // read so far
	compiled int                  // expressions compiled so far
	written  int                  // their bytes
	schemas  int                  // bytes of schemas compiled so far
}

// report records a problem of the rule at a place.
func (p *parser) report(at position, id, message, suggestion string) {
	severity := severityOf(id)
	p.failed = p.failed || severity == SeverityError
	if p.counts[severity]++; p.counts[severity] > 4*maxProblems {
		return
	}
	at = p.original(at)
	p.problems = append(p.problems, Problem{
		File: p.file.file, Line: at.line, Column: at.column,
		ID: id, Severity: severity, Message: message, Suggestion: suggestion,
	})
}

// original maps a place in the patched text back to the file.
func (p *parser) original(at position) position {
	if len(p.edits) == 0 {
		return at
	}
	offset := p.src.offset(at)
	n, _ := slices.BinarySearchFunc(p.edits, offset, func(e edit, o int) int { return cmp.Compare(e.at, o) })
	return p.file.position(offset - n)
}

// document reads the top of the definition.
func (p *parser) document(root *node) {
	if root.kind != mapNode {
		p.report(root.position, ruleNotMapping, fmt.Sprintf("a definition is a mapping, this file holds %s", root.kind),
			"begin with: ringi: v1")
		return
	}
	d := p.definition
	f := p.open(root, p.form.Definition)
	p.version(f)
	d.Name = p.name(f.must("name"), "the name")
	if n := f.get("title"); n != nil {
		p.titleSlot(n, nil, placeTitle, &d.Title)
	}
	d.Description = p.longText(f.get("description"))
	d.Labels = p.labels(f.get("labels"))
	d.Input = f.schema("input")
	if n := f.get("start"); n != nil {
		s := p.open(n, p.form.Start)
		p.textSlot(s.must("key"), nil, placeStart, &d.StartKey)
	}
	p.defaults = p.readDefaults(f.get("defaults"))
	d.Deadline = p.deadline(f.get("deadline"))
	d.Root = p.block(f.must("steps"), nil, "", 1, false)
	if n := f.get("output"); n != nil {
		p.valueSlot(n, nil, placeOutput, &d.Output)
	}
	if n := f.get("on_failure"); n != nil {
		s := p.open(n, p.form.OnFailure)
		d.OnFailure = p.block(s.must("steps"), nil, onFailure, 1, false)
	}
	p.finish(root)
}

// onFailure is the branch name of the block of on_failure.
const onFailure = "on_failure"

// finish runs the checks that need the whole tree, and fills in what is
// derived from the document.
func (p *parser) finish(root *node) {
	d := p.definition
	p.nameSteps()
	p.checkFlow()
	if p.failed {
		return
	}
	source, err := Canonical(root.json())
	if err == nil {
		d.Source = source
		d.Digest, err = Digest(source)
	}
	if err != nil {
		p.report(root.position, ruleSyntax, "the document has no canonical form: "+err.Error(), "correct the document")
	}
}

func (p *parser) version(f fields) {
	n := f.must("ringi")
	if n != nil && n.text != "v1" {
		p.report(n.position, ruleVersion, fmt.Sprintf("this program reads version v1 of the language, not %s", quoted(n.text)), "write ringi: v1")
	}
}

func (p *parser) labels(n *node) map[string]string {
	if n == nil || !p.expect(n, mapNode, "labels") {
		return nil
	}
	if len(n.keys) > MaxLabels {
		p.report(n.keys[MaxLabels].position, ruleTooMany, fmt.Sprintf("a definition has at most %d labels, this one has %d", MaxLabels, len(n.keys)),
			"keep the labels that lists are filtered by")
	}
	out := make(map[string]string, len(n.keys))
	for i, k := range n.keys {
		out[p.name(k, "a label's name")] = p.name(n.items[i], "a label")
	}
	return out
}

func (p *parser) deadline(n *node) *Deadline {
	if n == nil {
		return nil
	}
	f := p.open(n, p.form.Deadline)
	f.must("after")
	return &Deadline{
		After: f.duration("after"),
		Then:  f.word("then", "compensate"),
	}
}
