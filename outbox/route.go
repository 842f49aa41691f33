package outbox

import (
	"fmt"
	"strings"
)

// TopicPrefix begins the topic of a message unless a sink is told otherwise, as
// Debezium's outbox router has it by default: "outbox.event." and the aggregate
// type.
const TopicPrefix = "outbox.event."

// Topic is where Debezium's outbox router would send m: TopicPrefix and the
// aggregate type.
func Topic(m *Message) string { return TopicPrefix + m.AggregateType }

// Route sends messages of an aggregate type and an event type to a destination.
type Route struct {
	// AggregateType and Type are what a message must have: the very text, a text
	// that ends in * for everything that begins like it, or empty for all.
	AggregateType string
	Type          string

	// Destination is the destination; empty is the only or usual one.
	Destination string

	// MostBytes is the largest message that the destination takes, payload and
	// headers together; 0 means MaxPayload. A message that is larger is refused
	// when it is written, where somebody can still do something about it.
	MostBytes int
}

// Routes choose destinations; the first that matches counts. A message that
// none matches keeps the destination that it has.
type Routes []Route

// Apply gives m its destination and checks its size for it. The error says how
// large the message is and what to do.
func (rs Routes) Apply(m *Message) error {
	for _, r := range rs {
		if !matches(r.AggregateType, m.AggregateType) || !matches(r.Type, m.Type) {
			continue
		}
		m.Destination = r.Destination
		if n := m.Size(); r.MostBytes > 0 && n > r.MostBytes {
			return m.fault("size", fmt.Sprintf("is %d bytes, destination %q takes at most %d; store the data elsewhere and send a reference", n, r.Destination, r.MostBytes))
		}
		return nil
	}
	return nil
}

// matches tells whether text is what a route asks for.
func matches(pattern, text string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(text, prefix)
	}
	return pattern == "" || pattern == text
}

// Size is the bytes of payload and headers together.
func (m *Message) Size() int {
	n := len(m.Payload)
	for name, value := range m.Headers {
		n += len(name) + len(value)
	}
	return n
}
