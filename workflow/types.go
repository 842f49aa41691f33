package workflow

// A kind is what sort of value an expression yields.
type kind uint8

const (
	kindAny      kind = iota // unknown until run time
	kindNever                // no value at all: the element of an empty list
	kindNull                 // the JSON null
	kindString               // text
	kindNumber               // an exact decimal
	kindBool                 // true or false
	kindList                 // a list; of is its element
	kindObject               // an object with fields, or of for any name
	kindTime                 // an instant; JSON writes it as RFC 3339 text
	kindDuration             // a length of time; JSON writes it as text such as "3600s"
	kindOptional             // what .? answers; of is the value if there is one
)

// A typ is the static type of a value. It is immutable once made. Only what
// JSON Schema says for certain is known; all else is any.
type typ struct {
	kind   kind
	of     *typ             // element of a list, value of an optional, further fields of an open object
	fields map[string]field // of an object
	open   bool             // the object may have fields beside the named ones
}

// A field is one named member of an object.
type field struct {
	typ      *typ
	optional bool // it may be absent or null
}

func anyTyp() *typ             { return &typ{kind: kindAny} }
func textTyp() *typ            { return &typ{kind: kindString} }
func numberTyp() *typ          { return &typ{kind: kindNumber} }
func boolTyp() *typ            { return &typ{kind: kindBool} }
func timeTyp() *typ            { return &typ{kind: kindTime} }
func listTyp(of *typ) *typ     { return &typ{kind: kindList, of: of} }
func optionalTyp(of *typ) *typ { return &typ{kind: kindOptional, of: of} }

// objectTyp is an object of exactly these fields, all present.
func objectTyp(fields map[string]*typ) *typ {
	out := &typ{kind: kindObject, fields: make(map[string]field, len(fields))}
	for name, t := range fields {
		out.fields[name] = field{typ: t}
	}
	return out
}

// openTyp is an object of unknown fields.
func openTyp() *typ { return &typ{kind: kindObject, open: true, of: anyTyp()} }

// words names the type for people, with its article.
func (t *typ) words() string {
	switch t.kind {
	case kindNull:
		return "null"
	case kindString:
		return "text"
	case kindNumber:
		return "a number"
	case kindBool:
		return "true or false"
	case kindList:
		return "a list"
	case kindObject:
		return "an object"
	case kindTime:
		return "a time"
	case kindDuration:
		return "a duration"
	case kindOptional:
		return "a value that may be missing"
	}
	return "a value of unknown type"
}

// unknown reports that nothing can be said before run time.
func (t *typ) unknown() bool { return t.kind == kindAny || t.kind == kindNever }

// join is the type of a value that is either a or b.
func join(a, b *typ) *typ {
	switch {
	case a.kind == kindNever:
		return b
	case b.kind == kindNever:
		return a
	case a == b:
		return a
	case a.kind != b.kind:
		return anyTyp()
	}
	switch a.kind {
	case kindList, kindOptional:
		return &typ{kind: a.kind, of: join(a.of, b.of)}
	case kindObject:
		return joinObjects(a, b)
	}
	return a
}

// joinObjects keeps the fields of both; one that only one side has is optional.
func joinObjects(a, b *typ) *typ {
	out := &typ{kind: kindObject, fields: map[string]field{}, open: a.open || b.open}
	if out.open {
		out.of = anyTyp()
	}
	for name, f := range a.fields {
		g, both := b.fields[name]
		switch {
		case both:
			out.fields[name] = field{typ: join(f.typ, g.typ), optional: f.optional || g.optional}
		case b.open:
			out.fields[name] = field{typ: anyTyp(), optional: true}
		default:
			out.fields[name] = field{typ: f.typ, optional: true}
		}
	}
	for name, g := range b.fields {
		if _, both := a.fields[name]; !both {
			t := g.typ
			if a.open {
				t = anyTyp()
			}
			out.fields[name] = field{typ: t, optional: true}
		}
	}
	return out
}

