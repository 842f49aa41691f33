package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/redis"
)

// O8, O-14: stream and fields are the message's, byte for byte, and the id is fixed.
func TestAnEntryCarriesTheWholeMessage(t *testing.T) {
	n := startNode(t)
	m := order("o 1%", 1)
	m.Payload = []byte("\x00\xff\r\n")
	m.Headers = map[string]string{"traceparent": "00-ab-cd-01", "ce-type": "mine", "Data": "mine too", "X Shop:": " 東京\r\n"}
	publish(t, n.sink(t, redis.Config{Source: "//shop"}), []outbox.Message{m})
	entries := n.read(t, "outbox.event.Order")
	if len(entries) != 1 {
		t.Fatalf("%d entries, want 1", len(entries))
	}
	for name, want := range map[string]string{
		"data": "\x00\xff\r\n", "content-type": "application/json", "ce-specversion": "1.0", "ce-id": m.ID, "ce-source": "//shop",
		"ce-type": "order.placed", "ce-subject": "o 1%", "ce-time": "2026-03-01T09:00:00Z", "ce-aggregatetype": "Order",
		"ce-tenant": "1", "ce-sequence": "00000000000000000001",
		"traceparent": "00-ab-cd-01", "header-ce-type": "mine", "header-Data": "mine too", "X Shop:": " 東京\r\n",
	} {
		if got := entries[0].Values[name]; got != want {
			t.Errorf("field %s is %q, want %q", name, got, want)
		}
	}
}

// O-10, O8: many messages of few keys, and each key in its order, also when its
// messages go to two streams.
func TestTheOrderOfAKeyHolds(t *testing.T) {
	n := startNode(t)
	publish(t, n.sink(t, redis.Config{}), orders(30, "a", "b", "c"))
	wantOrder(t, n.read(t, stream), 30, "a", "b", "c")

	msgs := orders(4, "d")
	msgs[2].Type, msgs[2].Payload = "order.paid", make([]byte, 4000)
	byType := redis.Config{Stream: func(m *outbox.Message) string { return m.Type }, MaxBytes: 3000}
	got := n.sink(t, byType).Publish(t.Context(), msgs)
	if got[0] != nil || got[1] != nil || !outbox.Refused(got[2]) || !errors.Is(got[3], outbox.ErrHeld) {
		t.Errorf("answers %v, want two deliveries, a refusal and what it holds", got)
	}
	wantOrder(t, n.read(t, "order.placed"), 2, "d")
}

// O-23: what is too large fails alone, and only its own aggregate waits.
func TestAnOversizeMessageHarmsOnlyItsOwnAggregate(t *testing.T) {
	n := startNode(t)
	msgs := orders(3, "a", "b", "c")
	msgs[3].Payload = make([]byte, 4000) // a/2
	for i, err := range n.sink(t, redis.Config{MaxBytes: 3000}).Publish(t.Context(), msgs) {
		switch {
		case i == 3 && !outbox.Refused(err):
			t.Errorf("the large message: %v, want a refusal", err)
		case i == 6 && !errors.Is(err, outbox.ErrHeld):
			t.Errorf("the message behind it: %v, want held", err)
		case i != 3 && i != 6 && err != nil:
			t.Errorf("message %s: %v", msgs[i].Payload, err)
		}
	}
	wantOrder(t, n.read(t, stream), 3, "b", "c")
}

// O-23: five megabytes pass where they are allowed.
func TestALargeMessagePassesWhereItIsAllowed(t *testing.T) {
	n := startNode(t)
	m := order("a", 1)
	m.Payload = []byte(strings.Repeat("x", 5<<20))
	publish(t, n.sink(t, redis.Config{MaxBytes: 6 << 20}), []outbox.Message{m})
	if got := n.read(t, stream); len(got) != 1 || got[0].Values["data"] != string(m.Payload) {
		t.Errorf("%d entries", len(got))
	}
}

// O-25: memory is full, the stream's name is taken, no replica, no server: the
// destination's fault, which costs no attempt.
func TestWhatIsTheDestinationsFaultCostsNoAttempt(t *testing.T) {
	full := startNode(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	taken := startNode(t)
	if err := taken.client(t).Set(t.Context(), stream, "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	gone := startNode(t)
	if err := gone.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		node node
		want string
	}{"full": {full, "OOM"}, "taken": {taken, "WRONGTYPE"}, "gone": {gone, "connect"}} {
		t.Run(name, func(t *testing.T) {
			for i, err := range tc.node.sink(t, redis.Config{}).Publish(t.Context(), orders(1, "a", "b")) {
				if !outbox.Excused(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("message %d: %v, want an excuse that says %q", i, err, tc.want)
				}
			}
		})
	}
}

// A server that says nothing is not waited for longer than the time-out, and one
// without the replicas that were asked for has not delivered.
func TestWhatIsNotAnsweredInTimeIsNotDelivered(t *testing.T) {
	n := startNode(t)
	if got := n.sink(t, redis.Config{Timeout: time.Second, Replicas: 1}).Publish(t.Context(), orders(1, "a")); !errors.Is(got[0], context.DeadlineExceeded) || !strings.Contains(got[0].Error(), "0 of 1") {
		t.Errorf("without a replica: %v", got[0])
	}
	s := n.sink(t, redis.Config{Timeout: time.Second})
	publish(t, s, orders(1, "b"))
	client := n.client(t)
	if err := client.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	if got := s.Publish(t.Context(), orders(1, "c")); !errors.Is(got[0], context.DeadlineExceeded) || outbox.Excused(got[0]) {
		t.Errorf("a silent server: %v", got[0])
	}
}

// O-13: a repeat arrives under its id.
func TestARepeatHasTheSameId(t *testing.T) {
	n := startNode(t)
	s := n.sink(t, redis.Config{})
	publish(t, s, orders(1, "a"))
	publish(t, s, orders(1, "a"))
	got := n.read(t, stream)
	if len(got) != 2 || got[0].Values[redis.FieldID] != got[1].Values[redis.FieldID] {
		t.Errorf("entries %v", got)
	}
}

// A stream that is bounded forgets its oldest entries.
func TestAStreamKeepsAboutAsManyAsItShould(t *testing.T) {
	n := startNode(t)
	s := n.sink(t, redis.Config{Keep: 100})
	for range 20 {
		publish(t, s, orders(50, "a"))
	}
	if got := len(n.read(t, stream)); got < 100 || got > 300 {
		t.Errorf("%d entries are kept, want about 100", got)
	}
}

func TestDescribeSaysWhenAMessageIsOnDisk(t *testing.T) {
	for want, settings := range map[string][]string{
		"on disk;":        nil,
		"about a second":  {"--appendfsync", "everysec"},
		"in memory only":  {"--appendonly", "no"},
		"appendfsync no)": {"--appendfsync", "no"},
	} {
		text, err := startNode(t, settings...).sink(t, redis.Config{}).Describe(t.Context())
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: %q, %v, want %q", settings, text, err, want)
		}
	}
	for _, cfg := range []redis.Config{{}, {URL: "http://x"}, {URL: "http://x", Cluster: true}} {
		if _, err := redis.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
