package expr

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/ringiflow/ringi/workflow/exact"
)

// A Value is a part of a definition that yields a JSON value for a run: a
// constant, one expression, a text with expressions in it, or an object or list
// of such. It is compiled and immutable; any number of goroutines may evaluate
// it at once.
type Value struct {
	source   string
	constant json.RawMessage // set exactly when nothing has to be computed
	whole    *program        // the value is one expression
	parts    []part          // the value is a text
	names    []string        // the value is an object; in canonical order
	values   []*Value        // members of the object, or elements of the list
	list     bool
}

// A part of a text is either fixed or an expression.
type part struct {
	text string
	expr *program
}

// Constant reports whether the value is the same in every run.
func (v *Value) Constant() bool { return v.constant != nil }

// Source returns the value as the definition has it: the text with its ${ },
// or JSON for a constant, an object or a list.
func (v *Value) Source() string { return v.source }

// Eval returns what the value yields in env, as canonical JSON: compact, keys
// in order, numbers exact and without exponent. One whole expression keeps its
// type; a text with expressions is text. Eval only reads env and costs at most
// 10,000 units of work per expression. The error is an *EvalError: a missing
// field, a value of the wrong kind, a number that cannot be exact, too much
// work. It never yields a silent null.
func (v *Value) Eval(env *Env) (json.RawMessage, error) {
	if v.constant != nil {
		return slices.Clone(v.constant), nil
	}
	out, err := v.append(nil, &frame{env: env})
	if err != nil {
		return nil, err
	}
	if tooNested(out) {
		return nil, &EvalError{Expression: v.source, Message: "the value is nested deeper than 64"}
	}
	return out, nil
}

// Text returns what the value yields in env as a text: text as it is, numbers
// in their shortest exact form, objects and lists as compact JSON. Null is an
// error; all errors are *EvalError.
func (v *Value) Text(env *Env) (string, error) {
	f := &frame{env: env}
	if v.whole != nil {
		return v.whole.asText(f)
	}
	if v.constant == nil && v.names == nil && !v.list {
		return v.Join(f)
	}
	out, err := v.Eval(env)
	if err != nil {
		return "", err
	}
	return jsonText(out, v.source)
}

func jsonText(doc json.RawMessage, source string) (string, error) {
	tree, err := exact.Read(string(doc))
	if err != nil {
		return "", &EvalError{Expression: source, Message: err.Error()}
	}
	switch x := tree.(type) {
	case nil:
		return "", &EvalError{Expression: source, Message: errNullText.Error()}
	case string:
		return x, nil
	}
	return string(doc), nil
}

func (v *Value) append(b []byte, f *frame) ([]byte, error) {
	switch {
	case v.constant != nil:
		return append(b, v.constant...), nil
	case v.whole != nil:
		return v.whole.append(b, f)
	case v.list:
		return v.appendList(b, f)
	case v.names != nil:
		return v.appendObject(b, f)
	}
	s, err := v.Join(f)
	if err != nil {
		return nil, err
	}
	return exact.AppendString(b, s), nil
}

func (v *Value) appendList(b []byte, f *frame) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i, e := range v.values {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = e.append(b, f); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (v *Value) appendObject(b []byte, f *frame) ([]byte, error) {
	var err error
	b = append(b, '{')
	for i, key := range v.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(exact.AppendString(b, key), ':')
		if b, err = v.values[i].append(b, f); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// join evaluates the parts of a text.
func (v *Value) Join(f *frame) (string, error) {
	var out strings.Builder
	for _, p := range v.parts {
		s := p.text
		if p.expr != nil {
			var err error
			if s, err = p.expr.asText(f); err != nil {
				return "", err
			}
		}
		if out.Len()+len(s) > maxText {
			return "", &EvalError{Expression: v.source, Message: "the text is longer than 1 MiB"}
		}
		out.WriteString(s)
	}
	return out.String(), nil
}

// append evaluates the expression and writes its value as JSON.
func (p *program) append(b []byte, f *frame) ([]byte, error) {
	v, err := p.eval(f)
	if err != nil {
		return nil, err
	}
	if b, err = appendValue(b, v); err != nil {
		return nil, &EvalError{Expression: p.text, Message: err.Error()}
	}
	return b, nil
}

// asText evaluates the expression and returns its value as text.
func (p *program) asText(f *frame) (string, error) {
	v, err := p.eval(f)
	if err != nil {
		return "", err
	}
	s, err := textOf(v)
	if err == nil {
		err = exact.Clean(s)
	}
	if err != nil {
		return "", &EvalError{Expression: p.text, Message: err.Error()}
	}
	return s, nil
}

var errNullText = errors.New("null cannot stand in a text")

// tooNested reports whether a JSON text is nested deeper than documents may be.
func tooNested(doc []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > exact.MaxNesting {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Constant is a value that is the same in every run. raw must be a document
// that Canonical accepts; other bytes are kept as they are.
func Constant(raw json.RawMessage) *Value {
	c, err := exact.Canonical(raw)
	if err != nil {
		c = slices.Clone(raw)
	}
	return &Value{source: string(c), constant: c}
}

// Object is an object of values under distinct keys, and its type.
func Object(keys []string, vals []*Value, ts []*Type) (*Value, *Type) {
	members := &exact.Object{Keys: slices.Clone(keys), Vals: make([]any, len(vals))}
	t := &Type{Kind: KindObject, fields: make(map[string]field, len(keys))}
	for i, v := range vals {
		members.Vals[i] = v
		t.fields[keys[i]] = field{typ: orAny(ts[i])}
	}
	members.Sort()
	out := &Value{names: members.Keys, values: make([]*Value, len(vals))}
	b := []byte{'{'}
	for i, v := range members.Vals {
		out.values[i] = v.(*Value)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(exact.AppendString(b, out.names[i]), ':')
		b = append(b, out.values[i].jsonSource()...)
	}
	return out.sealed(append(b, '}')), t
}

// ListOf is a list of values, and its type.
func ListOf(vals []*Value, ts []*Type) (*Value, *Type) {
	of := &Type{Kind: KindNever}
	b := []byte{'['}
	for i, v := range vals {
		of = Join(of, orAny(ts[i]))
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v.jsonSource()...)
	}
	out := &Value{values: slices.Clone(vals), list: true}
	return out.sealed(append(b, ']')), List(of)
}

// sealed sets the source of an object or list; when all parts are constant it
// is itself the constant.
func (v *Value) sealed(source []byte) *Value {
	v.source = string(source)
	for _, part := range v.values {
		if part.constant == nil {
			return v
		}
	}
	return &Value{source: v.source, constant: source}
}

// jsonSource is the source as a part of a JSON text.
func (v *Value) jsonSource() []byte {
	switch {
	case v.constant != nil: // whose source may be plain text
		return v.constant
	case v.list || v.names != nil:
		return []byte(v.source)
	}
	return exact.AppendString(nil, v.source)
}

// A Condition is a compiled expression that is true or false. It is immutable;
// any number of goroutines may evaluate it at once.
type Condition struct{ prog *program }

// Source returns the condition as the definition has it.
func (c *Condition) Source() string { return c.prog.text }

// Eval reports whether the condition holds in env. It only reads env and costs
// at most 10,000 units of work. The error is an *EvalError, also when a value
// of unknown type turns out to be neither true nor false.
func (c *Condition) Eval(env *Env) (bool, error) {
	v, err := c.prog.eval(&frame{env: env})
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, &EvalError{Expression: c.prog.text, Message: "it is " + kindOf(v).Words() + ", and a condition must be true or false"}
	}
	return bool(b), nil
}
