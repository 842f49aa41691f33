package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// A reader turns YAML into a File and notes every problem that it meets.
type reader struct {
	file     string
	problems []Problem
	nodes    int // written so far, aliases counted each time
}

// root parses the one document of the file; nil when there is none to read.
func (r *reader) root(src []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		r.report(Place{1, 1}, "the file is empty", "write scenarios: with a list of them")
		return nil
	} else if err != nil {
		r.report(placeIn(err), "this is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "), "correct the line")
		return nil
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		r.report(Place{max(second.Line, 1), 1}, "a second document begins here", "put it into a file of its own")
		return nil
	}
	return doc.Content[0]
}

// placeIn finds the line in a message of the YAML parser.
func placeIn(err error) Place {
	m := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return Place{1, 1}
	}
	line, _ := strconv.Atoi(m[1]) // digits, as matched
	return Place{max(line, 1), 1}
}

func (r *reader) report(at Place, message, suggestion string) {
	r.problems = append(r.problems, Problem{File: r.file, Place: at, Message: message, Suggestion: suggestion})
}

func at(n *yaml.Node) Place { return Place{n.Line, n.Column} }

// behind follows an alias to what it stands for.
func behind(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// fields are the entries of a mapping by key.
type fields map[string]*yaml.Node

// mapping reads a mapping that may have these keys and no others; with no keys
// named, any.
func (r *reader) mapping(n *yaml.Node, what string, known ...string) fields {
	n = behind(n)
	f := fields{}
	if n.Kind != yaml.MappingNode {
		r.report(at(n), what+" is a mapping", "write key: value, one a line")
		return f
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case len(known) > 0 && !slices.Contains(known, key.Value):
			suggestion := what + " may have " + strings.Join(known, ", ")
			if near := expr.Nearest(key.Value, known); near != "" {
				suggestion = "did you mean " + near + "?"
			}
			r.report(at(key), fmt.Sprintf("%s has no key %q", what, key.Value), suggestion)
		case f[key.Value] != nil:
			r.report(at(key), fmt.Sprintf("the key %q stands twice in this mapping", key.Value), "remove one of them")
		default:
			f[key.Value] = n.Content[i+1]
		}
	}
	return f
}

// names are the keys of a mapping with any keys, in the order of the file.
func names(n *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	if n = behind(n); n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = append(out, n.Content[i])
		}
	}
	return out
}

func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n = behind(n); n.Kind != yaml.SequenceNode {
		r.report(at(n), what+" is a list", "put a dash in front of each entry, or write [a, b]")
		return nil
	}
	return n.Content
}

// text reads a text; "" when n is nil or something else.
func (r *reader) text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	if n = behind(n); n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.report(at(n), what+" is text", "quote it")
		return ""
	}
	return n.Value
}

func (r *reader) flag(n *yaml.Node, what string) bool {
	if n == nil {
		return false
	}
	if n = behind(n); n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		r.report(at(n), what+" is true or false", "write true or false")
		return false
	}
	return n.Value == "true"
}

func (r *reader) count(n *yaml.Node, what string) *count {
	if n == nil {
		return nil
	}
	n = behind(n)
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < 0 {
		r.report(at(n), what+" is a whole number", "write a number from 0 on")
		return nil
	}
	return &count{at(n), v}
}

// word reads a text together with its place; nil when n is nil.
func (r *reader) word(n *yaml.Node, what string) *word {
	if n == nil {
		return nil
	}
	return &word{at(n), r.text(n, what)}
}

// oneOf reads one of a few words; nil when n is nil.
func (r *reader) oneOf(n *yaml.Node, what string, words ...string) *word {
	w := r.word(n, what)
	if w == nil || w.text == "" || slices.Contains(words, w.text) {
		return w
	}
	suggestion := "write " + strings.Join(words, ", ")
	if near := expr.Nearest(w.text, words); near != "" {
		suggestion = "did you mean " + near + "?"
	}
	r.report(w.at, fmt.Sprintf("%s is no %s", w.text, what), suggestion)
	return w
}

// duration reads a length of time as definitions have it; 0s is none.
func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	if n == nil {
		return 0
	}
	n = behind(n)
	d, suggestion := workflow.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || suggestion != "":
		r.report(at(n), what+" is a whole number with a unit", "write 500ms, 90s, 15m, 4h or 3d")
		return 0
	case d > workflow.MaxDuration:
		r.report(at(n), fmt.Sprintf("%s is longer than ten years", n.Value), "write less than 3650d")
		return 0
	}
	return d
}

func (r *reader) instant(n *yaml.Node, what string) time.Time {
	if n == nil {
		return time.Time{}
	}
	n = behind(n)
	t, err := time.Parse(time.RFC3339, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.report(at(n), what+" is an instant", "write it as 2026-01-31T09:00:00Z")
	}
	return t.UTC()
}

// mostNodes bounds the values of a file, as it bounds those of a definition:
// what an alias bomb would multiply.
const mostNodes = 100_000

// json reads any value as canonical JSON; null when n is nil.
func (r *reader) json(n *yaml.Node) json.RawMessage {
	if n == nil {
		return json.RawMessage("null")
	}
	var b bytes.Buffer
	if !r.write(&b, n, 0) {
		return json.RawMessage("null")
	}
	doc, err := exact.Canonical(b.Bytes())
	if err != nil {
		r.report(at(n), "the value cannot be kept exactly: "+err.Error(), "correct it, or quote numbers to make them text")
		return json.RawMessage("null")
	}
	return doc
}

func (r *reader) value(n *yaml.Node) *value {
	if n == nil {
		return nil
	}
	return &value{at(n), r.json(n)}
}

func (r *reader) write(b *bytes.Buffer, n *yaml.Node, depth int) bool {
	if r.nodes++; r.nodes > mostNodes {
		r.report(at(n), fmt.Sprintf("the file has more than %d values, aliases counted each time they are used", mostNodes), "split the file")
		return false
	}
	if n = behind(n); depth > exact.MaxNesting {
		r.report(at(n), fmt.Sprintf("lists and mappings stand more than %d deep in each other", exact.MaxNesting), "flatten the value")
		return false
	}
	ok := true
	switch n.Kind {
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			comma(b, i)
			ok = r.write(b, item, depth+1) && ok
		}
		b.WriteByte(']')
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			comma(b, i)
			b.Write(exact.AppendString(nil, n.Content[i].Value))
			b.WriteByte(':')
			ok = r.write(b, n.Content[i+1], depth+1) && ok
		}
		b.WriteByte('}')
	default:
		return r.scalar(b, n)
	}
	return ok
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func (r *reader) scalar(b *bytes.Buffer, n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			r.report(at(n), fmt.Sprintf("the number %s is not written as JSON writes numbers", n.Value), "write it in decimal digits, or quote it to make it text")
			return false
		}
		b.WriteString(n.Value)
	default: // text; also what YAML takes for a date
		b.Write(exact.AppendString(nil, n.Value))
	}
	return true
}
