package outbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"
)

// DefaultEventSource is the CloudEvents source of messages when a sink names
// none. Source and id together identify an event; services that share a
// destination should name themselves.
const DefaultEventSource = "ringi"

// AppendCloudEvent appends m to dst as one CloudEvents 1.0 event in structured
// JSON, on a single line without its end. source is the event's source, a URI
// reference; empty means DefaultEventSource.
//
// The aggregate id is the subject; tenant, aggregate type and number are the
// extension attributes tenant, aggregatetype and sequence (zero-padded, so that
// it sorts as text; absent when unordered). A header whose name may be an
// attribute's (a-z and 0-9, such as traceparent) becomes one; all others
// travel together as a JSON object in the text attribute headers. The payload
// is data when it is JSON or text by its content type, else data_base64.
//
// It cannot fail: a message that Check would refuse still becomes valid JSON.
func AppendCloudEvent(dst []byte, source string, m *Message) []byte {
	dst = append(dst, `{"specversion":"1.0"`...)
	for name, value := range Attributes(source, m) {
		dst = appendMember(dst, name, value)
	}
	dst = appendHeaders(dst, m.Headers)
	if m.ContentType != "" {
		dst = appendMember(dst, "datacontenttype", m.ContentType)
	}
	dst = appendData(dst, m)
	return append(dst, '}')
}

// appendHeaders writes the headers in the order of their names, so that one
// message always becomes the same bytes.
func appendHeaders(dst []byte, headers map[string]string) []byte {
	var rest []byte
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if attributeName(name) && printable(value) {
			dst = appendMember(dst, name, value)
			continue
		}
		rest = appendMember(rest, name, value)
	}
	if len(rest) == 0 {
		return dst
	}
	rest[0] = '{' // in place of the first comma
	return appendMember(dst, "headers", string(append(rest, '}')))
}

func appendData(dst []byte, m *Message) []byte {
	switch {
	case len(m.Payload) == 0:
		return dst
	case isJSON(m.ContentType) && utf8.Valid(m.Payload) && json.Valid(m.Payload):
		var line bytes.Buffer
		// Compact fails only on what json.Valid refuses.
		_ = json.Compact(&line, m.Payload)
		dst = append(dst, `,"data":`...)
		return append(dst, line.Bytes()...)
	case isText(m.ContentType) && utf8.Valid(m.Payload):
		return appendMember(dst, "data", string(m.Payload))
	}
	return appendMember(dst, "data_base64", base64.StdEncoding.EncodeToString(m.Payload))
}

func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	t := mediaType(contentType)
	return t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}

func isText(contentType string) bool {
	t := mediaType(contentType)
	return strings.HasPrefix(t, "text/") && t != "text/json"
}

func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return t
}

// attributeName tells whether a header may be an extension attribute: a name
// that CloudEvents allows and that means nothing else in an event.
func attributeName(name string) bool {
	switch name {
	case "", "id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time", "data",
		"tenant", "aggregatetype", "sequence", "headers":
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) <= 20
}

// printable tells whether a value has no control character; attributes of a
// CloudEvent may hold none.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f })
}

func appendMember(dst []byte, name, value string) []byte {
	dst = append(dst, ',')
	dst = appendText(dst, name)
	dst = append(dst, ':')
	return appendText(dst, value)
}

// appendText appends s as a JSON text. Unlike encoding/json it leaves <, > and &
// as they are, and it allocates nothing.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // a broken byte comes as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r < ' ' || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r == '\u2028' || r == '\u2029': // line ends to some readers
			dst = append(dst, '\\', 'u', '2', '0', '2', hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
