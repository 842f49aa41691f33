package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/workflow/expr"
)

// A Definition is a feed as a file has it. Texts may have expressions, ${ … }, about
// the message: message.id, .type, .key, .headers and .data.
type Definition struct {
	// Name is part of what the broker and the inbox remember, so it must not change.
	Name string `yaml:"name"`

	// From is the source; Forms says how one is written. Without a group of its own it
	// has "ringi-" and the name.
	From string `yaml:"from"`

	// When is a condition; messages for which it does not hold are passed over. Empty
	// takes all.
	When string `yaml:"when"`

	// Event is the name of the event that the message becomes. Empty is the message's
	// own type, unless Start is set.
	Event string `yaml:"event"`

	// Start is the definition of which the message starts a run; Version 0 is the
	// latest.
	Start   string `yaml:"start"`
	Version int    `yaml:"version"`

	// Key is the key of the event, the aggregate id of the message if it is empty; or
	// the start key, else the definition's start.key, else the id of the message.
	Key string `yaml:"key"`

	// Data is the data of the event, Input the input of the run; the zero value is the
	// payload.
	Data  yaml.Node `yaml:"data"`
	Input yaml.Node `yaml:"input"`

	// ID is the id by which ringi knows repeats; empty is the message's own. Two feeds
	// that make two events of one message need two.
	ID string `yaml:"id"`

	// Attempts is how often ringi may refuse a message before it is set aside; 0 is
	// inbox.DefaultAttempts, negative never sets one aside.
	Attempts int `yaml:"attempts"`

	rule *rule
}

var feedName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Parse reads a file of feeds. Nothing is opened. The error names the file, the line and
// the column; where the text is not YAML, the line that its reader tells.
func Parse(file string, text []byte) ([]Definition, error) {
	list, err := parse(text)
	var p *placed
	switch {
	case errors.As(err, &p):
		return nil, fmt.Errorf("%s:%d:%d: %w", file, p.line, p.column, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

func parse(text []byte) ([]Definition, error) {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, at(&more, errors.New("a second document begins here, and nothing of it would be read; write all feeds under one key feeds"))
	}
	nodes, err := feedNodes(&document)
	if err != nil {
		return nil, err
	}
	list, seen := make([]Definition, len(nodes)), map[string]bool{}
	for i, n := range nodes {
		d := &list[i]
		if err := decodeFeed(n, d); err != nil {
			return nil, err
		}
		if !feedName.MatchString(d.Name) {
			return nil, at(fieldOf(n, "name"), fmt.Errorf("the name %q of feed %d is not one: small letters, digits, - and _, beginning with a letter", d.Name, i+1))
		}
		if seen[d.Name] {
			return nil, at(fieldOf(n, "name"), fmt.Errorf("two feeds are called %s", d.Name))
		}
		seen[d.Name] = true
		if err := d.compile(n); err != nil {
			return nil, fmt.Errorf("feed %s: %w", d.Name, at(n, err))
		}
	}
	return list, nil
}

// compile checks the feed, which stands in n, and reads its expressions.
func (d *Definition) compile(n *yaml.Node) (err error) {
	r := &rule{definition: d.Start, version: d.Version}
	if err := d.check(n); err != nil {
		return err
	}
	scope := &expr.Scope{Message: messageType()}
	if d.When != "" {
		var problems []expr.Problem
		if r.when, problems = expr.CompileCondition(d.When, scope); len(problems) > 0 {
			return at(fieldOf(n, "when"), problem("when", problems))
		}
	}
	for _, f := range []struct {
		name, text string
		into       **expr.Value
	}{{"event", d.Event, &r.event}, {"key", d.Key, &r.key}, {"id", d.ID, &r.id}} {
		if f.text == "" {
			continue
		}
		if *f.into, _, err = compileText(f.name, f.text, scope); err != nil {
			return at(fieldOf(n, f.name), err)
		}
	}
	data, name := &d.Data, "data"
	if !d.Input.IsZero() {
		data, name = &d.Input, "input"
	}
	if !data.IsZero() {
		if r.data, _, err = compileNode(name, data, scope); err != nil {
			return err
		}
	}
	d.rule = r
	return nil
}

// check refuses what does not go together.
func (d *Definition) check(n *yaml.Node) error {
	switch {
	case d.From == "":
		return fmt.Errorf("say where messages come from, from: %s", Forms)
	case d.Start != "" && d.Event != "":
		return at(fieldOf(n, "start"), errors.New("a message becomes an event or starts a run, not both: make two feeds of it"))
	case d.Start == "" && !d.Input.IsZero():
		return at(fieldOf(n, "input"), errors.New("input and version are for start; an event has data"))
	case d.Start == "" && d.Version != 0:
		return at(fieldOf(n, "version"), errors.New("input and version are for start; an event has data"))
	case d.Start != "" && !d.Data.IsZero():
		return at(fieldOf(n, "data"), errors.New("data is for an event; a start has input"))
	case d.Version < 0:
		return at(fieldOf(n, "version"), fmt.Errorf("there is no version %d", d.Version))
	}
	return nil
}

func compileText(name, text string, scope *expr.Scope) (*expr.Value, *expr.Type, error) {
	v, t, problems := expr.CompileText(text, scope)
	if len(problems) > 0 {
		return nil, nil, problem(name, problems)
	}
	return v, t, nil
}

// compileNode reads a value with expressions inside.
func compileNode(name string, n *yaml.Node, scope *expr.Scope) (*expr.Value, *expr.Type, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return compileNode(name, n.Alias, scope)
	case yaml.SequenceNode:
		vals, types := make([]*expr.Value, len(n.Content)), make([]*expr.Type, len(n.Content))
		for i, one := range n.Content {
			var err error
			if vals[i], types[i], err = compileNode(name, one, scope); err != nil {
				return nil, nil, err
			}
		}
		v, t := expr.ListOf(vals, types)
		return v, t, nil
	case yaml.MappingNode:
		var keys []string
		var vals []*expr.Value
		var types []*expr.Type
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, t, err := compileNode(name+"."+n.Content[i].Value, n.Content[i+1], scope)
			if err != nil {
				return nil, nil, err
			}
			keys, vals, types = append(keys, n.Content[i].Value), append(vals, v), append(types, t)
		}
		v, t := expr.Object(keys, vals, types)
		return v, t, nil
	}
	if n.ShortTag() == "!!str" {
		v, t, err := compileText(name, n.Value, scope)
		return v, t, at(n, err)
	}
	raw, err := plain(n)
	if err != nil {
		return nil, nil, at(n, fmt.Errorf("%s: %w", name, err))
	}
	return expr.Constant(raw), expr.Any(), nil
}

// plain is a number, true, false or null as JSON.
func plain(n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!null":
		return []byte("null"), nil
	case "!!bool":
		return []byte(strings.ToLower(n.Value)), nil
	case "!!int", "!!float":
		return []byte(n.Value), nil
	}
	return nil, fmt.Errorf("%q is no value of JSON; write it as a text", n.Value)
}

func problem(name string, problems []expr.Problem) error {
	text := problems[0].Message
	if problems[0].Suggestion != "" {
		text += "; write " + problems[0].Suggestion
	}
	return fmt.Errorf("%s: %s", name, text)
}

// attempts is how often a message is tried.
func (d *Definition) attempts() int {
	if d.Attempts == 0 {
		return inbox.DefaultAttempts
	}
	return d.Attempts
}
