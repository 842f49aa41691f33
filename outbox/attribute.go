package outbox

import (
	"fmt"
	"iter"
	"time"
)

// Attributes yields the CloudEvents 1.0 attributes of m as name and text, always
// in the same order: id, source, type, subject (the aggregate id), time,
// aggregatetype, tenant and, unless m is unordered, sequence (zero-padded, so
// that it sorts as text). source is a URI reference; empty means
// DefaultEventSource.
//
// A sink that sends events in binary mode makes headers of them, adds
// specversion 1.0, sends the content type and the message's own headers as its
// protocol has them, and the payload as the body.
func Attributes(source string, m *Message) iter.Seq2[string, string] {
	if source == "" {
		source = DefaultEventSource
	}
	return func(yield func(name, value string) bool) {
		_ = yield("id", m.ID) &&
			yield("source", source) &&
			yield("type", m.Type) &&
			yield("subject", m.AggregateID) &&
			yield("time", m.CreatedAt.UTC().Format(time.RFC3339Nano)) &&
			yield("aggregatetype", m.AggregateType) &&
			yield("tenant", fmt.Sprint(m.Tenant)) &&
			m.Seq > 0 && yield("sequence", fmt.Sprintf("%020d", m.Seq))
	}
}
