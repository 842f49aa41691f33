package workflow

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A source is the text of a file with its lines, for finding places in it.
type source struct {
	file  string
	text  string
	lines []int // offset of the first byte of each line
}

func newSource(file string, text []byte) *source {
	s := &source{file: file, text: string(text), lines: []int{0}}
	for i := 0; i < len(s.text); i++ {
		if s.text[i] == '\n' || (s.text[i] == '\r' && (i+1 == len(s.text) || s.text[i+1] != '\n')) {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// line returns the text of a line, from 1, without its end.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimRight(s.text[s.lines[n-1]:end], "\r\n")
}

// offset is where a position stands in the text.
func (s *source) offset(at position) int {
	if at.line < 1 || at.line > len(s.lines) {
		return len(s.text)
	}
	i := s.lines[at.line-1]
	for c := 1; c < at.column && i < len(s.text); c++ {
		_, n := utf8.DecodeRuneInString(s.text[i:])
		i += n
	}
	return i
}

// position is the place of an offset.
func (s *source) position(offset int) position {
	lo, hi := 0, len(s.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	offset = min(offset, len(s.text))
	return position{line: lo + 1, column: 1 + utf8.RuneCountInString(s.text[s.lines[lo]:offset])}
}

// locate finds where byte want of a scalar's decoded text stands in the file.
// It reads the file and the decoded text side by side, so that folding,
// escapes and indentation need not be decoded a second time.
func (s *source) locate(n *node, want int) position {
	i := s.skipProperties(s.offset(n.position))
	w := &sideBySide{src: s.text, at: i, value: n.text, want: want}
	switch n.style {
	case singleStyle, doubleStyle:
		w.at++
		w.flow(n.style)
	case literalStyle, foldedStyle:
		w.block()
	default:
		w.flow(plainStyle)
	}
	return s.position(w.at)
}

// skipProperties passes an anchor or a tag in front of a scalar.
func (s *source) skipProperties(i int) int {
	for i < len(s.text) && (s.text[i] == '&' || s.text[i] == '!') {
		for i < len(s.text) && !isSpace(s.text[i]) {
			i++
		}
		for i < len(s.text) && isSpace(s.text[i]) {
			i++
		}
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || isBreak(c) }
func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// sideBySide walks a scalar as written (src from at) and as decoded (value
// from have) until want bytes of the decoded text lie behind.
type sideBySide struct {
	src   string
	at    int
	value string
	have  int
	want  int
}

// flow walks quoted and plain scalars.
func (w *sideBySide) flow(style scalarStyle) {
	for w.have < w.want && w.at < len(w.src) {
		switch c := w.src[w.at]; {
		case w.atBreak():
			w.fold()
		case style == singleStyle && c == '\'':
			w.at++ // the first of a doubled quote
			w.literal()
		case style == doubleStyle && c == '\\':
			w.escape()
		default:
			w.literal()
		}
	}
}

// literal passes one byte that stands for itself.
func (w *sideBySide) literal() {
	w.at++
	w.have++
}

// atBreak reports whether only blanks stand before the end of the line.
func (w *sideBySide) atBreak() bool {
	for i := w.at; i < len(w.src); i++ {
		if isBreak(w.src[i]) {
			return true
		}
		if w.src[i] != ' ' && w.src[i] != '\t' {
			return false
		}
	}
	return false
}

// fold passes a line's end with the blanks around it, which the decoded text
// has as one blank, as line feeds or not at all.
func (w *sideBySide) fold() {
	for w.at < len(w.src) && isSpace(w.src[w.at]) {
		if w.src[w.at] == '\n' {
			w.decodedBreak()
		}
		w.at++
	}
}

// decodedBreak passes what the decoded text has for one line's end.
func (w *sideBySide) decodedBreak() {
	if w.have < len(w.value) && (w.value[w.have] == '\n' || w.value[w.have] == ' ') {
		w.have++
	}
}

// escape passes one escape of a double-quoted scalar.
func (w *sideBySide) escape() {
	if w.at+1 >= len(w.src) {
		w.at++
		return
	}
	digits := 0
	switch w.src[w.at+1] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '\r', '\n': // an escaped line end stands for nothing
		w.at++
		for w.at < len(w.src) && isSpace(w.src[w.at]) {
			w.at++
		}
		return
	}
	r, size := utf8.DecodeRuneInString(w.value[min(w.have, len(w.value)):])
	if digits == 4 && utf16.IsSurrogate(rune(hexDigits(w.src, w.at+2, 4))) && r > 0xffff {
		digits += 6 // the second half, \uXXXX, of the same character
	}
	w.at = min(w.at+2+digits, len(w.src))
	w.have += max(size, 1)
}

func hexDigits(s string, from, n int) int {
	v := 0
	for i := from; i < from+n && i < len(s); i++ {
		c := s[i] | 0x20
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | int(c-'a'+10)
		}
	}
	return v
}

// block walks literal and folded scalars: behind the header, line by line,
// each without the indentation of the first line that has text.
func (w *sideBySide) block() {
	w.nextLine()
	indent := w.indent()
	for w.have < w.want && w.at < len(w.src) {
		for i := 0; i < indent && w.at < len(w.src) && w.src[w.at] == ' '; i++ {
			w.at++
		}
		for w.at < len(w.src) && !isBreak(w.src[w.at]) {
			if w.have == w.want {
				return
			}
			w.literal()
		}
		if w.have == w.want {
			return
		}
		w.nextLine()
		w.decodedBreak()
	}
	for i := 0; w.have == w.want && i < indent && w.at < len(w.src) && w.src[w.at] == ' '; i++ {
		w.at++
	}
}

func (w *sideBySide) nextLine() {
	for w.at < len(w.src) && w.src[w.at] != '\n' {
		w.at++
	}
	w.at = min(w.at+1, len(w.src))
}

// indent counts the blanks in front of the first line with text, less those
// that belong to the text itself.
func (w *sideBySide) indent() int {
	i := w.at
	for i < len(w.src) {
		start := i
		for i < len(w.src) && w.src[i] == ' ' {
			i++
		}
		if i < len(w.src) && !isBreak(w.src[i]) {
			text := strings.TrimLeft(w.value, "\n")
			return max(i-start-(len(text)-len(strings.TrimLeft(text, " "))), 0)
		}
		i++
	}
	return 0
}
