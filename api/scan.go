package api

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A scanner reads a body of JSON before it is decoded, and keeps out what the
// decoder of the standard library would let through changed: text that is not
// UTF-8 and half surrogate pairs, which it replaces by U+FFFD, so that two keys
// become one; NUL, which no column holds; a field that stands twice, of which it
// takes the last; and a field in other letters than ours, which it takes for
// ours. It accepts the same syntax as encoding/json.
//
// What stands in fields of ours comes out as a value to hold against the schema.
// Payloads are only looked at: what is wrong inside them beyond their characters
// is for the engine to say.
type scanner struct {
	text   []byte
	at     int
	depth  int
	way    []step // to where the scanner is
	faults []FieldError
	more   bool // faults were left out
	lists  []*splitList
}

// step is a field, or an item of a list.
type step struct {
	name  string
	index int
}

// splitList is a list whose items are refused by themselves.
type splitList struct {
	items []splitItem
}

type splitItem struct {
	from, to int // its place in the text
	value    any
	faults   []FieldError
}

const (
	// deepest is how far arrays and objects may lie inside each other at the
	// door: far above what the engine keeps (64), and harmless to recursion.
	deepest = 1000
	// mostFaults bounds the places that one answer names.
	mostFaults = 20
)

// A syntaxError is a text that is no JSON at all, so that no item of it can be told
// from another.
type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("not JSON at byte %d: %s", e.at, e.what)
}

func (s *scanner) broken(what string) error { return &syntaxError{s.at, what} }

// scan reads the whole text.
func (s *scanner) scan(sh *shape) (any, error) {
	s.space()
	v, err := s.value(sh)
	if err != nil {
		return nil, err
	}
	s.space()
	if s.at < len(s.text) {
		return nil, s.broken("there is more behind the document")
	}
	return v, nil
}

// fault notes something wrong at the place where the scanner is.
func (s *scanner) fault(format string, args ...any) {
	if len(s.faults) >= mostFaults {
		s.more = true
		return
	}
	s.faults = append(s.faults, FieldError{Location: s.place(), Message: fmt.Sprintf(format, args...)})
}

