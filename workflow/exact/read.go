package exact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxNesting is how deep arrays and objects of a document may lie inside each
// other: twice the depth that definitions and expressions may have, and little
// enough for every recursive walk over a document.
const MaxNesting = 64

// A document is read into a tree of nil, bool, string, Number, []any and
// *Object. Unlike encoding/json the reader refuses what has more than one
// reading: repeated keys, invalid UTF-8, lone surrogates, NUL, and numbers that
// cannot be kept exactly.

// An Object keeps its members ordered as RFC 8785 orders keys (by UTF-16 code
// units), so that walking one is deterministic and writing it is canonical.
type Object struct {
	Keys []string
	Vals []any
}

// Get returns the member of that name.
func (o *Object) Get(key string) (any, bool) {
	if i, found := slices.BinarySearchFunc(o.Keys, key, CompareKeys); found {
		return o.Vals[i], true
	}
	return nil, false
}

// CompareKeys orders strings by UTF-16 code units. That differs from the order
// of bytes only where a supplementary character meets one of U+E000 to U+FFFF.
func CompareKeys(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n || (a[i] < 0xee && b[i] < 0xee) {
		return strings.Compare(a[i:], b[i:])
	}
	supplementaryA, supplementaryB := a[i] >= 0xf0, b[i] >= 0xf0
	if supplementaryA != supplementaryB && a[i] >= 0xee && b[i] >= 0xee {
		if supplementaryA {
			return -1
		}
		return 1
	}
	return strings.Compare(a[i:], b[i:])
}

// A reader reads one JSON document.
type reader struct {
	text  string
	at    int
	depth int
}

// Read reads a whole document; white space around it is allowed, anything
// else is not.
func Read(text string) (any, error) {
	r := reader{text: text}
	r.space()
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	r.space()
	if r.at < len(r.text) {
		return nil, r.fail("there is more text after the end of the document")
	}
	return v, nil
}

func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("JSON, byte %d: %s", r.at, fmt.Sprintf(format, args...))
}

func (r *reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) value() (any, error) {
	switch c := r.peek(); {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array()
	case c == '"':
		return r.str()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for _, w := range [...]struct {
		text  string
		value any
	}{{"true", true}, {"false", false}, {"null", nil}} {
		if strings.HasPrefix(r.text[r.at:], w.text) {
			r.at += len(w.text)
			return w.value, nil
		}
	}
	if r.at >= len(r.text) {
		return nil, r.fail("the document ends too early")
	}
	return nil, r.fail("expected a value")
}

func (r *reader) enter() error {
	if r.depth++; r.depth > MaxNesting {
		return r.fail("nested deeper than %d", MaxNesting)
	}
	r.at++
	r.space()
	return nil
}

// next moves past a comma and reports whether the list ends with end instead.
func (r *reader) next(end byte) (done bool, err error) {
	r.space()
	switch r.peek() {
	case ',':
		r.at++
		r.space()
		return false, nil
	case end:
		r.at++
		r.depth--
		return true, nil
	}
	return false, r.fail("expected a comma or %q", end)
}

func (r *reader) array() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	out := []any{}
	if r.peek() == ']' {
		_, err := r.next(']')
		return out, err
	}
	for {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if done, err := r.next(']'); done || err != nil {
			return out, err
		}
	}
}

func (r *reader) object() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	out := &Object{}
	if r.peek() == '}' {
		_, err := r.next('}')
		return out, err
	}
	for {
		if r.peek() != '"' {
			return nil, r.fail("expected a key in quotes")
		}
		key, err := r.str()
		if err != nil {
			return nil, err
		}
		r.space()
		if r.peek() != ':' {
			return nil, r.fail("expected a colon after key %q", key)
		}
		r.at++
		r.space()
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		done, err := r.next('}')
		if err != nil {
			return nil, err
		}
		if done {
			return out, r.order(out)
		}
	}
}

