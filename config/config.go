// Package config reads a file of settings: one YAML mapping of names to single
// values. What it does not know is an error, so that a slip of the pen is not a
// default, and every error names its place.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is a value of a file and its place.
type Value struct {
	Text string
	At   string // file:line:column
}

// Error says what is wrong with a file, where, and what to write instead.
type Error struct {
	Message string
	Hint    string // may be empty
}

// Error returns the message, and the hint when there is one.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

func wrong(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Parse reads the text of a file, which name is for messages only. known are the
// settings that there are. Every error is an *Error.
func Parse(name string, src []byte, known []string) (map[string]Value, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty file, or only comments
	}
	if err != nil {
		return nil, wrong("settings are YAML, as in listen: 127.0.0.1:7070", "%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		if root.Tag == "!!null" {
			return nil, nil
		}
		return nil, wrong("write one setting a line, as in listen: 127.0.0.1:7070", "%s: settings are a mapping", place(name, root))
	}
	values := map[string]Value{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			return nil, wrong("write "+nearest(key.Value, known), "%s: there is no setting %q", place(name, key), key.Value)
		case values[key.Value].At != "":
			return nil, wrong("keep one of them", "%s: the setting %s stands at %s already", place(name, key), key.Value, values[key.Value].At)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return nil, wrong("", "%s: the setting %s is one value", place(name, value), key.Value)
		}
		values[key.Value] = Value{value.Value, place(name, value)}
	}
	if err := dec.Decode(&doc); !errors.Is(err, io.EOF) {
		return nil, wrong("", "%s: a file of settings is one document", name)
	}
	return values, nil
}

func place(file string, n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column)
}

// nearest is the known setting that looks most like the word.
func nearest(word string, known []string) string {
	best, least := "", 1<<30
	for _, name := range known {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to change, add or drop to make b from a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}
