package kafka_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
)

const topic = outbox.TopicPrefix + "Order"

// broker is a Kafka cluster of one node in this process, with its log on disk
// and an address that it keeps over a restart.
type broker struct {
	*kfake.Cluster
	address string
	options []kfake.Opt
}

func startBroker(t *testing.T, more ...kfake.Opt) *broker {
	t.Helper()
	b := &broker{options: append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(2, topic), kfake.DataDir(t.TempDir()), kfake.SyncWrites(),
	}, more...)}
	b.start(t)
	_, port, err := net.SplitHostPort(b.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	b.address = b.ListenAddrs()[0]
	b.options = append(b.options, kfake.Ports(number))
	t.Cleanup(func() { b.Close() })
	return b
}

// start begins a broker; after Close it is the same one, restarted.
func (b *broker) start(t *testing.T) {
	t.Helper()
	cluster, err := kfake.NewCluster(b.options...)
	if err != nil {
		t.Fatal(err)
	}
	b.Cluster = cluster
}

func (b *broker) sink(t *testing.T, cfg kafka.Config) *kafka.Sink {
	t.Helper()
	cfg.Brokers = []string{b.address}
	s, err := kafka.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// read returns the first n records of the topics, those of a partition in order.
func (b *broker) read(t *testing.T, n int, topics ...string) []*kgo.Record {
	t.Helper()
	if len(topics) == 0 {
		topics = []string{topic}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d records arrived, want %d: %v", len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// count is the number of records that the topic's partitions hold.
func (b *broker) count(name string) (n int) {
	for _, p := range b.PartitionInfos(name) {
		n += int(p.HighWatermark)
	}
	return n
}

func id(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012x", n) }

// order is the seq-th message of an aggregate; the payload says which.
func order(aggregate string, seq int) outbox.Message {
	return outbox.Message{
		ID: id(len(aggregate)<<32 + int(aggregate[len(aggregate)-1])<<16 + seq), Tenant: 1,
		AggregateType: "Order", AggregateID: aggregate, Type: "order.placed", Seq: int64(seq),
		Payload: fmt.Appendf(nil, `"%s/%d"`, aggregate, seq), ContentType: "application/json",
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

// publish calls the sink and complains about every answer that is not nil.
func publish(t *testing.T, s *kafka.Sink, msgs []outbox.Message) {
	t.Helper()
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Fatalf("message %d (%s): %v", i, msgs[i].Payload, err)
		}
	}
}

// wantOrder checks that each aggregate's records carry 1, 2, 3, … up to count.
// A repeat of what came before is allowed only if repeats says so.
func wantOrder(t *testing.T, records []*kgo.Record, count int, repeats bool, aggregates ...string) {
	t.Helper()
	last := map[string]int{}
	for _, r := range records {
		key := string(r.Key)
		next := fmt.Sprintf(`"%s/%d"`, key, last[key]+1)
		switch got := string(r.Value); {
		case got == next:
			last[key]++
		case repeats && got <= next:
		default:
			t.Errorf("aggregate %s: %s arrived where %s was due", key, got, next)
		}
	}
	for _, a := range aggregates {
		if last[a] != count {
			t.Errorf("aggregate %s: %d messages arrived, want %d", a, last[a], count)
		}
	}
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
