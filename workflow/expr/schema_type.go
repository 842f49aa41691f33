package expr

import (
	"strings"

	"github.com/ringiflow/ringi/workflow/exact"
)

// maxSchemaDepth bounds the walk over a schema that refers to itself; deeper
// parts are any.
const maxSchemaDepth = 16

// OfSchema returns the static type of the documents that a JSON Schema, a tree
// as exact.Read makes it, accepts. A keyword that it does not understand makes
// the type wider, never wrong; a schema that is nil or true is any.
func OfSchema(schema any) *Type {
	t, null := schemaTyp(schema, schema, 0)
	if null {
		return Any()
	}
	return t
}

// schemaTyp reads one schema and reports whether null is accepted beside the type.
func schemaTyp(root, node any, depth int) (t *Type, null bool) {
	o, ok := node.(*exact.Object)
	if !ok || depth > maxSchemaDepth {
		return Any(), false
	}
	if ref, ok := text(o, "$ref"); ok {
		if target, found := localRef(root, ref); found && len(o.Keys) == 1 {
			return schemaTyp(root, target, depth+1)
		}
		return Any(), false
	}
	name, null, ok := typeName(o)
	if !ok {
		return Any(), false
	}
	switch name {
	case "string":
		return Text(), null
	case "number", "integer":
		return Number(), null
	case "boolean":
		return Bool(), null
	case "array":
		return List(itemsTyp(root, o, depth)), null
	case "object":
		return fieldsTyp(root, o, depth), null
	}
	return Any(), null
}

// typeName reads "type", or what enum and const imply, apart from null.
func typeName(o *exact.Object) (name string, null, ok bool) {
	var names []any
	if v, found := o.Get("type"); found {
		if list, isList := v.([]any); isList {
			names = list
		} else {
			names = []any{v}
		}
	} else if v, found := o.Get("const"); found {
		names = []any{jsonTypeName(v)}
	} else if list, found := o.Get("enum"); found {
		values, _ := list.([]any)
		for _, v := range values {
			names = append(names, jsonTypeName(v))
		}
	}
	for _, n := range names {
		s, _ := n.(string)
		if s == "integer" {
			s = "number"
		}
		switch {
		case s == "null":
			null = true
		case name == "" || name == s:
			name = s
		default:
			return "", false, false
		}
	}
	return name, null, name != ""
}

func jsonTypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case exact.Number:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	}
	return "object"
}

func itemsTyp(root any, o *exact.Object, depth int) *Type {
	items, found := o.Get("items")
	if _, tuple := o.Get("prefixItems"); !found || tuple {
		return Any()
	}
	t, null := schemaTyp(root, items, depth+1)
	if null {
		return Any()
	}
	return t
}

func fieldsTyp(root any, o *exact.Object, depth int) *Type {
	out := &Type{Kind: KindObject, fields: map[string]field{}}
	required := map[string]bool{}
	if list, found := o.Get("required"); found {
		names, _ := list.([]any)
		for _, n := range names {
			s, _ := n.(string)
			required[s] = true
		}
	}
	properties, found := o.Get("properties")
	if p, ok := properties.(*exact.Object); ok {
		for i, name := range p.Keys {
			t, null := schemaTyp(root, p.Vals[i], depth+1)
			out.fields[name] = field{typ: t, optional: null || !required[name]}
		}
	}
	for name := range required {
		if _, known := out.fields[name]; !known && name != "" {
			out.fields[name] = field{typ: Any()}
		}
	}
	out.open = !found || openObject(o)
	if out.open {
		out.of = Any()
	}
	return out
}

// openObject reports whether the schema invites fields that it does not name.
// JSON Schema allows them unless told otherwise; for finding a misspelt field
// an object counts as closed unless the schema speaks of further ones.
func openObject(o *exact.Object) bool {
	for _, key := range [...]string{
		"patternProperties", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "propertyNames", "unevaluatedProperties", "$dynamicRef",
	} {
		if _, found := o.Get(key); found {
			return true
		}
	}
	more, found := o.Get("additionalProperties")
	return found && more != false
}

// localRef follows a reference such as #/$defs/name.
func localRef(root any, ref string) (any, bool) {
	path, ok := CutPointer(ref)
	if !ok {
		return nil, false
	}
	node := root
	for _, token := range path {
		o, ok := node.(*exact.Object)
		if !ok {
			return nil, false
		}
		if node, ok = o.Get(token); !ok {
			return nil, false
		}
	}
	return node, true
}

// text returns a member that is a string.
func text(o *exact.Object, key string) (string, bool) {
	v, _ := o.Get(key)
	s, ok := v.(string)
	return s, ok
}

// CutPointer splits the fragment of a local reference into its tokens.
func CutPointer(ref string) ([]string, bool) {
	if ref == "#" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.Contains(rest, "%") {
		return nil, false
	}
	tokens := strings.Split(rest, "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens, true
}
