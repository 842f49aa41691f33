package outbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi/outbox"
)

// begin is the first moment of every virtual clock in these tests.
var begin = time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC)

// id returns the n-th message id.
func id(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012x", n) }

// order returns a message about an order of tenant 1.
func order(n int, aggregate string) outbox.Message {
	return outbox.Message{
		ID: id(n), Tenant: 1, AggregateType: "Order", AggregateID: aggregate, Type: "order.placed",
		Payload: []byte(`{"n":1}`), ContentType: "application/json", CreatedAt: begin,
	}
}

func TestCheckNamesTheFaultyField(t *testing.T) {
	long := strings.Repeat("x", outbox.MaxName+1)
	for _, tc := range []struct {
		name   string
		change func(*outbox.Message)
		want   string // empty: accepted
	}{
		{"a usual message", func(*outbox.Message) {}, ""},
		{"the least message", func(m *outbox.Message) { m.Payload, m.ContentType, m.Tenant = nil, "", 0 }, ""},
		{"the longest name", func(m *outbox.Message) { m.AggregateID = long[1:] }, ""},
		{"the largest payload", func(m *outbox.Message) { m.Payload = make([]byte, outbox.MaxPayload) }, ""},
		{"no id", func(m *outbox.Message) { m.ID = "" }, "message id"},
		{"an id in capitals", func(m *outbox.Message) { m.ID = strings.ToUpper(id(0xab)) }, "message id"},
		{"an id without hyphens", func(m *outbox.Message) { m.ID = strings.ReplaceAll(id(1), "-", "0") }, "message id"},
		{"a negative tenant", func(m *outbox.Message) { m.Tenant = -1 }, "tenant"},
		{"no aggregate type", func(m *outbox.Message) { m.AggregateType = "" }, "aggregate type is empty"},
		{"no aggregate id", func(m *outbox.Message) { m.AggregateID = "" }, "aggregate id is empty"},
		{"no type", func(m *outbox.Message) { m.Type = "" }, "type is empty"},
		{"a long type", func(m *outbox.Message) { m.Type = long }, "type has 257 bytes"},
		{"a NUL in a name", func(m *outbox.Message) { m.AggregateID = "a\x00b" }, "aggregate id contains a NUL"},
		{"a name that is not UTF-8", func(m *outbox.Message) { m.Type = "a\xff" }, "type is not valid UTF-8"},
		{"a long content type", func(m *outbox.Message) { m.ContentType = long }, "content type"},
		{"a payload too large", func(m *outbox.Message) { m.Payload = make([]byte, outbox.MaxPayload+1) }, "payload has 262145 bytes"}, // O-23
		{"no time", func(m *outbox.Message) { m.CreatedAt = time.Time{} }, "created at is not set"},
		{"a time out of range", func(m *outbox.Message) { m.CreatedAt = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) }, "created at is in the year"},
		{"a header without a name", func(m *outbox.Message) { m.Headers = map[string]string{"": "v"} }, "headers have an empty name"},
		{"a header with NUL", func(m *outbox.Message) { m.Headers = map[string]string{"a": "\x00"} }, `header "a" contains a NUL`},
		{"headers too large", func(m *outbox.Message) {
			m.Headers = map[string]string{"a": strings.Repeat("v", outbox.MaxHeaders)}
		}, "headers have 16385 bytes"},
	} {
		m := order(1, "o-1")
		tc.change(&m)
		err := m.Check()
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(id(1), "Order", "o-1", "order.placed", "application/json", "traceparent", "00-aa-bb-01", []byte(`{}`))
	f.Add("", "", "", "", "", "", "", []byte(nil))
	f.Add(id(2), "a\x00", "\xff", "t", "text/plain", "X", "\n", []byte{0})
	f.Fuzz(func(t *testing.T, msgID, aggregateType, aggregateID, typ, contentType, header, value string, payload []byte) {
		m := outbox.Message{
			ID: msgID, AggregateType: aggregateType, AggregateID: aggregateID, Type: typ, ContentType: contentType,
			Headers: map[string]string{header: value}, Payload: payload, CreatedAt: begin,
		}
		if err := m.Check(); err != nil {
			if len(err.Error()) > 1024 {
				t.Errorf("an error of %d bytes repeats its input", len(err.Error()))
			}
			return
		}
		for _, s := range []string{msgID, aggregateType, aggregateID, typ, contentType, header, value} {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
				t.Errorf("accepted %q", s)
			}
		}
		if len(typ) > outbox.MaxName || len(payload) > outbox.MaxPayload {
			t.Errorf("accepted a type of %d and a payload of %d bytes", len(typ), len(payload))
		}
	})
}
