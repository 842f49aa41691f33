package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// A Schema is a compiled JSON Schema, draft 2020-12. It is immutable and may be
// used by any number of goroutines. A nil *Schema accepts every document.
type Schema struct {
	source   json.RawMessage
	document any
	compiled *jsonschema.Schema
}

// A SchemaError says what is wrong with a document, and where.
type SchemaError struct {
	Path    string // JSON pointer into the document; "" is the whole
	Message string // what is expected there, in words
}

// Error returns place and message in one line.
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Source returns the schema in canonical JSON, or nil for a nil schema.
func (s *Schema) Source() json.RawMessage {
	if s == nil {
		return nil
	}
	return s.source
}

// Check reports whether doc satisfies the schema. The error is a *SchemaError
// with the first place that does not, in the order of the document's keys. A
// document that Canonical refuses is refused here too, with or without schema.
func (s *Schema) Check(doc json.RawMessage) error {
	v, err := exact.Read(string(doc))
	if err != nil {
		return &SchemaError{Message: err.Error()}
	}
	if s == nil {
		return nil
	}
	if err := s.compiled.Validate(plainTree(v)); err != nil {
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			return schemaError(invalid)
		}
		return &SchemaError{Message: err.Error()}
	}
	return nil
}

// schemaAddress is the name under which a schema is compiled; nothing is ever
// fetched from it.
const schemaAddress = "schema:///"

// noLoader refuses every reference to a document outside the schema: checking
// must not depend on the network or on files.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s: only references inside the schema, such as #/$defs/name, are allowed", url)
}

// newSchema compiles a schema. The error names the place with a JSON pointer.
func newSchema(doc json.RawMessage) (*Schema, error) {
	v, err := exact.Read(string(doc))
	if err != nil {
		return nil, &SchemaError{Message: err.Error()}
	}
	switch v.(type) {
	case *exact.Object, bool:
	default:
		return nil, &SchemaError{Message: "a schema is an object, or true or false"}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaAddress, plainTree(v)); err != nil {
		return nil, &SchemaError{Message: compileMessage(err)}
	}
	compiled, err := c.Compile(schemaAddress)
	if err != nil {
		var meta *jsonschema.SchemaValidationError
		var invalid *jsonschema.ValidationError
		if errors.As(err, &meta) && errors.As(meta.Err, &invalid) {
			return nil, schemaError(invalid)
		}
		return nil, &SchemaError{Message: compileMessage(err)}
	}
	return &Schema{source: exact.Append(nil, v), document: v, compiled: compiled}, nil
}

func compileMessage(err error) string {
	return strings.ReplaceAll(err.Error(), schemaAddress, "")
}

// schemaError takes the first leaf of a tree of violations: the deepest cause
// is what the author of the document can act on.
func schemaError(e *jsonschema.ValidationError) *SchemaError {
	for len(e.Causes) > 0 {
		first := e.Causes[0]
		for _, c := range e.Causes[1:] {
			if slices.Compare(c.InstanceLocation, first.InstanceLocation) < 0 {
				first = c
			}
		}
		e = first
	}
	return &SchemaError{Path: pointer(e.InstanceLocation), Message: e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
}

// pointer writes a JSON pointer (RFC 6901).
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return b.String()
}

// plainTree turns a tree of readJSON into the one that the schema library reads.
func plainTree(v any) any {
	switch x := v.(type) {
	case exact.Number:
		return json.Number(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = plainTree(e)
		}
		return out
	case *exact.Object:
		out := make(map[string]any, len(x.Keys))
		for i, key := range x.Keys {
			out[key] = plainTree(x.Vals[i])
		}
		return out
	}
	return v
}

// typ is the static type of the documents that the schema accepts; of a nil
// schema it is any.
func (s *Schema) typ() *typ {
	if s == nil {
		return anyTyp()
	}
	return expr.OfSchema(s.document)
}
