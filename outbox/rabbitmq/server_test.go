package rabbitmq_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/rabbitmq"
	"github.com/ringiflow/ringi/servertest"
)

const queue = outbox.TopicPrefix + "Order"

// node is a RabbitMQ broker in a process of its own.
type node struct{ *servertest.Server }

func startNode(t *testing.T, settings ...string) node {
	t.Helper()
	s, err := servertest.RabbitMQ(t.Context(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return node{s}
}

func (n node) url() string { return "amqp://guest:guest@" + n.Address() }

func (n node) sink(t *testing.T, cfg rabbitmq.Config) *rabbitmq.Sink {
	t.Helper()
	cfg.URL = n.url()
	s, err := rabbitmq.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (n node) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(n.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// queue declares a queue that survives a restart, or empties it.
func (n node) queue(t *testing.T, name string, args amqp.Table) {
	t.Helper()
	ch := n.channel(t)
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueuePurge(name, false); err != nil {
		t.Fatal(err)
	}
}

// quorum are the arguments of a quorum queue.
func quorum(more amqp.Table) amqp.Table {
	args := amqp.Table{"x-queue-type": "quorum"}
	for name, value := range more {
		args[name] = value
	}
	return args
}

// read takes all messages out of a queue, in their order.
func (n node) read(t *testing.T, name string) (msgs []amqp.Delivery) {
	t.Helper()
	ch := n.channel(t)
	for {
		d, ok, err := ch.Get(name, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return msgs
		}
		msgs = append(msgs, d)
	}
}

func id(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012x", n) }

// order is the seq-th message of an aggregate; the payload says which.
func order(aggregate string, seq int) outbox.Message {
	return outbox.Message{
		ID: id(int(aggregate[len(aggregate)-1])<<16 + seq), Tenant: 1,
		AggregateType: "Order", AggregateID: aggregate, Type: "order.placed", Seq: int64(seq),
		Payload: strconv.AppendQuote(nil, fmt.Sprintf("%s/%d", aggregate, seq)), ContentType: "application/json",
		CreatedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	}
}

// orders are count messages of each aggregate, mixed.
func orders(count int, aggregates ...string) (msgs []outbox.Message) {
	for seq := 1; seq <= count; seq++ {
		for _, a := range aggregates {
			msgs = append(msgs, order(a, seq))
		}
	}
	return msgs
}

func publish(t *testing.T, s *rabbitmq.Sink, msgs []outbox.Message) {
	t.Helper()
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Fatalf("message %d (%.60s): %v", i, msgs[i].Payload, err)
		}
	}
}

// wantOrder checks that each aggregate's messages are 1, 2, 3, … up to count.
// Repeats of what came before are none of its business: an inbox drops them.
func wantOrder(t *testing.T, msgs []amqp.Delivery, count int, aggregates ...string) {
	t.Helper()
	last, seen := map[string]int{}, map[string]bool{}
	for _, m := range msgs {
		if seen[m.MessageId] {
			continue
		}
		seen[m.MessageId] = true
		key := m.Headers["ce-subject"].(string)
		last[key]++
		if want := strconv.Quote(fmt.Sprintf("%s/%d", key, last[key])); string(m.Body) != want {
			t.Errorf("aggregate %s: %s arrived where %s was due", key, m.Body, want)
		}
	}
	for _, a := range aggregates {
		if last[a] != count {
			t.Errorf("aggregate %s: %d messages arrived, want %d", a, last[a], count)
		}
	}
}
