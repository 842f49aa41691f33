package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow/expr"
)

// place says when an expression is evaluated, and so what it may read.
type place int

const (
	placeBefore place = iota // before its step begins
	placeCall                // when the call of an http step is frozen: its key is known
	placeProbe               // when the step's effect is asked for
	placeUndo                // when the step's undo is frozen
	placeTitle               // when the run starts
	placeStart               // before the run exists
	placeOutput              // when the last step has ended
)

// want says what kind of value a place can use.
type want int

const (
	wantAny want = iota
	wantText
	wantKey // text that must not be an object, a list or true or false
	wantObject
	wantList
	wantTime
)

// A slot is an expression, or a structure with expressions in it, that waits
// to be compiled until the types of what it may read are known.
type slot struct {
	node         *node
	place        place
	want         want
	what         string // "with", for messages
	setValue     func(*Value)
	setCondition func(*Condition) // set exactly for conditions
}

func (p *parser) slot(s *Step, x slot) { p.slots[s] = append(p.slots[s], x) }

// valueSlot takes any JSON value.
func (p *parser) valueSlot(n *node, s *Step, at place, to **Value) {
	p.slot(s, slot{node: n, place: at, setValue: func(v *Value) { *to = v }})
}

// textSlot takes text with or without expressions.
func (p *parser) textSlot(n *node, s *Step, at place, to **Value) {
	if n == nil || !p.expect(n, textNode, "the value") {
		return
	}
	if !strings.Contains(n.text, "${") && len(n.text) > MaxDescription {
		p.report(n.position, ruleName, fmt.Sprintf("the text has %d bytes, at most %d are allowed", len(n.text), MaxDescription), "shorten it")
	}
	p.slot(s, slot{node: n, place: at, want: wantText, what: "the text", setValue: func(v *Value) { *to = v }})
}

// titleSlot takes a short text with or without expressions.
func (p *parser) titleSlot(n *node, s *Step, at place, to **Value) {
	if n.kind == textNode && !strings.Contains(n.text, "${") && n.line > 0 {
		p.name(n, "the title")
	}
	p.textSlot(n, s, at, to)
}

// keySlot takes text that identifies something.
func (p *parser) keySlot(n *node, s *Step, at place, to **Value) {
	if !p.expect(n, textNode, "the key") {
		return
	}
	if !strings.Contains(n.text, "${") {
		p.name(n, "the key")
	}
	p.slot(s, slot{node: n, place: at, want: wantKey, what: "the key", setValue: func(v *Value) { *to = v }})
}

// objectSlot takes a mapping, or an expression that yields an object.
func (p *parser) objectSlot(n *node, s *Step, at place, what string, to **Value) {
	if n.kind != mapNode && !isExpression(n) {
		p.expect(n, mapNode, what)
		return
	}
	p.slot(s, slot{node: n, place: at, want: wantObject, what: what, setValue: func(v *Value) { *to = v }})
}

// tableSlot takes a list, or an expression that yields one.
func (p *parser) tableSlot(n *node, s *Step, to **Value) {
	if n.kind != listNode && !isExpression(n) {
		p.expect(n, listNode, "the table")
		return
	}
	p.slot(s, slot{node: n, want: wantList, what: "the table", setValue: func(v *Value) { *to = v }})
}

// timeSlot takes an instant.
func (p *parser) timeSlot(n *node, s *Step, to **Value) {
	if p.expect(n, textNode, "until") {
		p.slot(s, slot{node: n, want: wantTime, what: "until", setValue: func(v *Value) { *to = v }})
	}
}

// conditionSlot takes a bare expression that is true or false.
func (p *parser) conditionSlot(n *node, s *Step, set func(*Condition)) {
	switch n.kind {
	case textNode:
		p.slot(s, slot{node: n, setCondition: set})
	case boolNode: // true and false are expressions too
		p.slot(s, slot{node: &node{kind: textNode, text: n.text, position: n.position}, setCondition: set})
	default:
		p.report(n.position, ruleWrongKind, fmt.Sprintf("a condition must be text, not %s", n.kind), `write an expression, for example when: input.amount > 100`)
	}
}

