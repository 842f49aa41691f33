package workflow

import (
	"strings"
)

// compileScalar compiles a text of the definition: one whole "${ }" keeps the
// type of its expression, "${ }" inside other text makes a text, and a text
// without "${" is itself. "$${" stands for a literal "${". When there are
// problems the value is nil and the type is any.
func compileScalar(text string, r *roots) (*Value, *typ, []exprProblem) {
	pieces, problems := cut(text)
	if problems != nil {
		return nil, anyTyp(), problems
	}
	if len(pieces) == 1 && pieces[0].expr && strings.TrimRight(text[pieces[0].end:], "\n") == "" {
		prog, t, problems := compile(pieces[0].text, pieces[0].offset, r)
		if problems == nil && t.kind == kindOptional {
			problems = []exprProblem{missingValue(pieces[0])}
		}
		if problems != nil {
			return nil, anyTyp(), problems
		}
		return &Value{source: text, whole: prog}, t, nil
	}
	v := &Value{source: text, parts: make([]part, 0, len(pieces))}
	computed := false
	for _, p := range pieces {
		if !p.expr {
			v.parts = append(v.parts, part{text: p.text})
			continue
		}
		computed = true
		prog, t, found := compile(p.text, p.offset, r)
		problems = append(problems, found...)
		if found == nil {
			problems = append(problems, textProblems(p, t)...)
		}
		v.parts = append(v.parts, part{expr: prog})
	}
	if problems != nil {
		return nil, textTyp(), problems
	}
	if computed {
		return v, textTyp(), nil
	}
	fixed := ""
	for _, p := range v.parts {
		fixed += p.text
	}
	out, err := literal(fixed)
	if err != nil {
		return nil, textTyp(), []exprProblem{{kind: problemSyntax, message: err.Error()}}
	}
	out.source = text
	return out, textTyp(), nil
}

func missingValue(p piece) exprProblem {
	return exprProblem{
		offset: p.offset, kind: problemMaybeMissing,
		message:    strings.TrimSpace(p.text) + " may have no value",
		suggestion: strings.TrimSpace(p.text) + `.orValue("")`,
	}
}

func textProblems(p piece, t *typ) []exprProblem {
	switch t.kind {
	case kindNull:
		return []exprProblem{{offset: p.offset, kind: problemNotText, message: errNullText.Error()}}
	case kindOptional:
		return []exprProblem{missingValue(p)}
	}
	return nil
}

// compileCondition compiles a bare expression that must be true or false.
func compileCondition(text string, r *roots) (*Condition, []exprProblem) {
	if at := strings.Index(text, "${"); at >= 0 {
		return nil, []exprProblem{{
			offset: at, kind: problemInterpolated,
			message:    "a condition is an expression already; ${ } does not belong into it",
			suggestion: withoutBraces(text),
		}}
	}
	prog, t, problems := compile(text, 0, r)
	if problems != nil {
		return nil, problems
	}
	if t.kind != kindBool && !t.unknown() {
		bare := strings.TrimSpace(text)
		p := exprProblem{kind: problemNotBool, message: "the condition " + shorten(bare) + " is " + t.words() + ", not true or false"}
		switch t.kind {
		case kindString:
			p.suggestion = bare + ` != ""`
		case kindNumber:
			p.suggestion = bare + " > 0"
		case kindList, kindObject:
			p.suggestion = "size(" + bare + ") > 0"
		case kindOptional:
			p.suggestion = bare + ".orValue(false)"
		}
		return nil, []exprProblem{p}
	}
	prog.text = text
	return &Condition{prog: prog}, nil
}

// withoutBraces shows the condition as it should be.
func withoutBraces(text string) string {
	pieces, problems := cut(text)
	if problems != nil {
		return "write the expression without ${ }"
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return strings.TrimSpace(b.String())
}

// A piece of a text is fixed, or the inside of one ${ }.
type piece struct {
	text   string
	expr   bool
	offset int // of text in the whole
	end    int // after the piece, with its brace
}

// cut splits a text at its expressions.
func cut(text string) ([]piece, []exprProblem) {
	var out []piece
	fixed := func(s string) {
		if s != "" {
			out = append(out, piece{text: s})
		}
	}
	start := 0
	for {
		at := strings.Index(text[start:], "${")
		if at < 0 {
			fixed(text[start:])
			return out, nil
		}
		at += start
		if at > start && text[at-1] == '$' {
			fixed(text[start:at-1] + "${")
			start = at + 2
			continue
		}
		fixed(text[start:at])
		end := closing(text, at+2)
		if end < 0 {
			return nil, []exprProblem{{offset: at, kind: problemSyntax, message: "${ has no closing }", suggestion: "close it with }, or write $${ for the characters themselves"}}
		}
		out = append(out, piece{text: text[at+2 : end], expr: true, offset: at + 2, end: end + 1})
		start = end + 1
	}
}

// closing finds the brace that ends an expression: braces of map literals and
// whatever stands in quotes are passed over.
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text); {
		_, n := lex(text[i:])
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
		i += n
	}
	return -1
}
