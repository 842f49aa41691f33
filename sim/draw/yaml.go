package draw

import (
	"strconv"
	"strings"
)

// A field is one key of a mapping that is going to be written as YAML; its
// value is a scalar as it is written, an object, or a list.
type field struct {
	key   string
	value any
}

// An object is a mapping in the order of its writing.
type object []field

// quote makes a text scalar.
func quote(text string) string { return strconv.Quote(text) }

// widest is how long a thing may be that stands on one line.
const widest = 130

// write writes a mapping as a person would: steps below each other, small
// things on one line.
func (o object) write(b *strings.Builder, indent string) {
	for i, f := range o {
		if i > 0 {
			b.WriteString(indent)
		}
		b.WriteString(f.key + ":")
		switch v := f.value.(type) {
		case object:
			if flat := inline(v); len(flat) < widest && !strings.Contains(flat, "[{ ") {
				b.WriteString(" " + flat + "\n")
				continue
			}
			b.WriteString("\n" + indent + "  ")
			v.write(b, indent+"  ")
		case []any:
			if len(v) == 0 || !isSteps(v) {
				b.WriteString(" " + inline(v) + "\n")
				continue
			}
			b.WriteString("\n")
			for _, item := range v {
				b.WriteString(indent + "  - ")
				o := item.(object)
				if flat := inline(o); o[0].key != "id" && len(flat) < widest && !strings.Contains(flat, "[{ ") {
					b.WriteString(flat + "\n")
					continue
				}
				o.write(b, indent+"    ")
			}
		default:
			b.WriteString(" " + inline(v) + "\n")
		}
	}
}

// isSteps reports whether a list is written one entry below the other.
func isSteps(list []any) bool {
	_, ok := list[0].(object)
	return ok
}

// inline writes a value on one line.
func inline(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case object:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = f.key + ": " + inline(f.value)
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = inline(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "null"
}

// list makes a list of scalars.
func list(items ...string) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}