// isExpression reports whether a scalar is one expression as a whole.
func isExpression(n *node) bool {
	text := strings.TrimSpace(n.text)
	return n.kind == textNode && strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}")
}

// compileSlot compiles one slot with what it may read.
func (p *parser) compileSlot(x slot, r *roots, s *Step) {
	if x.setCondition != nil {
		if p.countExpression(x.node) {
			c, problems := compileCondition(x.node.text, r)
			p.expressionProblems(x, x.node, problems, s)
			x.setCondition(c)
		}
		return
	}
	v, t := p.build(x, x.node, r, s)
	x.setValue(v)
	p.types[x.node] = t
	if v != nil {
		p.fits(x, t)
	}
}

// countExpression bounds the expressions of a definition, each of which is
// compiled, in number and in length. It returns false where enough is enough.
func (p *parser) countExpression(n *node) bool {
	before := p.compiled <= MaxExpressions && p.written <= MaxExpressionBytes
	p.compiled += max(1, strings.Count(n.text, "${"))
	p.written += len(n.text)
	now := p.compiled <= MaxExpressions && p.written <= MaxExpressionBytes
	if before && !now {
		p.report(n.position, ruleTooMany, fmt.Sprintf("a definition has at most %d expressions with %d bytes in all", MaxExpressions, MaxExpressionBytes),
			"split the process into several definitions")
	}
	return now
}

// build compiles a value with everything in it. The value is nil when a part
// of it cannot be compiled.
func (p *parser) build(x slot, n *node, r *roots, s *Step) (*Value, *typ) {
	switch n.kind {
	case nullNode:
		return constValue(n.json()), &typ{Kind: kindNull}
	case boolNode:
		return constValue(n.json()), boolTyp()
	case numberNode:
		return constValue(n.json()), numberTyp()
	case textNode:
		if strings.Contains(n.text, "${") && !p.countExpression(n) {
			return nil, anyTyp()
		}
		v, t, problems := compileScalar(n.text, r)
		p.expressionProblems(x, n, problems, s)
		return v, t
	}
	values, types, keys := make([]*Value, len(n.items)), make([]*typ, len(n.items)), make([]string, len(n.keys))
	whole := true
	for i, item := range n.items {
		values[i], types[i] = p.build(x, item, r, s)
		whole = whole && values[i] != nil
	}
	if !whole {
		return nil, anyTyp()
	}
	if n.kind == listNode {
		return listValue(values, types)
	}
	for i, k := range n.keys {
		keys[i] = k.text
	}
	return objectValue(keys, values, types)
}

// fits reports a value whose type its place cannot use.
func (p *parser) fits(x slot, t *typ) {
	if t.Unknown() {
		return
	}
	ok, need := true, ""
	switch x.want {
	case wantText:
		ok, need = t.Kind != kindNull && t.Kind != kindOptional, "text"
	case wantKey:
		ok, need = t.Kind == kindString || t.Kind == kindNumber, "text or a number"
	case wantObject:
		ok, need = t.Kind == kindObject, "an object"
	case wantList:
		ok, need = t.Kind == kindList, "a list"
	case wantTime:
		ok, need = t.Kind == kindTime || t.Kind == kindString, "a time"
	}
	if !ok {
		p.report(x.node.position, ruleNeeds, fmt.Sprintf("%s must be %s, and this expression is %s", x.what, need, t.Words()), "use an expression that yields "+need)
	}
}

// expressionProblems reports what the compiler of expressions found, at its
// place in the file.
func (p *parser) expressionProblems(x slot, n *node, problems []exprProblem, s *Step) {
	for _, e := range problems {
		at := p.src.locate(n, e.Offset)
		id := ruleOf(e.Kind)
		suggestion := cmp.Or(e.Suggestion, advice(e.Kind))
		if e.Kind == problemUnknownRoot && x.place == placeStart && isRoot(n.text, e.Offset) {
			id, suggestion = ruleStartKey, "use input only: the run does not exist yet when its key is needed"
		}
		if x.place == placeUndo && s != nil && e.Kind == problemMaybeNotRun && readsOutput(n.text, e.Offset, s.ID) {
			id = ruleUndoOutput
			e.Message = fmt.Sprintf("the undo of %s uses its output, which is missing when the answer was lost", s.ID)
			suggestion = `use input, outputs of earlier steps, or the key that the step was called with: "${ step.key }"`
		}
		p.report(at, id, e.Message, suggestion)
	}
}

