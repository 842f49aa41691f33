package outbox

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"time"
)

// Stamp completes messages when they are written: what a program need not say
// about each one. The zero value works. Safe for concurrent use if its functions
// are.
type Stamp struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// NewID makes ids; nil makes UUIDs of version 7 at the time of the message.
	NewID func(at time.Time) string

	// Trace, if set, returns headers from the context of the change, such as the
	// traceparent and tracestate of W3C trace context, so that a trace goes on
	// where the message arrives. A header that the message has already stays.
	Trace func(ctx context.Context) map[string]string

	// Routes choose the destination and know its largest message.
	Routes Routes
}

// Apply fills in m what it lacks: id, time, trace headers, destination. Then it
// checks m. The id is fixed from here on, whatever becomes of the transaction.
func (s *Stamp) Apply(ctx context.Context, m *Message) error {
	if m.CreatedAt.IsZero() {
		if s.Now != nil {
			m.CreatedAt = s.Now()
		} else {
			m.CreatedAt = time.Now()
		}
	}
	if m.ID == "" {
		if s.NewID != nil {
			m.ID = s.NewID(m.CreatedAt)
		} else {
			m.ID = NewID(m.CreatedAt)
		}
	}
	if s.Trace != nil {
		headers := maps.Clone(s.Trace(ctx))
		if len(headers) > 0 {
			maps.Copy(headers, m.Headers)
			m.Headers = headers
		}
	}
	if err := s.Routes.Apply(m); err != nil {
		return err
	}
	return m.Check()
}

// NewID returns a new UUID of version 7, whose first part is a time. Ids of one
// millisecond are in no order; messages are ordered by their number.
func NewID(at time.Time) string {
	var u [16]byte
	// It never fails; the program ends if the system has no chance to give.
	_, _ = rand.Read(u[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(u[:6], ms[2:])
	u[6] = 0x70 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
