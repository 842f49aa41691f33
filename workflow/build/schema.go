package build

// A Schema describes values in JSON Schema. The zero value takes every value
// and leaves the key out.
type Schema struct{ doc map[string]any }

// JSONSchema is a schema as its JSON has it, for what the functions of this
// package do not make.
func JSONSchema(doc map[string]any) Schema { return Schema{doc} }

// String takes texts.
func String() Schema { return kind("string") }

// Number takes numbers.
func Number() Schema { return kind("number") }

// Integer takes whole numbers.
func Integer() Schema { return kind("integer") }

// Boolean takes true and false.
func Boolean() Schema { return kind("boolean") }

func kind(name string) Schema { return Schema{map[string]any{"type": name}} }

// List takes lists of such values.
func List(item Schema) Schema {
	return Schema{map[string]any{"type": "array", "items": item.value()}}
}

// OneOf takes these texts.
func OneOf(words ...string) Schema { return kind("string").With("enum", words) }

// With adds a keyword to a copy of the schema.
func (s Schema) With(keyword string, value any) Schema {
	doc := map[string]any{keyword: value}
	for k, v := range s.doc {
		if k != keyword {
			doc[k] = v
		}
	}
	return Schema{doc}
}

// value is the schema in the document; one that takes everything is true.
func (s Schema) value() any {
	if s.doc == nil {
		return true
	}
	return s.doc
}

// A Field is a field of an object; see Need and May.
type Field struct {
	name   string
	schema Schema
	needed bool
}

// Need is a field that must be there.
func Need(name string, s Schema) Field { return Field{name, s, true} }

// May is a field that may be missing. Expressions read it with .? and orValue.
func May(name string, s Schema) Field { return Field{name, s, false} }

// Object takes objects with these fields, and perhaps others.
func Object(fields ...Field) Schema {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		properties[f.name] = f.schema.value()
		if f.needed {
			required = append(required, f.name)
		}
	}
	out := kind("object").With("properties", properties)
	if len(required) > 0 {
		out = out.With("required", required)
	}
	return out
}