// isRoot reports whether the name at an offset is one that other expressions can read.
func isRoot(text string, offset int) bool {
	rest := text[min(max(offset, 0), len(text)):]
	name := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
	return slices.Contains([]string{"steps", "vars", "run", "now", "step", "error", "event"}, name)
}

// readsOutput reports whether the expression at an offset reads the output of that step.
func readsOutput(text string, offset int, id string) bool {
	from := max(0, min(offset, len(text))-len("steps.")-len(id))
	to := min(len(text), offset+len("steps.")+len(id)+len(".output"))
	return strings.Contains(text[from:to], id)
}

// advice is what to do about a kind of expression problem for which no
// replacement can be named.
func advice(kind string) string {
	switch kind {
	case problemSyntax:
		return "correct the expression; the language is CEL, with paths such as input.amount and steps.find.output"
	case problemUnknownRoot:
		return "begin with input, steps, vars, run or now"
	case problemUnknownStep:
		return "write the id of a step of this file"
	case problemUnknownField:
		return "write a field of the schema, or add the field to the schema"
	case problemUnknownFunc:
		return "use a function of the language, such as size, sum, min, max, contains, startsWith, map, filter, exists"
	case problemType:
		return "use values of types that go together"
	case problemMaybeMissing, problemMaybeNotRun:
		return "read it with .? and add .orValue(...) with what to take when it is missing"
	case problemLaterStep:
		return "move this step behind the other, or use input or outputs of earlier steps"
	case problemNotBool:
		return "compare it with something, for example input.amount > 0"
	case problemNotText:
		return "write what is to stand in the text instead"
	case problemTooLong, problemTooDeep:
		return "put parts of it into a set step"
	case problemInterpolated:
		return "write the expression without ${ }"
	}
	return "write a number of at most 34 digits"
}

// ruleOf is the rule that a kind of expression problem breaks.
func ruleOf(kind string) string {
	switch kind {
	case problemUnknownRoot:
		return ruleUnknownRoot
	case problemUnknownStep:
		return ruleUnknownStep
	case problemUnknownField:
		return ruleUnknownField
	case problemUnknownFunc:
		return ruleUnknownFunction
	case problemType:
		return ruleTypes
	case problemMaybeMissing:
		return ruleMaybeMissing
	case problemMaybeNotRun:
		return ruleMaybeNotRun
	case problemLaterStep:
		return ruleLaterStep
	case problemNotBool:
		return ruleNotBool
	case problemNotText:
		return ruleNullText
	case problemTooLong, problemTooDeep:
		return ruleTooLong
	case problemInterpolated:
		return ruleInterpolated
	case problemNumber:
		return ruleNumber
	}
	return ruleExpression
}

// schema compiles a JSON Schema.
func (p *parser) schema(n *node) *Schema {
	if n == nil {
		return nil
	}
	if n.kind != mapNode && n.kind != boolNode {
		p.expect(n, mapNode, "a schema")
		return nil
	}
	doc := n.json()
	if p.schemas += len(doc); p.schemas > MaxSchemaBytes {
		p.report(n.position, ruleTooMany, fmt.Sprintf("the schemas of a definition have at most %d bytes in all", MaxSchemaBytes),
			"describe only the fields that the process uses")
		return nil
	}
	s, err := newSchema(doc)
	if err == nil {
		return s
	}
	at, message := n, err.Error()
	var invalid *SchemaError
	if errors.As(err, &invalid) {
		if path, ok := expr.CutPointer("#" + invalid.Path); ok {
			at = n.at(path)
		}
		message = invalid.Message
	}
	p.report(at.position, ruleSchema, "this is not JSON Schema: "+message, "correct the schema; see json-schema.org, draft 2020-12")
	return nil
}
