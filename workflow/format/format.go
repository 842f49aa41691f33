package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/grammar"
)

// width is how long a line with brackets may be, in characters: beyond it the
// brackets become blocks.
const width = 120

// File lays a definition out. What it returns is laid out already: a second
// call changes nothing. A file in JSON comes back as it is. The problems are
// those of a text that cannot be read, and of one whose layout cannot be
// changed without losing something; nothing is returned then.
func File(file string, src []byte) ([]byte, []workflow.Problem) {
	before, text, problems := workflow.Document(file, src)
	if len(problems) > 0 {
		return nil, problems
	}
	if json.Valid(src) {
		return src, nil
	}
	out, err := settled(string(text))
	if err != nil {
		return nil, refusal(file, err.Error())
	}
	after, _, problems := workflow.Document(file, out)
	switch {
	case len(problems) > 0 || !bytes.Equal(before, after):
		return nil, refusal(file, "the layout of this file cannot be changed without changing what it says")
	case !slices.Equal(sortedComments(string(text)), sortedComments(string(out))):
		return nil, refusal(file, "a comment of this file would get lost")
	}
	return out, nil
}

// refusal is the one problem of a file that is left as it is.
func refusal(file, why string) []workflow.Problem {
	return []workflow.Problem{{
		File: file, Line: 1, Column: 1, ID: "RG0004", Severity: workflow.SeverityError,
		Message: why, Suggestion: "lay it out by hand, or move comments above the keys that they are about",
	}}
}

// rounds is how often a layout is laid out again until nothing changes: one is
// enough for what people write, and comments in odd places may take another.
const rounds = 4

// settled lays a text out until a further time changes nothing.
func settled(text string) ([]byte, error) {
	for range rounds {
		out, err := layout(text)
		if err != nil || string(out) == text {
			return out, err
		}
		text = string(out)
	}
	return nil, errors.New("the comments of this file stand where they cannot be kept in place")
}

// layout writes the text anew.
func layout(text string) ([]byte, error) {
	text = plainLines(text)
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, errors.New("the file is not YAML that can be laid out")
	}
	s := newSource(text)
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the file is not a mapping")
	}
	root := doc.Content[0]
	s.scan(root)
	p := &printer{source: s}
	g := grammar.New()
	form := grammar.Value{} // a file of scenarios, or what else is YAML
	if slices.ContainsFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "ringi" }) {
		form = grammar.Value{Kind: grammar.Map, Of: g.Definition}
	}
	if !s.anchors {
		arrange(root, form)
	}
	b := p.tree(root, form, nil)
	s.attach(p.items)
	p.comments(s.top, "")
	if len(s.top) > 0 && s.topBlank {
		p.b.WriteString("\n")
	}
	p.block(b, "", false)
	if len(s.end) > 0 && s.end[0].blankAbove {
		p.blank()
	}
	p.comments(s.end, "")
	return []byte(p.b.String()), nil
}

// plainLines is a text without byte order mark and carriage returns.
func plainLines(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
}

// An item is an entry of a mapping or of a list, with the comments about it.
type item struct {
	key        *yaml.Node // nil in a list
	value      *yaml.Node
	at         place
	parent     *item
	inner      *tree // of a value in blocks, or in brackets that must be opened
	heads      []comment
	foots      []comment
	trail      string
	blankAbove bool
}

// A tree is a mapping or a list whose entries stand on lines of their own.
type tree struct{ items []*item }

// tree reads a mapping or list in the order in which it is written.
func (p *printer) tree(n *yaml.Node, v grammar.Value, parent *item) *tree {
	t := &tree{}
	add := func(key, value *yaml.Node, at place, v grammar.Value) {
		it := &item{key: key, value: value, at: at, parent: parent, blankAbove: p.source.blankAbove(at.line)}
		p.items = append(p.items, it)
		if p.opens(value) {
			it.inner = p.tree(value, v, it)
		}
		t.items = append(t.items, it)
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			add(key, n.Content[i+1], place{key.Line, key.Column}, inner(v, key.Value))
		}
		if v.Kind == grammar.Map && !p.source.anchors {
			order := v.Of.Names()
			slices.SortStableFunc(t.items, func(a, b *item) int { return rank(order, a.key.Value) - rank(order, b.key.Value) })
		}
	case yaml.SequenceNode:
		for _, entry := range n.Content {
			add(nil, entry, p.source.dash(n, entry), entryOf(v))
		}
	}
	return t
}

// rank is the place of a key in the order; unknown ones come last.
func rank(order []string, key string) int {
	if i := slices.Index(order, key); i >= 0 {
		return i
	}
	return len(order)
}

// arrange puts the keys of mappings in brackets into their order.
func arrange(n *yaml.Node, v grammar.Value) {
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			arrange(c, entryOf(v))
		}
	case yaml.MappingNode:
		var pairs [][2]*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			arrange(n.Content[i+1], inner(v, n.Content[i].Value))
			pairs = append(pairs, [2]*yaml.Node{n.Content[i], n.Content[i+1]})
		}
		if v.Kind != grammar.Map || n.Style&yaml.FlowStyle == 0 {
			return
		}
		order := v.Of.Names()
		slices.SortStableFunc(pairs, func(a, b [2]*yaml.Node) int { return rank(order, a[0].Value) - rank(order, b[0].Value) })
		for i, pair := range pairs {
			n.Content[2*i], n.Content[2*i+1] = pair[0], pair[1]
		}
	}
}

// inner is what the grammar says about the value of a key.
func inner(v grammar.Value, key string) grammar.Value {
	switch v.Kind {
	case grammar.Map:
		k, _ := v.Of.Key(key)
		return k.Value
	case grammar.Named:
		return *v.Item
	}
	return grammar.Value{}
}

// entryOf is what the grammar says about the entries of a list.
func entryOf(v grammar.Value) grammar.Value {
	switch v.Kind {
	case grammar.Steps:
		return grammar.Value{Kind: grammar.Map, Of: v.Of}
	case grammar.List:
		return *v.Item
	}
	return grammar.Value{}
}

// opens reports whether a value is written as a block: it is one, or it stands
// in brackets with comments between them.
func (p *printer) opens(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return false
	}
	return n.Style&yaml.FlowStyle == 0 || p.source.commented(n)
}

// lastLine is the last line that something of a value begins in.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// value of brackets that do not fit on the line: its entries as blocks.
func (p *printer) open(n *yaml.Node) *tree {
	t := &tree{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			t.items = append(t.items, &item{key: n.Content[i], value: n.Content[i+1]})
		}
		return t
	}
	for _, entry := range n.Content {
		t.items = append(t.items, &item{value: entry})
	}
	return t
}
