package exact

import (
	"errors"
	"strings"
)

var errNotJSON = errors.New("JSON: the document ends too early")

// Member finds the member of that name in a document whose value is an object,
// and returns its text without reading the rest. The document must be one that
// Canonical accepts; in another one the answer may be wrong, and an error says
// so only where the search cannot go on.
func Member(doc, name string) (text string, found bool, err error) {
	i := skipSpace(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return "", false, nil
	}
	i = skipSpace(doc, i+1)
	for i < len(doc) && doc[i] == '"' {
		end, err := skipString(doc, i)
		if err != nil {
			return "", false, err
		}
		key := doc[i+1 : end-1]
		from := skipSpace(doc, end)
		if from >= len(doc) || doc[from] != ':' {
			return "", false, errNotJSON
		}
		from = skipSpace(doc, from+1)
		to, err := skipValue(doc, from)
		if err != nil {
			return "", false, err
		}
		if key == name || strings.IndexByte(key, '\\') >= 0 && unescaped(doc[i:end]) == name {
			return doc[from:to], true, nil
		}
		if i = skipSpace(doc, to); i < len(doc) && doc[i] == ',' {
			i = skipSpace(doc, i+1)
		}
	}
	return "", false, nil
}

// unescaped reads a string in quotes; one that cannot be read is no name.
func unescaped(quoted string) string {
	v, _ := Read(quoted)
	s, _ := v.(string)
	return s
}

func skipSpace(doc string, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the place after the string that starts at i.
func skipString(doc string, i int) (int, error) {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			return i + 1, nil
		case '\\':
			i++
		}
	}
	return 0, errNotJSON
}

// skipValue returns the place after the value that starts at i.
func skipValue(doc string, i int) (int, error) {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			end, err := skipString(doc, i)
			if err != nil || depth == 0 {
				return end, err
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what holds a scalar
				return i, nil
			}
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i, nil
			}
		}
		i++
	}
	return 0, errNotJSON
}
