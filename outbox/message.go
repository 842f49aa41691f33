package outbox

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxName is the longest name in bytes: aggregate type and id, message type,
	// content type, header name. It is what the engine allows for every name.
	MaxName = 256

	// MaxPayload is the largest payload in bytes. It keeps a batch of messages
	// small enough to hold in memory and is below the limit of common brokers.
	MaxPayload = 256 << 10

	// MaxHeaders is the most bytes that all header names and values may take
	// together. Headers are for tracing and routing; data belongs in the payload.
	MaxHeaders = 16 << 10
)

// Message is one fact for the world outside, as it is stored and published.
// It is a plain value; whoever holds one must not change its Payload or Headers
// while another reads them.
type Message struct {
	// ID is a UUID in its canonical lower-case form, fixed when the message is
	// written and the same at every delivery. Consumers drop repeats by it.
	ID string

	// Tenant owns the message. It is 0 or more; it is part of the key.
	Tenant int64

	// AggregateType and AggregateID say what the message is about, such as
	// "Order" and "o-17". With the tenant they are the key that keeps order and
	// that later chooses topic and partition.
	AggregateType string
	AggregateID   string

	// Type says what happened, such as "order.fulfilled".
	Type string

	// Payload is the data, at most MaxPayload bytes; nil and empty are alike.
	Payload []byte

	// ContentType is the media type of Payload; empty means JSON, as in CloudEvents.
	ContentType string

	// Headers travel with the message: trace context and what a consumer routes by.
	Headers map[string]string

	// Destination names who gets the message; empty is the only or usual one. A
	// relay serves one destination, so that one that is down holds up no other,
	// and order is kept per key and destination. Routes fills it in.
	Destination string

	// Unordered asks for no number: the message waits for no other and takes no
	// lock on its aggregate when it is written.
	Unordered bool

	// Seq is the number within the aggregate, from 1 without gaps; 0 on an
	// unordered message. The insert assigns it; a writer leaves it 0.
	Seq int64

	// CreatedAt is when the message was written, kept to the microsecond. It
	// begins the first try and orders nothing within a key.
	CreatedAt time.Time
}

// Key is what order is kept by: messages with equal keys are published one
// after the other.
type Key struct {
	Tenant        int64
	AggregateType string
	AggregateID   string
}

// Key returns the key of m. An unordered message has one too, for routing.
func (m *Message) Key() Key {
	return Key{Tenant: m.Tenant, AggregateType: m.AggregateType, AggregateID: m.AggregateID}
}

// Check says whether m can be stored and published: the id is a canonical UUID,
// names are UTF-8 without NUL and within MaxName, payload and headers are within
// their limits, and there is a time. The error names the field and what to do.
func (m *Message) Check() error {
	if !IsID(m.ID) {
		return fmt.Errorf("outbox: message id %q: not a UUID in lower-case canonical form; generate one (version 7) when the message is written", clip(m.ID))
	}
	if m.Tenant < 0 {
		return m.fault("tenant", fmt.Sprintf("%d is negative; tenants are numbered from 0", m.Tenant))
	}
	for _, f := range []struct{ field, text string }{
		{"aggregate type", m.AggregateType}, {"aggregate id", m.AggregateID}, {"type", m.Type},
	} {
		if f.text == "" {
			return m.fault(f.field, "is empty; give it a value")
		}
		if wrong := nameFault(f.text); wrong != "" {
			return m.fault(f.field, wrong)
		}
	}
	if wrong := nameFault(m.ContentType); wrong != "" {
		return m.fault("content type", wrong)
	}
	if wrong := nameFault(m.Destination); wrong != "" {
		return m.fault("destination", wrong)
	}
	if len(m.Payload) > MaxPayload {
		return m.fault("payload", fmt.Sprintf("has %d bytes, at most %d are allowed; store the data elsewhere and send a reference", len(m.Payload), MaxPayload))
	}
	if m.CreatedAt.IsZero() {
		return m.fault("created at", "is not set; give the time of the change")
	}
	if y := m.CreatedAt.UTC().Year(); y < 1970 || y > 9999 {
		return m.fault("created at", fmt.Sprintf("is in the year %d, outside 1970 to 9999; check the clock", y))
	}
	return m.checkHeaders()
}

func (m *Message) checkHeaders() error {
	total := 0
	for name, value := range m.Headers {
		total += len(name) + len(value)
		if name == "" {
			return m.fault("headers", "have an empty name; name or drop it")
		}
		if wrong := nameFault(name); wrong != "" {
			return m.fault("header name", wrong)
		}
		if wrong := textFault(value); wrong != "" {
			return m.fault(fmt.Sprintf("header %q", clip(name)), wrong)
		}
	}
	if total > MaxHeaders {
		return m.fault("headers", fmt.Sprintf("have %d bytes, at most %d are allowed; move data into the payload", total, MaxHeaders))
	}
	return nil
}

func (m *Message) fault(field, what string) error {
	return fmt.Errorf("outbox: message %s: %s %s", m.ID, field, what)
}

// nameFault says what is wrong with a name; empty when nothing is.
func nameFault(s string) string {
	if len(s) > MaxName {
		return fmt.Sprintf("has %d bytes, at most %d are allowed; shorten it", len(s), MaxName)
	}
	return textFault(s)
}

// textFault refuses what PostgreSQL cannot store and JSON cannot carry.
func textFault(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8; encode it"
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "contains a NUL byte; remove it"
	}
	return ""
}

// IsID tells whether s can be the id of a message: whether it is a UUID in the
// one form that a database gives back unchanged. Another spelling of the same UUID would be another id to a
// consumer that compares text.
func IsID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// clip keeps an error message readable when the text is hostile.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
