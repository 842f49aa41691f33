package expr

import (
	"strings"

	"github.com/ringiflow/ringi/workflow/exact"
)

// CompileText compiles a text of the definition: one whole "${ }" keeps the
// type of its expression, "${ }" inside other text makes a text, and a text
// without "${" is itself. "$${" stands for a literal "${". When there are
// problems the value is nil and the type is any.
func CompileText(text string, r *Scope) (*Value, *Type, []Problem) {
	if err := exact.Clean(text); err != nil {
		return nil, Any(), []Problem{{Kind: ProblemSyntax, Message: err.Error()}}
	}
	pieces, problems := cut(text)
	if problems != nil {
		return nil, Any(), problems
	}
	if len(pieces) > 0 && pieces[0].expr && strings.TrimRight(text[pieces[0].end:], "\n") == "" {
		prog, t, problems := compile(pieces[0].text, pieces[0].offset, r)
		if problems == nil && t.Kind == KindOptional {
			problems = []Problem{missingValue(pieces[0])}
		}
		if problems != nil {
			return nil, Any(), problems
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
		return nil, Text(), problems
	}
	if computed {
		return v, Text(), nil
	}
	fixed := ""
	for _, p := range v.parts {
		fixed += p.text
	}
	return &Value{source: text, constant: exact.AppendString(nil, fixed)}, Text(), nil
}

func missingValue(p piece) Problem {
	return Problem{
		Offset: p.offset, Kind: ProblemMaybeMissing,
		Message:    strings.TrimSpace(p.text) + " may have no value",
		Suggestion: strings.TrimSpace(p.text) + `.orValue("")`,
	}
}

func textProblems(p piece, t *Type) []Problem {
	switch t.Kind {
	case KindNull:
		return []Problem{{Offset: p.offset, Kind: ProblemNotText, Message: errNullText.Error()}}
	case KindOptional:
		return []Problem{missingValue(p)}
	}
	return nil
}

// CompileCondition compiles a bare expression that must be true or false.
func CompileCondition(text string, r *Scope) (*Condition, []Problem) {
	if at := strings.Index(text, "${"); at >= 0 {
		return nil, []Problem{{
			Offset: at, Kind: ProblemInterpolated,
			Message:    "a condition is an expression already; ${ } does not belong into it",
			Suggestion: withoutBraces(text),
		}}
	}
	prog, t, problems := compile(text, 0, r)
	if problems != nil {
		return nil, problems
	}
	if t.Kind != KindBool && !t.Unknown() {
		bare := strings.TrimSpace(text)
		p := Problem{Kind: ProblemNotBool, Message: "the condition " + exact.Shorten(bare) + " is " + t.Words() + ", not true or false"}
		switch t.Kind {
		case KindString:
			p.Suggestion = bare + ` != ""`
		case KindNumber:
			p.Suggestion = bare + " > 0"
		case KindList, KindObject:
			p.Suggestion = "size(" + bare + ") > 0"
		case KindOptional:
			p.Suggestion = bare + ".orValue(false)"
		}
		return nil, []Problem{p}
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
func cut(text string) ([]piece, []Problem) {
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
			return nil, []Problem{{Offset: at, Kind: ProblemSyntax, Message: "${ has no closing }", Suggestion: "close it with }, or write $${ for the characters themselves"}}
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
