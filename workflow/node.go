package workflow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// nodeKind is the JSON type of a node.
type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	textNode
	listNode
	mapNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "a mapping"}[k]
}

// scalarStyle is how the file writes a scalar: it decides how an offset inside
// the text is found again in the file.
type scalarStyle int

const (
	plainStyle scalarStyle = iota
	singleStyle
	doubleStyle
	literalStyle
	foldedStyle
)

// position is a place in the file, both from 1, the column in characters.
type position struct{ line, column int }

// A node is one value of the document, with its place. It is a tree: aliases
// are already expanded, keys are unique and text, numbers are JSON numbers, so
// that nothing behind it knows whether the file was YAML or JSON.
type node struct {
	kind  nodeKind
	text  string // of a scalar: the decoded text, the number as written, true or false
	style scalarStyle
	position
	keys  []*node // of a mapping, beside items
	items []*node
}

// field returns the value and the key of that name, or nil.
func (n *node) field(key string) (value, keyNode *node) {
	if n == nil || n.kind != mapNode {
		return nil, nil
	}
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i], k
		}
	}
	return nil, nil
}

// json renders the node as JSON with its numbers as written.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case nullNode:
		b.WriteString("null")
	case boolNode, numberNode:
		b.WriteString(n.text)
	case textNode:
		writeText(b, n.text)
	case listNode:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case mapNode:
		b.WriteByte('{')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, n.keys[i].text)
			b.WriteByte(':')
			item.write(b)
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	doc, err := json.Marshal(s)
	if err != nil {
		panic("workflow: a string that is not JSON: " + err.Error()) //nolint:forbidigo // encoding/json writes every string
	}
	b.Write(doc)
}

// at follows a path of mapping keys and list indexes as far as the tree has
// it, and returns the last node reached.
func (n *node) at(path []string) *node {
	for _, step := range path {
		next, _ := n.field(step)
		if n.kind == listNode {
			i := 0
			for _, c := range step {
				i = min(i*10+int(c-'0'), len(n.items))
			}
			if i >= 0 && i < len(n.items) {
				next = n.items[i]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// mentions reports whether a text in the tree holds the word.
func (n *node) mentions(word string) bool {
	if n.kind == textNode && strings.Contains(n.text, word) {
		return true
	}
	return slices.ContainsFunc(n.items, func(item *node) bool { return item.mentions(word) })
}
