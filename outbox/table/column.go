package table

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// Never is a time after every other, in microseconds: when a parked message is
// due. It is the last second of the year 9999, which every database stores.
const Never = 253402300799000000

// Dawn is the first time that a message can have been written at, in microseconds:
// the beginning of the year 1. Between it and Never every format has a text.
const Dawn = -62135596800000000

// Time is the one way from a stored time, in microseconds, to a time.
func Time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Share is the most partitions that one of n relays has.
func Share(n int) int { return (outbox.Partitions + n - 1) / n }

// Settled is what a mark makes of a row that was not delivered: its state, when it
// is due, if that changes, and how many attempts are given back.
func Settled(m *outbox.Mark) (state outbox.State, nextAt *time.Time, back int) {
	switch m.Outcome {
	case outbox.MarkDead:
		return outbox.Dead, nil, 0
	case outbox.MarkParked:
		at := Time(Never)
		return outbox.Parked, &at, 0
	case outbox.MarkReleased:
		return outbox.Pending, &m.NextAt, 1
	}
	return outbox.Pending, &m.NextAt, 0
}

// Read takes the columns that another writer may have filled with what no message
// can hold; dated tells whether created_at is a time that a message can have. One
// odd row must not stop the claim of all others.
func Read(m *outbox.ClaimedMessage, headers string, dated bool) {
	var err error
	if m.Headers, err = DecodeHeaders(headers); err != nil {
		m.Unreadable = fmt.Sprintf("its column headers is not a JSON object of texts (%v); repair it, and send it with ringi outbox retry", err)
	}
	if !dated {
		m.Unreadable = "its column created_at is no time between the years 1 and 9999; give it one, such as that of now, and send it with ringi outbox retry"
	}
}

// EncodeHeaders returns what the column headers holds.
func EncodeHeaders(h map[string]string) (string, error) {
	if len(h) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(h)
	return string(b), err
}

// DecodeHeaders reads the column headers, which the schema keeps an object. A
// value that is not a text, from another writer, comes as its JSON: one odd row
// must not stop the claim of all others.
func DecodeHeaders(text string) (map[string]string, error) {
	if text == "{}" {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	h := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		h[name] = s
	}
	return h, nil
}

// Numbers is a list as a text that a database makes an array of.
func Numbers(list []int64, open, end byte) string {
	text := []byte{open}
	for i, n := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return string(append(text, end))
}

// Whole is what a row has besides that by which it is chosen.
type Whole struct {
	Payload                    []byte // nil if it is large
	Type, ContentType, Headers string
	Created                    int64 // microseconds
	Attempts                   int
	Part                       int
}

// Message is the row as it is after its claim.
func (w *Whole) Message(r *Row, destination string) outbox.ClaimedMessage {
	m := outbox.ClaimedMessage{
		Message: outbox.Message{
			ID: r.ID, Tenant: r.Key.Tenant, AggregateType: r.Key.AggregateType, AggregateID: r.Key.AggregateID, Type: w.Type, Payload: w.Payload,
			ContentType: w.ContentType, Destination: destination, Unordered: r.Seq == 0, Seq: r.Seq,
		},
		Attempt: w.Attempts + 1, Orphaned: r.State == outbox.Claimed, Epoch: r.Epoch + 1,
	}
	dated := w.Created >= Dawn && w.Created <= Never
	if dated {
		m.CreatedAt = Time(w.Created)
	}
	Read(&m, w.Headers, dated)
	return m
}
