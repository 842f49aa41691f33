package expr

// A Kind is what sort of value an expression yields.
type Kind uint8

// The kinds of values.
const (
	KindAny      Kind = iota // unknown until run time
	KindNever                // no value at all: the element of an empty list
	KindNull                 // the JSON null
	KindString               // text
	KindNumber               // an exact decimal
	KindBool                 // true or false
	KindList                 // a list; of is its element
	KindObject               // an object with fields, or of for any name
	KindTime                 // an instant; JSON writes it as RFC 3339 text
	KindDuration             // a length of time; JSON writes it as text such as "3600s"
	KindOptional             // what .? answers; of is the value if there is one
)

// A Type is the static type of a value. It is immutable once made. Only what
// JSON Schema says for certain is known; all else is any.
type Type struct {
	Kind Kind // what sort of value it is

	of     *Type            // element of a list, value of an optional, further fields of an open object
	fields map[string]field // of an object
	open   bool             // the object may have fields beside the named ones
}

// A field is one named member of an object.
type field struct {
	typ      *Type
	optional bool // it may be absent or null
}

// Any is the type of a value of which nothing is known.
func Any() *Type { return &Type{Kind: KindAny} }

// Text is the type of a text.
func Text() *Type { return &Type{Kind: KindString} }

// Number is the type of an exact decimal.
func Number() *Type { return &Type{Kind: KindNumber} }

// Bool is the type of true and false.
func Bool() *Type { return &Type{Kind: KindBool} }

// Time is the type of an instant.
func Time() *Type { return &Type{Kind: KindTime} }

// List is the type of a list with elements of one type.
func List(of *Type) *Type { return &Type{Kind: KindList, of: of} }

// maybe is the type of what .? answers.
func maybe(of *Type) *Type { return &Type{Kind: KindOptional, of: of} }

// Fields is an object of exactly these fields, all present.
func Fields(fields map[string]*Type) *Type {
	out := &Type{Kind: KindObject, fields: make(map[string]field, len(fields))}
	for name, t := range fields {
		out.fields[name] = field{typ: t}
	}
	return out
}

// Open is an object of unknown fields.
func Open() *Type { return &Type{Kind: KindObject, open: true, of: Any()} }

// Words names the type for people, with its article.
func (t *Type) Words() string {
	switch t.Kind {
	case KindNull:
		return "null"
	case KindString:
		return "text"
	case KindNumber:
		return "a number"
	case KindBool:
		return "true or false"
	case KindList:
		return "a list"
	case KindObject:
		return "an object"
	case KindTime:
		return "a time"
	case KindDuration:
		return "a duration"
	case KindOptional:
		return "a value that may be missing"
	}
	return "a value of unknown type"
}

// Unknown reports that nothing can be said before run time.
func (t *Type) Unknown() bool { return t.Kind == KindAny || t.Kind == KindNever }

// Join is the type of a value that is either a or b.
func Join(a, b *Type) *Type {
	switch {
	case a.Kind == KindNever:
		return b
	case b.Kind == KindNever:
		return a
	case a == b:
		return a
	case a.Kind != b.Kind:
		return Any()
	}
	switch a.Kind {
	case KindList, KindOptional:
		return &Type{Kind: a.Kind, of: Join(a.of, b.of)}
	case KindObject:
		return joinObjects(a, b)
	}
	return a
}

// joinObjects keeps the fields of both; one that only one side has is optional.
func joinObjects(a, b *Type) *Type {
	out := &Type{Kind: KindObject, fields: map[string]field{}, open: a.open || b.open}
	if out.open {
		out.of = Any()
	}
	for name, f := range a.fields {
		g, both := b.fields[name]
		switch {
		case both:
			out.fields[name] = field{typ: Join(f.typ, g.typ), optional: f.optional || g.optional}
		case b.open:
			out.fields[name] = field{typ: Any(), optional: true}
		default:
			out.fields[name] = field{typ: f.typ, optional: true}
		}
	}
	for name, g := range b.fields {
		if _, both := a.fields[name]; !both {
			t := g.typ
			if a.open {
				t = Any()
			}
			out.fields[name] = field{typ: t, optional: true}
		}
	}
	return out
}
