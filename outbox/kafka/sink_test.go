package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
)

// O8, O-14: key and topic are the aggregate's, the id is the message's.
func TestARecordCarriesTheWholeMessage(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		m := order("o-1", 1)
		m.Headers = map[string]string{"traceparent": "00-ab-cd-01", "id": "mine", "ce_type": "mine too", "X-Shop": "東京"}
		empty := order("o-1", 2)
		empty.Payload, empty.ContentType = nil, ""
		publish(t, b.sink(t, kafka.Config{Source: "//shop"}), []outbox.Message{m, empty})

		records := b.read(t, 2)
		r := records[0]
		if string(r.Key) != "o-1" || string(r.Value) != `"o-1/1"` || r.Topic != "outbox.event.Order" {
			t.Errorf("record %s %s=%s", r.Topic, r.Key, r.Value)
		}
		for name, want := range map[string]string{
			"id": m.ID, "content-type": "application/json", "ce_specversion": "1.0", "ce_id": m.ID, "ce_source": "//shop",
			"ce_type": "order.placed", "ce_subject": "o-1", "ce_time": "2026-03-01T09:00:00Z", "ce_aggregatetype": "Order",
			"ce_tenant": "1", "ce_sequence": "00000000000000000001",
			"traceparent": "00-ab-cd-01", "header-id": "mine", "header-ce_type": "mine too", "X-Shop": "東京",
		} {
			if got := header(r, name); got != want {
				t.Errorf("header %s is %q, want %q", name, got, want)
			}
		}
		if e := records[1]; e.Value == nil || len(e.Value) != 0 || header(e, "content-type") != "" {
			t.Errorf("a message without payload became %q (nil: %v)", e.Value, e.Value == nil)
		}
	})
}

// O-10: batches are lost, refused for the moment, or written and not answered,
// and still each aggregate's records stand in their order, none twice.
func TestARetryNeverLandsBehindALaterMessageOfItsKey(t *testing.T) {
	b := startBroker(t)
	s := b.sink(t, kafka.Config{})
	publish(t, s, orders(1, "a", "b", "c"))
	b.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: 1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 2}, // written, and not answered
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 1},
	)
	cut := 0
	b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if cut++; cut%2 == 1 && cut < 6 {
			b.KeepControl()
			return nil, errors.New("cut"), true // the connection breaks
		}
		return nil, nil, false
	})
	publish(t, s, orders(40, "a", "b", "c")[3:])

	wantOrder(t, b.read(t, 120), 40, false, "a", "b", "c")
	if got := b.count(t, topic); got != 120 {
		t.Errorf("the topic holds %d records, want 120", got)
	}
}

// O-23: what is too large for the sink's limit or for the topic's fails alone,
// and only its own aggregate waits.
func TestAnOversizeMessageHarmsOnlyItsOwnAggregate(t *testing.T) {
	for name, limit := range map[string]string{"limit of the sink": "1048588", "limit of the topic": "3000"} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": limit}))
			msgs := orders(3, "a", "b", "c")
			msgs[3].Payload = []byte(`"` + strings.Repeat("x", 4000) + `"`) // a/2
			cfg := kafka.Config{Options: []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())}}
			if limit != "3000" {
				cfg.MaxBytes = 3000
			}
			got := b.sink(t, cfg).Publish(t.Context(), msgs)
			for i, err := range got {
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
			wantOrder(t, b.read(t, 7), 3, false, "b", "c")
		})
	}
}

// A topic that is not there is the destination's fault, and no other topic's.
func TestAMissingTopicHoldsUpOnlyItsOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		s := b.sink(t, kafka.Config{Now: func() time.Time { return now }})
		msgs := orders(2, "a", "b")
		for i := range msgs {
			if msgs[i].AggregateID == "b" {
				msgs[i].AggregateType = "Parcel"
			}
		}
		got := s.Publish(t.Context(), msgs)
		if got[0] != nil || got[2] != nil {
			t.Errorf("the topic that is there: %v, %v", got[0], got[2])
		}
		if err := got[1]; err == nil || outbox.Refused(err) || !strings.Contains(err.Error(), "create it") {
			t.Errorf("the topic that is not there: %v, want an outage with advice", err)
		}
		if !errors.Is(got[3], outbox.ErrHeld) {
			t.Errorf("the message behind: %v, want held", got[3])
		}
		b.create(t, "outbox.event.Parcel", 1)
		if got := s.Publish(t.Context(), msgs[1:2]); got[0] == nil {
			t.Error("the topic is asked for again at once, want a pause")
		}
		now = now.Add(time.Minute)
		publish(t, s, []outbox.Message{msgs[1], msgs[3]})
		bad := order("a", 1)
		bad.AggregateType = "Order Line"
		if got := s.Publish(t.Context(), []outbox.Message{bad}); !outbox.Refused(got[0]) || !strings.Contains(got[0].Error(), `contains ' '`) {
			t.Errorf("a topic that cannot be: %v, want a refusal", got[0])
		}
	})
}

// O-25: while no broker answers, nothing is refused, and nothing is refused or
// out of order when it is back.
func TestADeadBrokerIsAnOutageAndNothingIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		s := b.sink(t, kafka.Config{Timeout: 500 * time.Millisecond})
		publish(t, s, orders(1, "a"))
		b.crash(t)
		for _, err := range s.Publish(t.Context(), orders(3, "a")[1:]) {
			if err == nil || outbox.Refused(err) {
				t.Errorf("without a broker: %v, want an outage", err)
			}
		}
		b.resume(t)
		untilPublished(t, s, orders(3, "a")[1:])
		wantOrder(t, b.read(t, 3), 3, true, "a")
	})
}

// O-10: what a call gave up is not sent behind its back, and what is sent next
// does not overtake it.
func TestWhatWasGivenUpIsNotSentLater(t *testing.T) {
	b := startBroker(t)
	s := b.sink(t, kafka.Config{Timeout: time.Second})
	publish(t, s, orders(1, "a"))
	swallowed := 0
	b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if swallowed++; swallowed == 1 {
			return nil, nil, true // neither written nor answered
		}
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	got := s.Publish(ctx, orders(3, "a")[1:])
	if got[0] == nil || outbox.Refused(got[0]) || !errors.Is(got[1], outbox.ErrHeld) {
		t.Fatalf("answers %v, want an outage and one held", got)
	}
	untilPublished(t, s, orders(3, "a")[1:])
	wantOrder(t, b.read(t, 3), 3, false, "a")
	if n := b.count(t, topic); n != 3 {
		t.Errorf("the topic holds %d records, want 3", n)
	}
}

// untilPublished repeats a call as a relay would, until all is delivered.
func untilPublished(t *testing.T, s *kafka.Sink, msgs []outbox.Message) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		results := s.Publish(t.Context(), msgs)
		err := errors.Join(results...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// O-13: who starts a relay is told what the destination drops by itself.
func TestDescribeNamesTheDuplicateWindow(t *testing.T) {
	s, err := kafka.New(kafka.Config{Brokers: []string{"127.0.0.1:1"}, MaxBytes: 77})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := s.Describe(t.Context())
	if err != nil || !strings.Contains(text, "duplicate window: none") || !strings.Contains(text, "77 bytes") {
		t.Errorf("%q, %v", text, err)
	}
	if s.MaxBytes() != 77 {
		t.Errorf("limit %d", s.MaxBytes())
	}
	if _, err := kafka.New(kafka.Config{}); err == nil || !strings.Contains(err.Error(), "Brokers") {
		t.Errorf("a sink without brokers: %v", err)
	}
}
