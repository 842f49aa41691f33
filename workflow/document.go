package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ringiflow/ringi/workflow/exact"
)

// What a file may be. The sizes are checked before anything is parsed, the
// depth before anything recurses, so that a hostile file costs no more than a
// large honest one.
const (
	// MaxSource bounds a definition's file in bytes. A definition is read by
	// people and by every node; a thousand steps fit ten times.
	MaxSource = 1 << 20
	// MaxNodes bounds the values of a definition, aliases expanded: what an
	// alias bomb would multiply.
	MaxNodes = 100_000
	// MaxNesting bounds how deep lists and mappings stand in each other, as it
	// does for every JSON document; one branch inside another takes four levels.
	MaxNesting = exact.MaxNesting
	// maxMarks bounds lines, commas and opening brackets, and so the memory of
	// the YAML parser, before it runs.
	maxMarks = 150_000
)

// readDocument turns the file into a tree, or reports why not and returns nil.
func (p *parser) readDocument(text []byte) *node {
	switch {
	case len(text) > MaxSource:
		p.report(position{1, 1}, ruleTooLarge,
			fmt.Sprintf("the file has more than %d bytes, which is the most that a definition may have", MaxSource), // whoever read it stopped there
			"move data out of the definition into the run's input, or split the process")
		return nil
	case marks(text) > maxMarks:
		p.report(position{1, 1}, ruleTooLarge,
			fmt.Sprintf("the file has more than %d lines, commas and brackets", maxMarks),
			"move data out of the definition into the run's input, or split the process")
		return nil
	}
	if at, ok := p.badText(text); !ok {
		p.report(at, ruleNotUTF8, "the file is not UTF-8 text, or holds a NUL character here", "save the file as UTF-8 without control characters")
		return nil
	}
	if t := bytes.TrimLeft(text, " \t\r\n"); len(t) > 0 && t[0] == '{' && json.Valid(text) {
		return p.readJSON(text)
	}
	return p.readYAML(text)
}

// marks counts what makes the YAML parser allocate.
func marks(text []byte) int {
	n := 0
	for _, c := range text {
		switch c {
		case '\n', ',', '[', '{', '?':
			n++
		}
	}
	return n
}

// badText finds the first byte that is not UTF-8 text.
func (p *parser) badText(text []byte) (position, bool) {
	s := string(text)
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		if r == 0 || (r == utf8.RuneError && n == 1) {
			return p.src.position(i), false
		}
	}
	return position{}, true
}

// uniqueKeys refuses the second of two equal keys of a mapping.
func (p *parser) uniqueKeys(n *node) {
	seen := make(map[string]position, len(n.keys))
	keys, items := n.keys[:0], n.items[:0]
	for i, k := range n.keys {
		if first, ok := seen[k.text]; ok {
			p.report(k.position, ruleDuplicateKey,
				fmt.Sprintf("the key %s stands twice in this mapping, first in line %d", quoted(k.text), first.line),
				"remove one of them")
			continue
		}
		seen[k.text] = k.position
		keys, items = append(keys, k), append(items, n.items[i])
	}
	n.keys, n.items = keys, items
}

// number checks a number's form: JSON's, and exact.
func (p *parser) number(n *node) *node {
	if _, err := Canonical([]byte(n.text)); err != nil {
		p.report(n.position, ruleNumber, fmt.Sprintf("the number %s cannot be kept exactly: %v", quoted(n.text), err),
			"write at most 34 digits, or quote it to make it text")
		n.text = "0"
	}
	return n
}

// grow counts a node with its text and reports, once, a document that has too many or lies
// too deep. It returns false where reading must stop.
func (p *parser) grow(at position, depth int, container bool, bytes int) bool {
	if p.stopped {
		return false
	}
	p.nodes++
	p.bytes += bytes
	switch {
	case p.nodes > MaxNodes || p.bytes > MaxSource:
		p.stopped = true
		p.report(at, ruleTooLarge, fmt.Sprintf("the document has more than %d values or %d bytes, aliases counted each time they are used", MaxNodes, MaxSource),
			"move data out of the definition into the run's input, or split the process")
	case container && depth > MaxNesting:
		p.stopped = true
		p.report(at, ruleTooDeep, fmt.Sprintf("lists and mappings stand more than %d deep in each other", MaxNesting),
			"flatten the document; a long branch can be a definition of its own")
	}
	return !p.stopped
}

// readJSON reads a document that json.Valid has accepted. JSON is not read as
// YAML, although it nearly is: YAML knows no surrogate pairs in escapes.
func (p *parser) readJSON(text []byte) *node {
	r := &jsonReader{p: p, text: string(text), dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	root := r.value(1)
	if p.stopped {
		return nil
	}
	return root
}

type jsonReader struct {
	p    *parser
	text string
	dec  *json.Decoder
}

// next returns the next token and where it begins.
func (r *jsonReader) next() (json.Token, position) {
	at := int(r.dec.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	t, err := r.dec.Token()
	if err != nil {
		r.p.stopped = true
		r.p.report(r.p.src.position(at), ruleSyntax, "the JSON cannot be read: "+err.Error(), "correct the document here")
	}
	return t, r.p.src.position(at)
}

func (r *jsonReader) value(depth int) *node {
	t, at := r.next()
	n := &node{position: at}
	_, container := t.(json.Delim)
	if !r.p.grow(at, depth, container, 0) {
		return n
	}
	switch v := t.(type) {
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(v)
	case json.Number:
		n.kind, n.text = numberNode, v.String()
		return r.p.number(n)
	case string:
		n.kind, n.text, n.style = textNode, v, doubleStyle
	case json.Delim:
		r.children(n, v, depth)
	}
	return n
}

func (r *jsonReader) children(n *node, open json.Delim, depth int) {
	n.kind = listNode
	if open == '{' {
		n.kind = mapNode
	}
	for !r.p.stopped && r.dec.More() {
		if n.kind == mapNode {
			key, at := r.next()
			name, _ := key.(string)
			n.keys = append(n.keys, &node{kind: textNode, text: name, style: doubleStyle, position: at})
		}
		n.items = append(n.items, r.value(depth+1))
	}
	if r.p.stopped {
		n.items = n.items[:min(len(n.items), len(n.keys))]
		return
	}
	r.next() // the closing bracket
	if n.kind == mapNode {
		r.p.uniqueKeys(n)
	}
}