// order sorts the members and refuses a repeated key.
func (r *reader) order(o *Object) error {
	if !slices.IsSortedFunc(o.Keys, CompareKeys) {
		o.Sort()
	}
	for i := 1; i < len(o.Keys); i++ {
		if o.Keys[i] == o.Keys[i-1] {
			return r.fail("key %q stands twice in one object", o.Keys[i])
		}
	}
	return nil
}

// Sort puts the members in order; equal keys keep theirs.
func (o *Object) Sort() {
	order := make([]int, len(o.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return CompareKeys(o.Keys[a], o.Keys[b]) })
	keys, vals := make([]string, len(order)), make([]any, len(order))
	for to, from := range order {
		keys[to], vals[to] = o.Keys[from], o.Vals[from]
	}
	o.Keys, o.Vals = keys, vals
}

// number reads one number; its grammar is that of RFC 8259.
func (r *reader) number() (any, error) {
	start := r.at
	if r.peek() == '-' {
		r.at++
	}
	if r.peek() == '0' {
		r.at++
	} else if !r.digits() {
		return nil, r.fail("expected a digit")
	}
	if r.peek() == '.' {
		r.at++
		if !r.digits() {
			return nil, r.fail("expected a digit after the point")
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.at++
		if c := r.peek(); c == '+' || c == '-' {
			r.at++
		}
		if !r.digits() {
			return nil, r.fail("expected a digit in the exponent")
		}
	}
	n, err := ParseNumber(r.text[start:r.at])
	if err != nil {
		text := r.text[start:r.at]
		r.at = start
		return nil, r.fail("the number %s %v", Shorten(text), err)
	}
	return n, nil
}

func (r *reader) digits() bool {
	start := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	return r.at > start
}

// str reads one string in quotes.
func (r *reader) str() (string, error) {
	r.at++
	start := r.at
	var unescaped []byte // nil until the first escape; most strings have none
	for {
		if r.at >= len(r.text) {
			return "", r.fail("a string has no end")
		}
		switch c := r.text[r.at]; {
		case c == '"':
			part := r.text[start:r.at]
			r.at++
			if unescaped == nil {
				return part, nil
			}
			return string(append(unescaped, part...)), nil
		case c == '\\':
			unescaped = append(unescaped, r.text[start:r.at]...)
			char, err := r.escape()
			if err != nil {
				return "", err
			}
			unescaped = utf8.AppendRune(unescaped, char)
			start = r.at
		case c < 0x20:
			return "", r.fail("a control character must be escaped")
		case c < utf8.RuneSelf:
			r.at++
		default:
			char, size := utf8.DecodeRuneInString(r.text[r.at:])
			if char == utf8.RuneError && size <= 1 {
				return "", r.fail("invalid UTF-8")
			}
			r.at += size
		}
	}
}

// escape reads one escape sequence and returns the character it stands for.
func (r *reader) escape() (rune, error) {
	r.at++
	c := r.peek()
	r.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return r.unicode()
	}
	return 0, r.fail("unknown escape")
}

func (r *reader) unicode() (rune, error) {
	char, ok := r.hex4()
	if !ok {
		return 0, r.fail("\\u needs four hexadecimal digits")
	}
	if char == 0 {
		return 0, r.fail("the character NUL is not allowed")
	}
	if char < 0xd800 || char > 0xdfff {
		return char, nil
	}
	if char < 0xdc00 && strings.HasPrefix(r.text[r.at:], `\u`) {
		r.at += 2
		if low, ok := r.hex4(); ok && low >= 0xdc00 && low <= 0xdfff {
			return 0x10000 + (char-0xd800)<<10 + (low - 0xdc00), nil
		}
	}
	return 0, r.fail("half of a surrogate pair stands alone")
}

func (r *reader) hex4() (rune, bool) {
	if r.at+4 > len(r.text) {
		return 0, false
	}
	var n rune
	for _, c := range []byte(r.text[r.at : r.at+4]) {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	r.at += 4
	return n, true
}

// Shorten cuts a text for a message.
func Shorten(text string) string {
	if len(text) <= 60 {
		return text
	}
	return strings.ToValidUTF8(text[:57], "") + "..."
}