// maxSchemaDepth bounds the walk over a schema that refers to itself; deeper
// parts are any.
const maxSchemaDepth = 16

// typ returns the static type of the documents that the schema accepts. A
// keyword that it does not understand makes the type wider, never wrong.
func (s *Schema) typ() *typ {
	if s == nil {
		return anyTyp()
	}
	t, null := schemaTyp(s.document, s.document, 0)
	if null {
		return anyTyp()
	}
	return t
}

// schemaTyp reads one schema and reports whether null is accepted beside the type.
func schemaTyp(root, node any, depth int) (t *typ, null bool) {
	o, ok := node.(*object)
	if !ok || depth > maxSchemaDepth {
		return anyTyp(), false
	}
	if ref, ok := o.text("$ref"); ok {
		if target, found := localRef(root, ref); found && len(o.keys) == 1 {
			return schemaTyp(root, target, depth+1)
		}
		return anyTyp(), false
	}
	name, null, ok := typeName(o)
	if !ok {
		return anyTyp(), false
	}
	switch name {
	case "string":
		return textTyp(), null
	case "number", "integer":
		return numberTyp(), null
	case "boolean":
		return boolTyp(), null
	case "array":
		return listTyp(itemsTyp(root, o, depth)), null
	case "object":
		return fieldsTyp(root, o, depth), null
	}
	return anyTyp(), null
}

// typeName reads "type", or what enum and const imply, apart from null.
func typeName(o *object) (name string, null, ok bool) {
	var names []any
	if v, found := o.get("type"); found {
		if list, isList := v.([]any); isList {
			names = list
		} else {
			names = []any{v}
		}
	} else if v, found := o.get("const"); found {
		names = []any{jsonTypeName(v)}
	} else if list, found := o.get("enum"); found {
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
	case number:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	}
	return "object"
}

func itemsTyp(root any, o *object, depth int) *typ {
	items, found := o.get("items")
	if _, tuple := o.get("prefixItems"); !found || tuple {
		return anyTyp()
	}
	t, null := schemaTyp(root, items, depth+1)
	if null {
		return anyTyp()
	}
	return t
}

func fieldsTyp(root any, o *object, depth int) *typ {
	out := &typ{kind: kindObject, fields: map[string]field{}}
	required := map[string]bool{}
	if list, found := o.get("required"); found {
		names, _ := list.([]any)
		for _, n := range names {
			s, _ := n.(string)
			required[s] = true
		}
	}
	properties, found := o.get("properties")
	if p, ok := properties.(*object); ok {
		for i, name := range p.keys {
			t, null := schemaTyp(root, p.vals[i], depth+1)
			out.fields[name] = field{typ: t, optional: null || !required[name]}
		}
	}
	for name := range required {
		if _, known := out.fields[name]; !known && name != "" {
			out.fields[name] = field{typ: anyTyp()}
		}
	}
	out.open = !found || openObject(o)
	if out.open {
		out.of = anyTyp()
	}
	return out
}

// openObject reports whether the schema invites fields that it does not name.
// JSON Schema allows them unless told otherwise; for finding a misspelt field
// an object counts as closed unless the schema speaks of further ones.
func openObject(o *object) bool {
	for _, key := range [...]string{"patternProperties", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "propertyNames", "unevaluatedProperties", "$dynamicRef"} {
		if _, found := o.get(key); found {
			return true
		}
	}
	more, found := o.get("additionalProperties")
	return found && more != false
}

// localRef follows a reference such as #/$defs/name.
func localRef(root any, ref string) (any, bool) {
	path, ok := cutPointer(ref)
	if !ok {
		return nil, false
	}
	node := root
	for _, token := range path {
		o, ok := node.(*object)
		if !ok {
			return nil, false
		}
		if node, ok = o.get(token); !ok {
			return nil, false
		}
	}
	return node, true
}

// text returns a member that is a string.
func (o *object) text(key string) (string, bool) {
	v, _ := o.get(key)
	s, ok := v.(string)
	return s, ok
}
