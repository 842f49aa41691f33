package exact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Canonical writes a JSON document in the one form that equal documents share:
// RFC 8785 for the order of keys, the writing of strings and the layout, but
// numbers as exact decimals (no exponent, no trailing zeros, no -0), never
// through a float: 9007199254740993 and 9007199254740992 differ, 0.10 and 0.1
// agree. It refuses, with the byte where it stands, a document that has no
// single reading or cannot be kept exactly: repeated keys, invalid UTF-8, lone
// surrogates, NUL, nesting deeper than 64, numbers of more than 34 digits.
func Canonical(doc []byte) (json.RawMessage, error) {
	v, err := Read(string(doc))
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, len(doc)), v), nil
}

// Digest returns the SHA-256 of the canonical form of a JSON document, as 64
// hexadecimal digits. Its errors are those of Canonical.
func Digest(doc []byte) (string, error) {
	c, err := Canonical(doc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:]), nil
}

var errDirty = errors.New("the text holds NUL or invalid UTF-8")

// Clean refuses a text that no document may hold.
func Clean(s string) error {
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return errDirty
	}
	return nil
}

// Append writes a tree as Read makes it.
func Append(b []byte, v any) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case string:
		return AppendString(b, x)
	case Number:
		return append(b, x...)
	case []any:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ',')
			}
			b = Append(b, e)
		}
		return append(b, ']')
	case *Object:
		b = append(b, '{')
		for i, key := range x.Keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, key), ':')
			b = Append(b, x.Vals[i])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// AppendString writes a string as RFC 8785 does: only what must be escaped is.
func AppendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
