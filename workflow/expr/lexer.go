package expr

import (
	"math/big"
	"strings"

	"github.com/ringiflow/ringi/workflow/exact"
)

// A lexeme is one token of an expression, as far as the two readers of raw
// text need to tell them apart: the one that looks for the end of ${ }, and the
// one that takes numerals from their text before a float could spoil them.
type lexeme uint8

const (
	lexOther  lexeme = iota // one character
	lexWord                 // a name or keyword
	lexString               // a string literal with its quotes and prefix
	lexNumber               // a numeral without its sign
	lexNote                 // a comment, up to the end of the line
)

// lex returns the kind and length of the token at the start of text, which
// must not be empty.
func lex(text string) (lexeme, int) {
	switch c := text[0]; {
	case c == '"' || c == '\'':
		return lexString, stringLength(text, false)
	case isLetter(c):
		n := 1
		for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
			n++
		}
		if prefix := strings.ToLower(text[:n]); n < len(text) && (text[n] == '"' || text[n] == '\'') &&
			(prefix == "r" || prefix == "b" || prefix == "rb" || prefix == "br") {
			return lexString, n + stringLength(text[n:], strings.Contains(prefix, "r"))
		}
		return lexWord, n
	case isDigit(c), c == '.' && len(text) > 1 && isDigit(text[1]):
		return lexNumber, numeralLength(text)
	case strings.HasPrefix(text, "//"):
		if n := strings.IndexByte(text, '\n'); n >= 0 {
			return lexNote, n
		}
		return lexNote, len(text)
	}
	return lexOther, 1
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// stringLength is the length of a literal in one or three quotes; one without
// end takes the rest.
func stringLength(text string, raw bool) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		if text[i] == '\\' && !raw {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
	}
	return len(text)
}

func numeralLength(text string) int {
	n := 0
	run := func(is func(byte) bool) bool {
		start := n
		for n < len(text) && is(text[n]) {
			n++
		}
		return n > start
	}
	if len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isHexDigit(text[2]) {
		n = 2
		run(isHexDigit)
		return n
	}
	run(isDigit)
	if n+1 < len(text) && text[n] == '.' && isDigit(text[n+1]) {
		n++
		run(isDigit)
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		mantissa := n
		n++
		if n < len(text) && (text[n] == '+' || text[n] == '-') {
			n++
		}
		if !run(isDigit) {
			n = mantissa
		}
	}
	return n
}

// tame replaces every numeral by one of the same length that any parser can
// hold, and returns the texts of the originals by their offsets. So a literal
// beyond 64 bits keeps its place and its digits.
func tame(text string) (string, map[int]string) {
	out := []byte(text)
	var numerals map[int]string
	for i := 0; i < len(text); {
		kind, n := lex(text[i:])
		if kind == lexNumber {
			if numerals == nil {
				numerals = map[int]string{}
			}
			numerals[i] = text[i : i+n]
			tameNumeral(out[i : i+n])
		}
		i += n
	}
	return string(out), numerals
}

// tameNumeral makes the mantissa (or the hexadecimal digits) 1 and the exponent 0.
func tameNumeral(b []byte) {
	from := 0
	if len(b) > 1 && (b[1] == 'x' || b[1] == 'X') {
		from = 2
	}
	end := len(b)
	for i := from; i < len(b); i++ {
		if from == 0 && !isDigit(b[i]) {
			if b[i] != '.' && end == len(b) {
				end = i
			}
			continue
		}
		b[i] = '0'
	}
	for i := end - 1; i >= from; i-- {
		if b[i] == '0' {
			b[i] = '1'
			return
		}
	}
}

// readNumeral is the number that a numeral stands for.
func readNumeral(text string, negative bool) (exact.Number, error) {
	if len(text) > 1 && (text[1] == 'x' || text[1] == 'X') {
		n, _ := new(big.Int).SetString(text[2:], 16)
		text = n.String()
	}
	text = strings.TrimLeft(text, "0")
	if text == "" || !isDigit(text[0]) {
		text = "0" + text
	}
	if negative {
		text = "-" + text
	}
	return exact.ParseNumber(text)
}
