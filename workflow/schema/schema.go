package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// ID is the name by which the schema calls itself.
const ID = "urn:ringi:definition:v1"

// JSON returns the schema as indented JSON. It is the same every time.
func JSON() []byte {
	g := grammar.New()
	m := &maker{grammar: g, names: map[*grammar.Mapping]string{}, defs: object{}}
	root := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", ID}, {"title", "ringi definition, version 1"}}
	root = append(root, m.mapping(g.Definition)...)
	root = append(root, member{"$defs", append(m.defs, shared()...)})
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("schema: texts and numbers that are not JSON: " + err.Error()) //nolint:forbidigo // encoding/json writes them all
	}
	return b.Bytes()
}

// A member is a key of an object with its value.
type member struct {
	key   string
	value any
}

// object is a JSON object that keeps the order of its keys.
type object []member

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encoded(m.key)
		if err != nil {
			return nil, err
		}
		value, err := encoded(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encoded is JSON that shows < and & as they are.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// A maker turns mappings into schemas; those that are used in several places,
// or in themselves, become definitions that others refer to.
type maker struct {
	grammar *grammar.Grammar
	names   map[*grammar.Mapping]string
	defs    object
}

// ref is a reference to a mapping, which is made if it is not yet.
func (m *maker) ref(of *grammar.Mapping) object {
	name, known := m.names[of]
	if !known {
		name = defName(of)
		for _, other := range m.names {
			if other == name {
				name = "inner_" + name
			}
		}
		m.names[of] = name
		at := len(m.defs)
		m.defs = append(m.defs, member{name, nil})
		m.defs[at].value = m.mapping(of)
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// defName makes the name of a definition of what its mapping is called.
func defName(of *grammar.Mapping) string {
	name := strings.TrimPrefix(strings.TrimPrefix(of.What, "a "), "an ")
	return strings.ReplaceAll(name, " ", "_")
}

// mapping is the schema of a mapping with fixed keys.
func (m *maker) mapping(of *grammar.Mapping) object {
	properties, required := object{}, []string{}
	for _, k := range of.Keys {
		properties = append(properties, member{k.Name, m.key(k)})
		if k.Needed {
			required = append(required, k.Name)
		}
	}
	out := object{{"description", of.Doc}, {"type", "object"}, {"additionalProperties", false}, {"properties", properties}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	var all []object
	for _, group := range of.OneOf {
		all = append(all, oneOf(group))
	}
	all = append(all, m.beside(of)...)
	all = append(all, rules(of)...)
	switch of {
	case m.grammar.Step:
		all = append(all, object{{"if", nothingOf("fail", "finish")}, {"then", object{{"required", []string{"id"}}}}})
	case m.grammar.Case:
		all = append(all, object{{"if", has("else")}, {"then", nothingOf("if", "do")}, {"else", object{{"required", []string{"if", "do"}}}}})
	}
	if len(all) > 0 {
		out = append(out, member{"allOf", all})
	}
	return out
}

// key is the schema of a key's value, with what editors show.
func (m *maker) key(k grammar.Key) object {
	out := object{{"description", k.Doc}}
	if k.Default != "" {
		out[0].value = k.Doc + " Default: " + k.Default + "."
		var value any = k.Default
		if k.Value.Kind == grammar.Count || k.Value.Kind == grammar.Factor || k.Value.Kind == grammar.Flag || k.Default == "null" {
			value = json.RawMessage(k.Default)
		}
		out = append(out, member{"default", value})
	}
	return append(out, m.value(k.Value)...)
}

// has is true for objects that have the key.
func has(key string) object { return object{{"required", []string{key}}} }

// nothingOf is true for objects that have none of the keys.
func nothingOf(keys ...string) object {
	each := make([]object, len(keys))
	for i, k := range keys {
		each[i] = has(k)
	}
	return object{{"not", object{{"anyOf", each}}}}
}

// oneOf says that keys exclude each other.
func oneOf(group grammar.OneOf) object {
	var each []object
	for _, k := range group.Keys {
		each = append(each, has(k))
	}
	if !group.Needed {
		each = append(each, nothingOf(group.Keys...))
	}
	return object{{"oneOf", each}}
}

// beside says which keys have a meaning only beside others.
func (m *maker) beside(of *grammar.Mapping) (out []object) {
	seen := map[string]bool{}
	for _, k := range of.Keys {
		partners := strings.Join(k.Beside, " ")
		if len(k.Beside) == 0 || seen[partners] {
			continue
		}
		seen[partners] = true
		var keys []string
		for _, other := range of.Keys {
			if strings.Join(other.Beside, " ") == partners {
				keys = append(keys, other.Name)
			}
		}
		out = append(out, object{{"if", nothingOf(k.Beside...)}, {"then", nothingOf(keys...)}})
	}
	return out
}

// rules are what keys demand of each other.
func rules(of *grammar.Mapping) (out []object) {
	repeats := false
	for _, r := range of.Rules {
		then := object{}
		switch {
		case r.Once:
			repeats = true
			then = object{{"properties", object{{"retry", object{
				{"properties", object{{"attempts", object{{"maximum", 1}}}, {"backoff", false}}},
			}}}}}
		case r.Needs != "":
			then = has(r.Needs)
		case r.Never != "":
			then = nothingOf(r.Never)
		}
		out = append(out, object{{"if", conditions(r.If)}, {"then", then}})
	}
	if repeats { // where there is one attempt, there is no pause
		out = append(out, object{{"properties", object{{"retry", object{
			{"if", object{{"required", []string{"attempts"}}, {"properties", object{{"attempts", object{{"const", 1}}}}}}},
			{"then", object{{"properties", object{{"backoff", false}}}}},
		}}}}})
	}
	return out
}

// conditions is true for objects whose keys are so.
func conditions(all []grammar.Is) object {
	each := make([]object, len(all))
	for i, one := range all {
		each[i] = condition(one)
	}
	if len(each) == 1 {
		return each[0]
	}
	return object{{"allOf", each}}
}

func condition(one grammar.Is) object {
	key, rest, inner := strings.Cut(one.Key, ".")
	if inner {
		one.Key = rest
		return object{{"required", []string{key}}, {"properties", object{{key, append(object{{"type", "object"}}, condition(one)...)}}}}
	}
	if len(one.Words) == 0 && one.Missing {
		return nothingOf(key)
	}
	test := object{}
	if len(one.Words) > 0 {
		values := make([]any, len(one.Words))
		for j, w := range one.Words {
			values[j] = w
			if w == "true" || w == "false" {
				values[j] = w == "true"
			}
		}
		test = object{{"properties", object{{key, object{{"enum", values}}}}}}
	}
	if !one.Missing {
		test = append(object{{"required", []string{key}}}, test...)
	}
	return test
}

func defRef(name string) object { return object{{"$ref", "#/$defs/" + name}} }

// value is the schema of a value.
func (m *maker) value(v grammar.Value) object {
	switch v.Kind {
	case grammar.Version:
		return object{{"const", "v1"}}
	case grammar.Word:
		return object{{"enum", v.Words}}
	case grammar.Flag:
		return object{{"type", "boolean"}}
	case grammar.Count:
		return object{{"type", "integer"}, {"minimum", v.Low}, {"maximum", v.High}}
	case grammar.Factor:
		return object{{"type", "number"}, {"minimum", 1}, {"maximum", grammar.MaxFactor}}
	case grammar.Identifier:
		return identifier(v)
	case grammar.Map:
		return m.ref(v.Of)
	case grammar.Steps:
		return m.list(m.ref(v.Of), v)
	case grammar.List:
		return m.list(m.value(*v.Item), v)
	case grammar.Named:
		return m.named(v)
	case grammar.Any:
		return object{}
	}
	if name, ok := sharedName(v.Kind); ok {
		return defRef(name)
	}
	panic(fmt.Sprintf("schema: the grammar has a kind of value that is new here: %d", v.Kind)) //nolint:forbidigo // found by every test
}

func (m *maker) list(item object, v grammar.Value) object {
	out := object{{"type", "array"}, {"items", item}}
	if !v.MayBeNone {
		out = append(out, member{"minItems", 1})
	}
	if v.Most > 0 {
		out = append(out, member{"maxItems", v.Most})
	}
	return out
}

func (m *maker) named(v grammar.Value) object {
	names := defRef("name")
	switch v.Names {
	case grammar.Identifier:
		names = identifier(v)
	case grammar.Header:
		names = object{{"pattern", headerPattern}}
	}
	out := object{{"type", "object"}, {"propertyNames", names}, {"additionalProperties", m.value(*v.Item)}}
	if !v.MayBeNone {
		out = append(out, member{"minProperties", 1})
	}
	if v.Most > 0 {
		out = append(out, member{"maxProperties", v.Most})
	}
	return out
}

func identifier(v grammar.Value) object {
	out := object{{"type", "string"}, {"pattern", "^[a-z][a-z0-9_]{0,63}$"}}
	switch {
	case len(v.Reserved) > 0:
		out = append(out, member{"not", object{{"enum", v.Reserved}}})
	case v.Kept != "":
		out = append(out, member{"not", object{{"pattern", "^" + v.Kept}}})
	}
	return out
}
