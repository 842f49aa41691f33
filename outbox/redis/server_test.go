package redis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	redisgo "github.com/redis/go-redis/v9"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/redis"
	"github.com/ringiflow/ringi/servertest"
)

const stream = outbox.TopicPrefix + "Order"

// node is a Redis server in a process of its own.
type node struct{ *servertest.Server }

func startNode(t *testing.T, settings ...string) node {
	t.Helper()
	s, err := servertest.Redis(t.Context(), settings...)
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

func (n node) sink(t *testing.T, cfg redis.Config) *redis.Sink {
	t.Helper()
	cfg.URL = "redis://" + n.Address()
	s, err := redis.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (n node) client(t *testing.T) *redisgo.Client {
	t.Helper()
	c := redisgo.NewClient(&redisgo.Options{Addr: n.Address()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// read returns all entries of a stream in their order.
func (n node) read(t *testing.T, stream string) []redisgo.XMessage {
	t.Helper()
	entries, err := n.client(t).XRange(t.Context(), stream, "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	return entries
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

func publish(t *testing.T, s *redis.Sink, msgs []outbox.Message) {
	t.Helper()
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Fatalf("message %d (%s): %v", i, msgs[i].Payload, err)
		}
	}
}

// wantOrder checks that each aggregate's messages are 1, 2, 3, … up to count.
// Repeats of what came before are none of its business: an inbox drops them.
func wantOrder(t *testing.T, entries []redisgo.XMessage, count int, aggregates ...string) {
	t.Helper()
	last, seen := map[string]int{}, map[any]bool{}
	for _, e := range entries {
		if seen[e.Values[redis.FieldID]] {
			continue
		}
		seen[e.Values[redis.FieldID]] = true
		key := e.Values["ce-subject"].(string)
		last[key]++
		if want := strconv.Quote(fmt.Sprintf("%s/%d", key, last[key])); e.Values[redis.FieldData] != want {
			t.Errorf("aggregate %s: %s arrived where %s was due", key, e.Values[redis.FieldData], want)
		}
	}
	for _, a := range aggregates {
		if last[a] != count {
			t.Errorf("aggregate %s: %d messages arrived, want %d", a, last[a], count)
		}
	}
}
