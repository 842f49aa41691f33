package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/nats"
)

// O8, O-14: subject and headers are the message's, and the id is fixed.
func TestAStreamMessageCarriesTheWholeMessage(t *testing.T) {
	n := startStream(t)
	m := order("o 1%", 1)
	m.Headers = map[string]string{
		"traceparent": "00-ab-cd-01", "baggage": "a=b, c=d", "ce-type": "mine", "Nats-Rollup": "all", "X Shop:": " 東京\r\n",
	}
	publish(t, n.sink(t, nats.Config{Source: "//shop", Stream: stream}), []outbox.Message{m, order("a", 1)})
	msgs := n.read(t)
	if len(msgs) != 2 {
		t.Fatalf("%d messages, want 2: a header was taken for an order", len(msgs))
	}
	got := msgs[0]
	if got.Subject != "outbox.event.Order" || string(got.Data) != `"o 1%/1"` {
		t.Errorf("%s: %s", got.Subject, got.Data)
	}
	for name, want := range map[string]string{
		"Nats-Msg-Id": m.ID, "content-type": "application/json", "ce-specversion": "1.0", "ce-id": m.ID, "ce-source": "//shop",
		"ce-type": "order.placed", "ce-subject": "o%201%25", "ce-time": "2026-03-01T09:00:00Z", "ce-aggregatetype": "Order",
		"ce-tenant": "1", "ce-sequence": "00000000000000000001",
		"traceparent": "00-ab-cd-01", "baggage": "a=b, c=d", "header-ce-type": "mine", "header-Nats-Rollup": "all",
		"X%20Shop%3A": "%20%E6%9D%B1%E4%BA%AC%0D%0A",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

// O-10, O8: many messages of few keys, and each key in its order.
func TestTheOrderOfAKeyHolds(t *testing.T) {
	n := startStream(t)
	publish(t, n.sink(t, nats.Config{}), orders(30, "a", "b", "c"))
	wantOrder(t, n.read(t), 30, "a", "b", "c")
}

// O-11: the same id within the window is dropped by the stream and answered as
// delivered; an unordered message too.
func TestARepeatWithinTheWindowIsDropped(t *testing.T) {
	n := startStream(t)
	msgs := orders(3, "a", "b")
	msgs[1].Unordered, msgs[1].Seq = true, 0
	publish(t, n.sink(t, nats.Config{}), msgs)
	publish(t, n.sink(t, nats.Config{}), msgs)
	if got := n.read(t); len(got) != 6 {
		t.Errorf("the stream holds %d messages, want 6", len(got))
	}
}

// O-23: what is too large for the sink, the server or the stream fails alone,
// and only its own aggregate waits.
func TestAnOversizeMessageHarmsOnlyItsOwnAggregate(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg    nats.Config
		server func(*server.Options)
		stream int32
	}{
		"limit of the sink":   {cfg: nats.Config{MaxBytes: 3000}},
		"limit of the server": {server: func(o *server.Options) { o.MaxPayload = 3000 }},
		"limit of the stream": {stream: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, tc.server)
			n.listen(t, jetstream.StreamConfig{Name: stream, Subjects: []string{outbox.TopicPrefix + ">"}, MaxMsgSize: tc.stream})
			msgs := orders(3, "a", "b", "c")
			msgs[3].Payload = []byte(`"` + strings.Repeat("x", 4000) + `"`) // a/2
			for i, err := range n.sink(t, tc.cfg).Publish(t.Context(), msgs) {
				switch {
				case i == 3:
					if !outbox.Refused(err) {
						t.Errorf("the large message: %v, want a refusal", err)
					}
				case i == 6:
					if !errors.Is(err, outbox.ErrHeld) {
						t.Errorf("the message behind it: %v, want held", err)
					}
				case err != nil:
					t.Errorf("message %s: %v", msgs[i].Payload, err)
				}
			}
			wantOrder(t, n.read(t), 3, "b", "c")
		})
	}
}

// O-25: no stream, a full stream, another stream than the one named: the
// destination's fault. A subject that cannot be is the message's.
func TestWhatIsTheDestinationsFaultIsNoRefusal(t *testing.T) {
	n := startNode(t, nil)
	msgs := orders(2, "a")
	for name, tc := range map[string]struct {
		streams []jetstream.StreamConfig
		want    string
	}{
		"no stream":   {nil, "create a stream"},
		"full stream": {[]jetstream.StreamConfig{{Name: "FULL", Subjects: []string{"full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew}}, "maximum messages"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := nats.Config{Timeout: 2 * time.Second}
			for _, s := range tc.streams {
				n.listen(t, s)
				cfg.Subject = func(*outbox.Message) string { return "full.x" }
				publish(t, n.sink(t, cfg), orders(1, "z"))
			}
			got := n.sink(t, cfg).Publish(t.Context(), msgs)
			if got[0] == nil || outbox.Refused(got[0]) || !strings.Contains(got[0].Error(), tc.want) {
				t.Errorf("%v, want an outage that says %q", got[0], tc.want)
			}
			if !errors.Is(got[1], outbox.ErrHeld) {
				t.Errorf("the message behind: %v, want held", got[1])
			}
		})
	}
	for _, bad := range []string{"", "a..b", "a b", "a.*", "$JS.API.x"} {
		s := n.sink(t, nats.Config{Subject: func(*outbox.Message) string { return bad }})
		if got := s.Publish(t.Context(), msgs[:1]); !outbox.Refused(got[0]) {
			t.Errorf("subject %q: %v, want a refusal", bad, got[0])
		}
	}
}

// O-13: who starts a relay is told the window of the streams as they are.
func TestDescribePrintsTheEffectiveWindow(t *testing.T) {
	n := startNode(t, nil)
	s := n.sink(t, nats.Config{})
	if _, err := s.Describe(t.Context()); err == nil || !strings.Contains(err.Error(), "create one") {
		t.Errorf("without a stream: %v, want advice", err)
	}
	n.listen(t, jetstream.StreamConfig{Name: "A", Subjects: []string{"outbox.event.Order"}})
	n.listen(t, jetstream.StreamConfig{Name: "B", Subjects: []string{"outbox.event.Parcel"}, Duplicates: 30 * time.Second})
	n.listen(t, jetstream.StreamConfig{Name: "C", Subjects: []string{"other"}, Duplicates: time.Second, Storage: jetstream.MemoryStorage})
	text, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stream A (file, replicas: 1) drops repeats for 2m0s", "stream B (file, replicas: 1) drops repeats for 30s", "1048576 bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if window, err := s.Window(t.Context()); err != nil || window != 30*time.Second {
		t.Errorf("window %s, %v, want the shortest", window, err)
	}
	if window, err := n.sink(t, nats.Config{Stream: "C"}).Window(t.Context()); err != nil || window != time.Second {
		t.Errorf("window of the named stream %s, %v", window, err)
	}
	if got := n.sink(t, nats.Config{Stream: "C"}).Publish(t.Context(), orders(1, "a")); got[0] == nil || outbox.Refused(got[0]) {
		t.Errorf("a message that another stream took: %v, want a failure", got[0])
	}
	if _, err := nats.New(nats.Config{}); err == nil || !strings.Contains(err.Error(), "Servers") {
		t.Errorf("a sink without servers: %v", err)
	}
}