// place is the way to where the scanner is, as in body.items[3].token.
func (s *scanner) place() string {
	var b strings.Builder
	b.WriteString("body")
	for _, st := range s.way {
		if st.name == "" {
			fmt.Fprintf(&b, "[%d]", st.index)
		} else {
			b.WriteString("." + st.name)
		}
	}
	return b.String()
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// value reads any value. What is free comes out as nil.
func (s *scanner) value(sh *shape) (any, error) {
	switch c := s.peek(); {
	case s.at >= len(s.text):
		return nil, s.broken("it ends too early")
	case c == '{':
		return s.object(sh)
	case c == '[':
		return s.list(sh)
	case c == '"':
		return s.str(sh)
	case c == '-' || c >= '0' && c <= '9':
		return s.number(sh)
	}
	for _, w := range [...]struct {
		text  string
		value any
	}{{"true", true}, {"false", false}, {"null", nil}} {
		if bytes.HasPrefix(s.text[s.at:], []byte(w.text)) {
			s.at += len(w.text)
			return w.value, nil
		}
	}
	return nil, s.broken("a value is expected here")
}

// enter goes into a list or an object.
func (s *scanner) enter() error {
	if s.depth++; s.depth > deepest {
		return s.broken(fmt.Sprintf("arrays and objects lie more than %d deep in each other", deepest))
	}
	s.at++
	s.space()
	return nil
}

// next goes past a comma, or past the end.
func (s *scanner) next(end byte) (done bool, err error) {
	s.space()
	switch s.peek() {
	case ',':
		s.at++
		s.space()
		return false, nil
	case end:
		s.at++
		s.depth--
		return true, nil
	}
	return false, s.broken(fmt.Sprintf("a comma or %c is expected here", end))
}

func (s *scanner) list(sh *shape) (any, error) {
	inside := sh.items
	if inside == nil { // free, or a list where none belongs, which the schema refuses
		inside = &shape{free: true, lax: sh.lax}
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	out := []any{}
	if s.peek() == ']' {
		_, err := s.next(']')
		return out, err
	}
	var split *splitList
	if sh.each {
		split = &splitList{}
		s.lists = append(s.lists, split)
	}
	for i := 0; ; i++ {
		from, before := s.at, s.faults
		if split != nil {
			s.faults = nil
		}
		s.way = append(s.way, step{index: i})
		v, err := s.value(inside)
		if err != nil {
			return nil, err
		}
		s.way = s.way[:len(s.way)-1]
		if split != nil {
			split.items = append(split.items, splitItem{from, s.at, v, s.faults})
			s.faults, v = before, nil
		}
		if !sh.free {
			out = append(out, v)
		}
		if done, err := s.next(']'); done || err != nil {
			return out, err
		}
	}
}

func (s *scanner) object(sh *shape) (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	out := map[string]any{}
	if s.peek() == '}' {
		_, err := s.next('}')
		return out, err
	}
	for {
		if s.peek() != '"' {
			return nil, s.broken("a name in quotes is expected here")
		}
		name, inside, err := s.member(sh, out)
		if err != nil {
			return nil, err
		}
		s.way = append(s.way, step{name: name})
		v, err := s.value(inside)
		if err != nil {
			return nil, err
		}
		s.way = s.way[:len(s.way)-1]
		if sh.fields != nil {
			out[name] = v
		}
		if done, err := s.next('}'); done || err != nil {
			return out, err
		}
	}
}

// member reads a name and its colon, and says what may stand behind it.
func (s *scanner) member(sh *shape, seen map[string]any) (string, *shape, error) {
	text, err := s.str(&shape{free: sh.fields == nil, lax: sh.lax})
	if err != nil {
		return "", nil, err
	}
	name, _ := text.(string)
	s.space()
	if s.peek() != ':' {
		return "", nil, s.broken("a colon is expected here")
	}
	s.at++
	s.space()
	if sh.fields == nil {
		return "", &shape{free: true, lax: sh.lax}, nil
	}
	inside, known := sh.fields[name]
	_, twice := seen[name]
	s.way = append(s.way, step{name: name})
	switch {
	case !known:
		inside = &shape{free: true}
		s.fault("unexpected property%s", sh.instead(name))
	case twice:
		s.fault("stands twice: send it once")
	}
	s.way = s.way[:len(s.way)-1]
	return name, inside, nil
}

// instead suggests the field that a name in other letters means.
func (sh *shape) instead(name string) string {
	for _, known := range sh.names() {
		if strings.EqualFold(known, name) {
			return ": write " + known
		}
	}
	return ""
}

// number reads a number. One of ours that is no whole number, or does not fit,
// is a fault.
func (s *scanner) number(sh *shape) (any, error) {
	from := s.at
	if s.peek() == '-' {
		s.at++
	}
	switch {
	case s.peek() == '0':
		s.at++
	case !s.digits():
		return nil, s.broken("a digit is expected here")
	}
	whole := true
	if s.peek() == '.' {
		whole = false
		s.at++
		if !s.digits() {
			return nil, s.broken("a digit is expected here")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		whole = false
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return nil, s.broken("a digit is expected here")
		}
	}
	if sh.free {
		return nil, nil
	}
	text := string(s.text[from:s.at])
	n, err := strconv.ParseFloat(text, 64)
	if sh.whole {
		if _, err := strconv.ParseInt(text, 10, 64); !whole || err != nil {
			s.fault("%s is not a whole number that fits 64 bits", shortened(text))
		}
		return n, nil
	}
	if err != nil {
		s.fault("%s is out of range", shortened(text))
	}
	return n, nil
}

func (s *scanner) digits() bool {
	from := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > from
}

// shortened is text of a request as an answer repeats it.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
