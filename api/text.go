package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string. One of ours comes out decoded.
func (s *scanner) str(sh *shape) (any, error) {
	from := s.at
	dirt, err := s.characters()
	if err != nil {
		return nil, err
	}
	if dirt != "" && !sh.worded && (!sh.lax || dirt == notUTF8) {
		s.fault("%s", dirt)
	}
	if sh.free {
		return nil, nil
	}
	raw := s.text[from:s.at]
	if bytes.IndexByte(raw, '\\') < 0 && dirt == "" {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil { // characters accepts what the decoder does
		return nil, s.broken("a text that cannot be read")
	}
	return text, nil
}

// What a text may not hold.
const (
	notUTF8   = "holds bytes that are not UTF-8: encode the text"
	halfPair  = "holds half of a surrogate pair, which is no character: write the whole character"
	holdsNUL  = "holds a NUL character: leave it out"
	badEscape = "an escape that does not exist in a text"
)

// characters goes to the end of a string, and says what no text may hold.
func (s *scanner) characters() (dirt string, err error) {
	for s.at++; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return dirt, nil
		case c < ' ':
			return "", s.broken("a control character in a text")
		case c == '\\':
			found, err := s.escape()
			if err != nil {
				return "", err
			}
			if dirt == "" {
				dirt = found
			}
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, n := utf8.DecodeRune(s.text[s.at:])
			if r == utf8.RuneError && n == 1 {
				dirt = notUTF8
			}
			s.at += n
		}
	}
	return "", s.broken("a text that does not end")
}

// escape goes past one escape, or past two that are a pair.
func (s *scanner) escape() (dirt string, err error) {
	if s.at+1 >= len(s.text) {
		return "", s.broken("a text that does not end")
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return "", nil
	case 'u':
	default:
		return "", s.broken(badEscape)
	}
	first, ok := s.unit()
	switch {
	case !ok:
		return "", s.broken(badEscape)
	case first == 0:
		return holdsNUL, nil
	case !utf16.IsSurrogate(first):
		return "", nil
	}
	back := s.at
	if second, ok := s.unit(); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
		return "", nil
	}
	s.at = back
	return halfPair, nil
}

// unit goes past an escape of the form \uXXXX.
func (s *scanner) unit() (rune, bool) {
	const length = 6
	if s.at+length > len(s.text) || s.text[s.at] != '\\' || s.text[s.at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.text[s.at+2:s.at+length]), 16, 16)
	if err != nil {
		return 0, false
	}
	s.at += length
	return rune(n), true
}
