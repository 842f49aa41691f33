package kafka_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/servertest"
)

const topic = outbox.TopicPrefix + "Order"

// broker is a Kafka cluster of one node with its log on disk and an address that
// it keeps over a restart: one in this process, with faults on order, or a real one
// in a process of its own.
type broker struct {
	*kfake.Cluster // nil: a real one
	real           *servertest.Server
	address        string
	options        []kfake.Opt
}

// startBroker starts a broker in this process. Its topic has two partitions.
func startBroker(t *testing.T, more ...kfake.Opt) *broker {
	t.Helper()
	b := &broker{options: append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(2, topic), kfake.DataDir(t.TempDir()), kfake.SyncWrites(),
	}, more...)}
	b.resume(t)
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

// realBroker is Kafka itself, without the topics of earlier tests. settings are those
// of its topic, such as "max.message.bytes=3000".
func realBroker(t *testing.T, settings ...string) *broker {
	t.Helper()
	s := sharedServer(t)
	b := &broker{real: s, address: s.Address()}
	b.clear(t)
	b.create(t, topic, 2, settings...)
	return b
}

// onBoth runs a test with a broker in this process and with Kafka itself.
func onBoth(t *testing.T, test func(t *testing.T, b *broker)) {
	t.Run("in process", func(t *testing.T) { test(t, startBroker(t)) })
	t.Run("real", func(t *testing.T) { test(t, realBroker(t)) })
}

// crash ends a broker as kill -9 does.
func (b *broker) crash(t *testing.T) {
	t.Helper()
	if b.real == nil {
		b.Close()
	} else if err := b.real.Crash(); err != nil {
		t.Fatal(err)
	}
}

// resume begins a broker; after crash it is the same one, restarted.
func (b *broker) resume(t *testing.T) {
	t.Helper()
	var err error
	if b.real == nil {
		b.Cluster, err = kfake.NewCluster(b.options...)
	} else {
		err = b.real.Resume(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// client is a client of the broker's own kind, for what a test asks directly.
func (b *broker) client(t *testing.T) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// create makes a topic and waits until the broker gives it out.
func (b *broker) create(t *testing.T, name string, partitions int32, settings ...string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = name, partitions, 1
	for _, s := range settings {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		key, value, _ := strings.Cut(s, "=")
		c.Name, c.Value = key, &value
		made.Configs = append(made.Configs, c)
	}
	req.Topics = append(req.Topics, made)
	resp, err := req.RequestWith(t.Context(), b.client(t))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	b.await(t, "the topic "+name+" with its partitions", func(topics map[string][]kmsg.MetadataResponseTopicPartition) bool {
		led := 0
		for _, p := range topics[name] {
			if p.Leader >= 0 {
				led++
			}
		}
		return led == int(partitions)
	})
}

// topics are the partitions of all topics but those of Kafka itself.
func (b *broker) topics(t *testing.T, client *kgo.Client) map[string][]kmsg.MetadataResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	topics := map[string][]kmsg.MetadataResponseTopicPartition{}
	for _, topic := range resp.Topics {
		if !topic.IsInternal {
			topics[*topic.Topic] = topic.Partitions
		}
	}
	return topics
}

// await waits until the broker, which learns of changes from its controller a
// moment later, says of its topics what is asked.
func (b *broker) await(t *testing.T, what string, ok func(map[string][]kmsg.MetadataResponseTopicPartition) bool) {
	t.Helper()
	client := b.client(t)
	deadline := time.Now().Add(30 * time.Second)
	for !ok(b.topics(t, client)) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// clear removes all topics but those of Kafka itself.
func (b *broker) clear(t *testing.T) {
	t.Helper()
	client := b.client(t)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 20_000
	for name := range b.topics(t, client) {
		one := kmsg.NewDeleteTopicsRequestTopic()
		one.Topic = &name
		req.Topics, req.TopicNames = append(req.Topics, one), append(req.TopicNames, name)
	}
	if len(req.Topics) == 0 {
		return
	}
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range resp.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			t.Fatalf("delete topic %s: %v", *topic.Topic, err)
		}
	}
	b.await(t, "no topics", func(topics map[string][]kmsg.MetadataResponseTopicPartition) bool { return len(topics) == 0 })
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
	return b.readUntil(t, func(records []*kgo.Record) bool { return len(records) >= n }, topics...)
}

// readUntil returns the records of the topics as soon as there are enough, those of
// a partition in order.
func (b *broker) readUntil(t *testing.T, enough func([]*kgo.Record) bool, topics ...string) []*kgo.Record {
	t.Helper()
	if len(topics) == 0 {
		topics = []string{topic}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var records []*kgo.Record
	for !enough(records) {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d records arrived, too few: %v", len(records), err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// count is the number of records that the topic's partitions hold.
func (b *broker) count(t *testing.T, name string) (n int) {
	t.Helper()
	client := b.client(t)
	req := kmsg.NewPtrListOffsetsRequest()
	asked := kmsg.NewListOffsetsRequestTopic()
	asked.Topic = name
	for _, p := range b.topics(t, client)[name] {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p.Partition, -1 // the end
		asked.Partitions = append(asked.Partitions, partition)
	}
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range resp.Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			t.Fatal(err)
		}
		n += int(p.Offset)
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
		key, seq := string(r.Key), 0
		if _, err := fmt.Sscanf(string(r.Value), `"`+key+`/%d"`, &seq); err != nil {
			t.Fatalf("aggregate %s: %s arrived: %v", key, r.Value, err)
		}
		switch {
		case seq == last[key]+1:
			last[key]++
		case repeats && seq <= last[key]:
		default:
			t.Errorf("aggregate %s: %s arrived where %d was due", key, r.Value, last[key]+1)
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
