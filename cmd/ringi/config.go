package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// configValue is a value of a configuration file and its place.
type configValue struct {
	value string
	at    string // file:line:column
}

// readConfig reads the file that --config or RINGI_CONFIG names: a mapping of
// settings, by their names with underscores. What it does not know is an error,
// so that a slip of the pen is not a default.
func (p *Program) readConfig() (map[string]configValue, error) {
	name := p.settings.file
	if name == "" {
		name = p.Env("RINGI_CONFIG")
	}
	if name == "" {
		return nil, nil
	}
	src, err := os.ReadFile(p.path(name))
	if err != nil {
		return nil, usage("--config and RINGI_CONFIG name a file of settings", "%v", err)
	}
	return parseConfig(name, src)
}

func parseConfig(name string, src []byte) (map[string]configValue, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty file, or only comments
	}
	if err != nil {
		return nil, usage("settings are YAML, as in listen: 127.0.0.1:7070", "%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		if root.Tag == "!!null" {
			return nil, nil
		}
		return nil, usage("write one setting a line, as in listen: 127.0.0.1:7070", "%s: settings are a mapping", placeOf(name, root))
	}
	values := map[string]configValue{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case !slices.ContainsFunc(allSettings(), func(s setting) bool { return s.key() == key.Value }):
			return nil, usage("write "+nearestKey(key.Value), "%s: there is no setting %q", placeOf(name, key), key.Value)
		case values[key.Value].at != "":
			return nil, usage("keep one of them", "%s: the setting %s stands at %s already", placeOf(name, key), key.Value, values[key.Value].at)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return nil, usage("", "%s: the setting %s is one value", placeOf(name, value), key.Value)
		}
		values[key.Value] = configValue{value.Value, placeOf(name, value)}
	}
	if err := dec.Decode(&doc); !errors.Is(err, io.EOF) {
		return nil, usage("", "%s: a file of settings is one document", name)
	}
	return values, nil
}

func placeOf(file string, n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column)
}

// nearestKey is the known setting that looks most like the word.
func nearestKey(word string) string {
	best, least := "", 1<<30
	for _, s := range allSettings() {
		if d := distance(word, s.key()); d < least {
			best, least = s.key(), d
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
