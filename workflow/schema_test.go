package workflow_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// inputSchema returns the compiled input schema of a definition that has it.
func inputSchema(t *testing.T, schema string) (*workflow.Schema, []workflow.Problem) {
	t.Helper()
	doc := `{"ringi":"v1","name":"n","input":` + schema + `,"steps":[{"id":"pause","wait":{"for":"1h"}}]}`
	d, problems := workflow.Parse("n.json", []byte(doc))
	if d == nil {
		return nil, problems
	}
	return d.Input, problems
}

// W3
func TestSchemaChecksDocuments(t *testing.T) {
	s, problems := inputSchema(t, `{"type":"object","required":["id","lines"],"properties":{
		"id":{"type":"string"},"amount":{"type":"number","maximum":10.5},"count":{"type":"integer"},
		"lines":{"type":"array","items":{"$ref":"#/$defs/line"}}},
		"$defs":{"line":{"type":"object","required":["a/b"],"properties":{"a/b":{"type":"number","multipleOf":0.01}}}}}`)
	if s == nil {
		t.Fatal(problems)
	}
	for _, test := range []struct {
		doc, path, message string // path and message of the refusal; "" accepts
	}{
		{`{"id":"x","lines":[]}`, "", ""},
		{`{"id":"x","lines":[{"a/b":19.99}],"amount":10.50,"count":3.0,"more":null}`, "", ""},
		{`{"id":"x"}`, "", "lines"},
		{`{"id":1,"lines":[]}`, "/id", "string"},
		{`{"id":"x","lines":[{"a/b":1},{"a/b":"y"}]}`, "/lines/1/a~1b", "number"},
		{`{"id":"x","lines":[{"a/b":0.001}]}`, "/lines/0/a~1b", "0.01"},
		{`{"id":"x","lines":[],"amount":10.50000000000000000000000001}`, "/amount", "10.5"},
		{`{"id":"x","lines":[],"count":9007199254740993.5}`, "/count", "integer"},
		{`[]`, "", "object"},
		{`{"id":"x","id":"y","lines":[]}`, "", "stands twice"},
		{`{"id":"x","lines":[],"amount":12345678901234567890123456789012345}`, "", "34 digits"},
		{`{"id":"x","lines":[]`, "", "JSON"},
	} {
		err := s.Check(json.RawMessage(test.doc))
		if test.message == "" {
			if err != nil {
				t.Errorf("%s: %v", test.doc, err)
			}
			continue
		}
		var invalid *workflow.SchemaError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v", test.doc, err)
			continue
		}
		if invalid.Path != test.path || !strings.Contains(invalid.Message, test.message) {
			t.Errorf("%s: got %q at %q, want %q at %q", test.doc, invalid.Message, invalid.Path, test.message, test.path)
		}
	}
}

func TestNoSchemaAcceptsEveryDocumentThatCanBeKept(t *testing.T) {
	var s *workflow.Schema
	if err := s.Check(json.RawMessage(`{"any":[1,null]}`)); err != nil {
		t.Error(err)
	}
	if err := s.Check(json.RawMessage(`{"a":1,"a":2}`)); err == nil {
		t.Error("a repeated key was accepted")
	}
	if s.Source() != nil {
		t.Errorf("source %s", s.Source())
	}
}

// Checking must not depend on the network, on files, or on when it happens.
func TestSchemasThatReachOutOfTheFileAreRefused(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"https://example.com/schema.json"}`,
		`{"$ref":"file:///etc/hosts"}`,
		`{"properties":{"a":{"$ref":"other.json#/a"}}}`,
		`{"$ref":"#/$defs/missing"}`,
		`{"$schema":"https://example.com/my-draft"}`,
		`{"type":"nonsense"}`,
		`{"properties":{"a":{"minimum":"x"}}}`,
		`{"pattern":"("}`,
		`[]`,
	} {
		if s, problems := inputSchema(t, schema); s != nil || len(problems) == 0 {
			t.Errorf("%s was accepted", schema)
		}
	}
}

func TestASchemaIsKeptInCanonicalForm(t *testing.T) {
	s, problems := inputSchema(t, `{"type":"object", "properties":{"b":{"minimum":1.0},"a":true}}`)
	if s == nil {
		t.Fatal(problems)
	}
	if want := `{"properties":{"a":true,"b":{"minimum":1}},"type":"object"}`; string(s.Source()) != want {
		t.Errorf("got %s, want %s", s.Source(), want)
	}
}
