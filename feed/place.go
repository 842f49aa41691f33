package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// placed is an error with the place in the file, from 1, that it is about.
type placed struct {
	line, column int
	error
}

func (p *placed) Unwrap() error { return p.error }

// at gives an error its place, unless it has a nearer one.
func at(n *yaml.Node, err error) error {
	var p *placed
	if err == nil || errors.As(err, &p) || n.Line == 0 {
		return err
	}
	return &placed{n.Line, n.Column, err}
}

// feedKeys are the keys of a feed, as the page about brokers lists them.
const feedKeys = "name, from, when, event, start, version, key, data, input, id, attempts"

// errNoFeed is about a file in which nothing is fed.
var errNoFeed = errors.New("there is no feed in it; write feeds: and a list of them, each with name and from")

// feedNodes finds the feeds in a document.
func feedNodes(document *yaml.Node) ([]*yaml.Node, error) {
	if len(document.Content) == 0 {
		return nil, errNoFeed
	}
	top := document.Content[0]
	if err := checkKeys(top, "feeds", "the file"); err != nil {
		return nil, err
	}
	list := fieldOf(top, "feeds")
	switch {
	case list == top || list.ShortTag() == "!!null", list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		return nil, at(list, errNoFeed)
	case list.Kind != yaml.SequenceNode:
		return nil, at(list, errors.New("feeds: is not a list; begin each feed with a dash"))
	}
	nodes := make([]*yaml.Node, len(list.Content))
	for i, n := range list.Content {
		if nodes[i] = resolved(n); nodes[i].Kind != yaml.MappingNode {
			return nil, at(n, fmt.Errorf("feed %d is not a feed; write its keys name and from", i+1))
		}
	}
	return nodes, nil
}

// decodeFeed reads a feed key by key, so that an error has the place of its value.
func decodeFeed(n *yaml.Node, d *Definition) error {
	if err := checkKeys(n, feedKeys, "a feed"); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		one := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{key, value}}
		if err := one.Decode(d); err != nil {
			kind := "a text"
			if key.Value == "version" || key.Value == "attempts" {
				kind = "a whole number"
			}
			return at(value, fmt.Errorf("%s: this is not %s", key.Value, kind))
		}
	}
	return nil
}

// checkKeys refuses keys that are not known, and those that are written twice.
func checkKeys(n *yaml.Node, known, where string) error {
	if n.Kind != yaml.MappingNode {
		if n.ShortTag() == "!!null" {
			return at(n, errNoFeed)
		}
		return at(n, fmt.Errorf("%s is not written as keys with values; it knows %s", where, known))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(strings.Split(known, ", "), key.Value):
			return at(key, fmt.Errorf("%s has no key %q; it knows %s", where, key.Value, known))
		case seen[key.Value]:
			return at(key, fmt.Errorf("the key %s is there twice; leave one", key.Value))
		}
		seen[key.Value] = true
	}
	return nil
}

// fieldOf is the value of a key, or the mapping itself when it has none.
func fieldOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return n
}

// resolved is the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
