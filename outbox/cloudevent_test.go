package outbox_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi/outbox"
)

func TestCloudEventCarriesTheWholeMessage(t *testing.T) {
	base := order(7, "o-1")
	for _, tc := range []struct {
		name   string
		change func(*outbox.Message)
		source string
		want   string
	}{
		{
			"JSON stays JSON on one line, digit for digit",
			func(m *outbox.Message) {
				m.Seq, m.Payload = 12, []byte("{\n  \"amount\": 9007199254740993.10,\n \"t\": \"<&>\" }")
			},
			"",
			`{"specversion":"1.0","id":"01890000-0000-7000-8000-000000000007","source":"ringi","type":"order.placed","subject":"o-1",` +
				`"time":"2026-03-01T09:00:00.123456Z","aggregatetype":"Order","tenant":"1","sequence":"00000000000000000012",` +
				`"datacontenttype":"application/json","data":{"amount":9007199254740993.10,"t":"<&>"}}`,
		},
		{
			"headers become attributes where they may",
			func(m *outbox.Message) {
				m.Payload = nil
				m.Headers = map[string]string{"traceparent": "00-ab-cd-01", "X-Shop": "tokyo", "id": "other", "note": "a\nb"}
			},
			"//shop/orders",
			`{"specversion":"1.0","id":"01890000-0000-7000-8000-000000000007","source":"//shop/orders","type":"order.placed","subject":"o-1",` +
				`"time":"2026-03-01T09:00:00.123456Z","aggregatetype":"Order","tenant":"1","traceparent":"00-ab-cd-01",` +
				`"headers":"{\"X-Shop\":\"tokyo\",\"id\":\"other\",\"note\":\"a\\nb\"}","datacontenttype":"application/json"}`,
		},
		{
			"text is text",
			func(m *outbox.Message) {
				m.ContentType, m.Payload = "text/plain; charset=utf-8", []byte("稟議\u2028\"ok\"")
			},
			"",
			`{"specversion":"1.0","id":"01890000-0000-7000-8000-000000000007","source":"ringi","type":"order.placed","subject":"o-1",` +
				`"time":"2026-03-01T09:00:00.123456Z","aggregatetype":"Order","tenant":"1",` +
				`"datacontenttype":"text/plain; charset=utf-8","data":"稟議\u2028\"ok\""}`,
		},
		{
			"what claims to be JSON and is not travels as bytes",
			func(m *outbox.Message) { m.ContentType, m.Payload = "", []byte(`{"a":`) },
			"",
			`{"specversion":"1.0","id":"01890000-0000-7000-8000-000000000007","source":"ringi","type":"order.placed","subject":"o-1",` +
				`"time":"2026-03-01T09:00:00.123456Z","aggregatetype":"Order","tenant":"1","data_base64":"eyJhIjo="}`,
		},
	} {
		m := base
		tc.change(&m)
		if got := string(outbox.AppendCloudEvent(nil, tc.source, &m)); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func FuzzCloudEvent(f *testing.F) {
	f.Add("Order", "o-1", "order.placed", "application/json", "traceparent", "00-aa", []byte(`{"a":[1,2]}`), int64(3))
	f.Add("\x00\xff", "\"\\", "\u2028", "text/plain", "X-Y", "\x7f\n", []byte("\xff\x00"), int64(0))
	f.Add("", "", "", "application/vnd.x+json", "id", "", []byte("\"\xff\""), int64(-1))
	f.Fuzz(func(t *testing.T, aggregateType, aggregateID, typ, contentType, header, value string, payload []byte, seq int64) {
		m := outbox.Message{
			ID: id(1), AggregateType: aggregateType, AggregateID: aggregateID, Type: typ, ContentType: contentType,
			Headers: map[string]string{header: value}, Payload: payload, Seq: seq, CreatedAt: time.Unix(0, 0),
		}
		line := outbox.AppendCloudEvent(nil, "", &m)
		if bytes.ContainsAny(line, "\n\r") || !utf8.Valid(line) {
			t.Fatalf("not one line of UTF-8: %q", line)
		}
		var e struct {
			ID      string          `json:"id"`
			Subject string          `json:"subject"`
			Type    string          `json:"type"`
			Data    json.RawMessage `json:"data"`
			Base64  *string         `json:"data_base64"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.ID != m.ID || (utf8.ValidString(typ) && e.Type != typ) || (utf8.ValidString(aggregateID) && e.Subject != aggregateID) {
			t.Errorf("got id %q type %q subject %q", e.ID, e.Type, e.Subject)
		}
		switch {
		case len(payload) == 0:
			if e.Data != nil || e.Base64 != nil {
				t.Errorf("data out of nothing: %s", line)
			}
		case e.Base64 != nil:
			if got, err := base64.StdEncoding.DecodeString(*e.Base64); err != nil || !bytes.Equal(got, payload) {
				t.Errorf("got bytes %q, %v", got, err)
			}
		case e.Data == nil:
			t.Errorf("the payload is lost: %s", line)
		}
	})
}
