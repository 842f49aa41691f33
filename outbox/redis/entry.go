package redis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringiflow/ringi/outbox"
)

// Names of fields.
const (
	FieldData        = "data"
	FieldContentType = "content-type"
	FieldID          = cloudEvent + "id" // by which an inbox knows repeats

	cloudEvent = "ce-"
	ownPrefix  = "header-"
)

// fields are names and values of the entry for m, always in the same order. The
// server takes any bytes, so nothing is encoded.
func (s *Sink) fields(m *outbox.Message) []any {
	out := []any{cloudEvent + "specversion", "1.0"}
	for name, value := range outbox.Attributes(s.cfg.Source, m) {
		out = append(out, cloudEvent+name, value)
	}
	if m.ContentType != "" {
		out = append(out, FieldContentType, m.ContentType)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		out = append(out, ownField(name), m.Headers[name])
	}
	return append(out, FieldData, m.Payload)
}

// ownField is the name under which a message's own header travels.
func ownField(name string) string {
	lower := strings.ToLower(name)
	if lower == FieldData || lower == FieldContentType || strings.HasPrefix(lower, cloudEvent) || strings.HasPrefix(lower, ownPrefix) {
		return ownPrefix + name
	}
	return name
}

// check refuses a message that is too large to be sent.
func (s *Sink) check(stream string, m *outbox.Message) error {
	if stream == "" {
		return fmt.Errorf("redis: no stream for aggregate type %q; choose one", m.AggregateType)
	}
	n := len(m.Payload)
	for name, value := range m.Headers {
		n += len(name) + len(value)
	}
	if n > s.cfg.MaxBytes {
		return fmt.Errorf("redis: the message has %d bytes, at most %d are allowed; store the data elsewhere and send a reference, or raise the limit", n, s.cfg.MaxBytes)
	}
	return nil
}
