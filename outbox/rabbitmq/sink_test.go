package rabbitmq_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/rabbitmq"
)

// A broker takes seconds to begin, so the tests of what it answers share one and
// have queues of their own.
func TestWhatABrokerAnswers(t *testing.T) {
	n := startNode(t)
	for name, test := range map[string]func(*testing.T, node){
		"a message carries the whole":        carriesTheWhole,        // O8, O-14
		"the order of a key holds":           orderHolds,             // O8, O-10
		"an oversize message harms its own":  oversizeHarmsItsOwn,    // O-23
		"five megabytes pass":                largePasses,            // O-23
		"a full queue breaks no order":       fullQueueBreaksNoOrder, // O-10, O-25
		"an unroutable message is an outage": unroutableIsAnOutage,   // O-25
		"a missing exchange is an outage":    missingExchange,        // O-25
		"a repeat has the same id":           repeatHasTheSameID,     // O-13
		"an exchange takes and routes":       exchangeRoutes,         // O8
		"a sink says what it promises":       describes,              // O-13
	} {
		t.Run(name, func(t *testing.T) { test(t, n) })
	}
}

func carriesTheWhole(t *testing.T, n node) {
	n.queue(t, queue, nil)
	m := order("o 1%", 1)
	m.Payload = []byte("\x00\xff\r\n")
	m.Headers = map[string]string{"traceparent": "00-ab-cd-01", "ce-type": "mine", "CC": "everybody", "x-delay": "1", "X Shop:": " 東京\r\n"}
	publish(t, n.sink(t, rabbitmq.Config{Source: "//shop"}), []outbox.Message{m})
	msgs := n.read(t, queue)
	if len(msgs) != 1 {
		t.Fatalf("%d messages, want 1", len(msgs))
	}
	got := msgs[0]
	if string(got.Body) != "\x00\xff\r\n" || got.MessageId != m.ID || got.Type != "order.placed" || got.ContentType != "application/json" ||
		got.DeliveryMode != amqp.Persistent || !got.Timestamp.Equal(m.CreatedAt) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{
		"ce-specversion": "1.0", "ce-id": m.ID, "ce-source": "//shop", "ce-type": "order.placed", "ce-subject": "o 1%",
		"ce-time": "2026-03-01T09:00:00Z", "ce-aggregatetype": "Order", "ce-tenant": "1", "ce-sequence": "00000000000000000001",
		"traceparent": "00-ab-cd-01", "header-ce-type": "mine", "header-CC": "everybody", "header-x-delay": "1", "X Shop:": " 東京\r\n",
	} {
		if got := got.Headers[name]; got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

func orderHolds(t *testing.T, n node) {
	n.queue(t, "ordered", quorum(nil))
	publish(t, n.sink(t, to("ordered")), orders(30, "a", "b", "c"))
	wantOrder(t, n.read(t, "ordered"), 30, "a", "b", "c")
}

// to sends everything to one queue.
func to(name string) rabbitmq.Config {
	return rabbitmq.Config{Key: func(*outbox.Message) string { return name }}
}

func oversizeHarmsItsOwn(t *testing.T, n node) {
	n.queue(t, "sized", nil)
	msgs := orders(3, "a", "b", "c")
	msgs[3].Payload = make([]byte, 4000) // a/2
	cfg := to("sized")
	cfg.MaxBytes = 3000
	for i, err := range n.sink(t, cfg).Publish(t.Context(), msgs) {
		switch {
		case i == 3 && !outbox.Refused(err):
			t.Errorf("the large message: %v, want a refusal", err)
		case i == 6 && !errors.Is(err, outbox.ErrHeld):
			t.Errorf("the message behind it: %v, want held", err)
		case i != 3 && i != 6 && err != nil:
			t.Errorf("message %s: %v", msgs[i].Payload, err)
		}
	}
	wantOrder(t, n.read(t, "sized"), 3, "b", "c")
}

func largePasses(t *testing.T, n node) {
	n.queue(t, "large", quorum(nil))
	m := order("a", 1)
	m.Payload = []byte(strings.Repeat("x", 5<<20))
	publish(t, n.sink(t, to("large")), []outbox.Message{m})
	if got := n.read(t, "large"); len(got) != 1 || string(got[0].Body) != string(m.Payload) {
		t.Errorf("%d messages", len(got))
	}
}

// The queue takes two messages and refuses the rest. Of each key, what was taken
// is its beginning.
func fullQueueBreaksNoOrder(t *testing.T, n node) {
	n.queue(t, "full", amqp.Table{"x-max-length": 2, "x-overflow": "reject-publish"})
	msgs := orders(4, "a", "b")
	s := n.sink(t, to("full"))
	refused := 0
	for i, err := range s.Publish(t.Context(), msgs) {
		switch {
		case err == nil, errors.Is(err, outbox.ErrHeld):
		case outbox.Excused(err) && strings.Contains(err.Error(), "full"):
			refused++
		default:
			t.Errorf("message %s: %v", msgs[i].Payload, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	got := n.read(t, "full")
	wantOrder(t, got, 0)
	publish(t, s, msgs[:2])
}

func unroutableIsAnOutage(t *testing.T, n node) {
	n.queue(t, "there", nil)
	cfg := rabbitmq.Config{Key: func(m *outbox.Message) string {
		return map[string]string{"a": "nowhere", "b": "there"}[m.AggregateID]
	}}
	got := n.sink(t, cfg).Publish(t.Context(), orders(2, "a", "b"))
	if !outbox.Excused(got[0]) || !strings.Contains(got[0].Error(), "declare a queue") || !errors.Is(got[2], outbox.ErrHeld) {
		t.Errorf("unroutable: %v, and behind it %v", got[0], got[2])
	}
	if got[1] != nil || got[3] != nil {
		t.Errorf("the others: %v, %v", got[1], got[3])
	}
	wantOrder(t, n.read(t, "there"), 2, "b")
}

func missingExchange(t *testing.T, n node) {
	s := n.sink(t, rabbitmq.Config{Exchange: "missing"})
	for range 2 {
		if got := s.Publish(t.Context(), orders(1, "a")); !outbox.Excused(got[0]) || !strings.Contains(got[0].Error(), "missing") {
			t.Errorf("%v", got[0])
		}
	}
	n.queue(t, "late", nil)
	ch := n.channel(t)
	if err := errors.Join(ch.ExchangeDeclare("missing", amqp.ExchangeFanout, false, false, false, false, nil), ch.QueueBind("late", "", "missing", false, nil)); err != nil {
		t.Fatal(err)
	}
	publish(t, s, orders(1, "a"))
	if err := ch.ExchangeDelete("missing", false, false); err != nil {
		t.Fatal(err)
	}
	if got := s.Publish(t.Context(), orders(2, "a")); !outbox.Excused(got[0]) || !strings.Contains(got[0].Error(), "NOT_FOUND") || !errors.Is(got[1], outbox.ErrHeld) {
		t.Errorf("after it was deleted: %v", got)
	}
}

func repeatHasTheSameID(t *testing.T, n node) {
	n.queue(t, "twice", nil)
	s := n.sink(t, to("twice"))
	publish(t, s, orders(1, "a"))
	publish(t, s, orders(1, "a"))
	if got := n.read(t, "twice"); len(got) != 2 || got[0].MessageId != got[1].MessageId {
		t.Errorf("messages %v", got)
	}
}

func exchangeRoutes(t *testing.T, n node) {
	n.queue(t, "routed", nil)
	ch := n.channel(t)
	if err := errors.Join(ch.ExchangeDeclare("shop", amqp.ExchangeTopic, true, false, false, false, nil), ch.QueueBind("routed", "outbox.event.#", "shop", false, nil)); err != nil {
		t.Fatal(err)
	}
	publish(t, n.sink(t, rabbitmq.Config{Exchange: "shop"}), orders(2, "a"))
	got := n.read(t, "routed")
	wantOrder(t, got, 2, "a")
	if got[0].Exchange != "shop" || got[0].RoutingKey != "outbox.event.Order" {
		t.Errorf("published to %s under %s", got[0].Exchange, got[0].RoutingKey)
	}
}

func describes(t *testing.T, n node) {
	text, err := n.sink(t, rabbitmq.Config{}).Describe(t.Context())
	if err != nil || !strings.Contains(text, "duplicate window: none") || !strings.HasPrefix(text, "rabbitmq 3.") && !strings.HasPrefix(text, "rabbitmq 4.") {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := n.sink(t, rabbitmq.Config{Exchange: "none"}).Describe(t.Context()); err == nil {
		t.Errorf("without its exchange it says %q", text)
	}
	for _, cfg := range []rabbitmq.Config{{}, {URL: "http://x"}} {
		if _, err := rabbitmq.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	for _, bad := range []string{"", strings.Repeat("k", 256)} {
		if got := n.sink(t, to(bad)).Publish(t.Context(), orders(1, "a")); !outbox.Refused(got[0]) {
			t.Errorf("key %.10q: %v, want a refusal", bad, got[0])
		}
	}
}

// A broker without memory takes nothing and says so; one that is stopped says
// nothing. Neither is waited for longer than the time-out, and neither gets later
// what was given up.
func TestABrokerThatTakesNothingIsNotWaitedFor(t *testing.T) {
	n := startNode(t, "vm_memory_high_watermark.absolute = 1000GB")
	n.queue(t, queue, nil)
	s := n.sink(t, rabbitmq.Config{Timeout: 2 * time.Second})
	publish(t, s, orders(1, "a"))

	n.control(t, "set_vm_memory_high_watermark", "absolute", "1MB")
	got := s.Publish(t.Context(), orders(1, "b"))
	if !outbox.Excused(got[0]) || !strings.Contains(got[0].Error(), "takes no messages now") && !strings.Contains(got[0].Error(), "connect") {
		t.Errorf("without memory: %v", got[0])
	}
	n.control(t, "set_vm_memory_high_watermark", "absolute", "1000GB")
	publish(t, s, orders(1, "c"))

	if err := n.Freeze(); err != nil {
		t.Fatal(err)
	}
	got = s.Publish(t.Context(), orders(2, "d"))
	if !errors.Is(got[0], context.DeadlineExceeded) || outbox.Excused(got[0]) || !errors.Is(got[1], outbox.ErrHeld) {
		t.Errorf("a silent broker: %v", got)
	}
	if err := n.Thaw(); err != nil {
		t.Fatal(err)
	}
	publish(t, s, orders(2, "d"))
	wantOrder(t, n.read(t, queue), 2, "d")
}

// control runs rabbitmqctl for the broker.
func (n node) control(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("/usr/lib/rabbitmq/bin/rabbitmqctl", args...)
	cmd.Env = n.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
}
