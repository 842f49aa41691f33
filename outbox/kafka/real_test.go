package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/servertest"
)

// O8, O-14: what arrived is looked at with Kafka's own tool.
func TestKafkasOwnConsumerShowsWhatWasSent(t *testing.T) {
	b := realBroker(t)
	msgs := orders(2, "a", "b")
	msgs[0].Headers = map[string]string{"traceparent": "00-ab-cd-01"}
	publish(t, b.sink(t, kafka.Config{Source: "//shop"}), msgs)
	out, err := servertest.KafkaTool(t.Context(), b.real, "kafka-console-consumer",
		"--topic", topic, "--from-beginning", "--max-messages", "4", "--timeout-ms", "30000",
		"--formatter-property", "print.key=true", "--formatter-property", "print.headers=true", "--formatter-property", "key.separator= ", "--formatter-property", "headers.separator=;")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	var want []string
	for i, m := range msgs {
		trace := ""
		if i == 0 {
			trace = ";traceparent:00-ab-cd-01"
		}
		want = append(want, fmt.Sprintf("id:%s;content-type:application/json;ce_specversion:1.0;ce_id:%s;ce_source://shop;ce_type:order.placed;ce_subject:%s;ce_time:2026-03-01T09:00:00Z;ce_aggregatetype:Order;ce_tenant:1;ce_sequence:%020d%s %s %s",
			m.ID, m.ID, m.AggregateID, m.Seq, trace, m.AggregateID, m.Payload))
	}
	slices.Sort(want)
	for i := range want {
		if i < len(got) {
			got[i] = strings.ReplaceAll(got[i], "\t", " ")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("shown\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// O-10: the broker has written a batch and its answer is lost with the connection,
// again and again. What is sent again is dropped by the broker.
func TestALostAnswerLeavesNoSecondRecord(t *testing.T) {
	b := realBroker(t)
	var lost atomic.Int64
	dial := kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, host)
		return &deafConn{Conn: conn, lost: &lost, most: 3}, err
	})
	publish(t, b.sink(t, kafka.Config{Options: []kgo.Opt{dial}}), orders(40, "a", "b", "c"))
	wantOrder(t, b.read(t, 120), 40, false, "a", "b", "c")
	if n := b.count(t, topic); n != 120 {
		t.Errorf("the topic holds %d records, want 120", n)
	}
	if lost.Load() != 3 {
		t.Errorf("%d answers were lost, want 3", lost.Load())
	}
}

// deafConn breaks when the answer to a request with records in it has come.
type deafConn struct {
	net.Conn
	lost  *atomic.Int64 // over all connections
	most  int64
	armed atomic.Bool
}

func (c *deafConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("ce_type")) {
		c.armed.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.armed.Load() && c.lost.Load() < c.most {
		c.lost.Add(1)
		return 0, errors.Join(errors.New("the answer is lost"), c.Close())
	}
	return n, err
}

// O-25: a broker that hangs is an outage; nothing is refused, and nothing is lost or
// out of order when it goes on.
func TestAFrozenBrokerIsAnOutage(t *testing.T) {
	b := realBroker(t)
	source := &memory.Outbox{}
	insert(t, source, orders(20, "a", "b", "c"))
	relay := newRelay(t, source, b.sink(t, kafka.Config{Timeout: time.Second}), nil)
	if _, err := relay.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := source.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.real.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer b.real.Thaw()
	if _, err := relay.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := source.Stats(t.Context())
	if err != nil || st.Dead > 0 || st.Pending+st.Claimed != before.Pending+before.Claimed {
		t.Errorf("while it hangs: %+v, before %+v, %v", st, before, err)
	}
	if err := b.real.Thaw(); err != nil {
		t.Fatal(err)
	}
	untilDelivered(t, relay, source)
	wantOrder(t, b.read(t, 60), 20, true, "a", "b", "c")
}

// O-23: a topic that takes less than the sink's limit says so of one record, and the
// others of the call arrive.
func TestARecordTooLargeForItsTopicFailsAlone(t *testing.T) {
	b := realBroker(t, "max.message.bytes=3000")
	msgs := orders(3, "a", "b", "c")
	msgs[3].Payload = []byte(`"` + strings.Repeat("x", 4000) + `"`) // a/2
	got := b.sink(t, kafka.Config{Options: []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())}}).Publish(t.Context(), msgs)
	for i, err := range got {
		switch {
		case i == 3 && !outbox.Refused(err), i == 6 && !errors.Is(err, outbox.ErrHeld), i != 3 && i != 6 && err != nil:
			t.Errorf("message %.20s: %v", msgs[i].Payload, err)
		}
	}
	wantOrder(t, b.read(t, 7), 3, false, "b", "c")
}

// A message without payload is no deletion on a compacted topic.
func TestNothingIsDeletedOnACompactedTopic(t *testing.T) {
	b := realBroker(t, "cleanup.policy=compact")
	empty := order("a", 1)
	empty.Payload = nil
	publish(t, b.sink(t, kafka.Config{}), []outbox.Message{empty})
	if r := b.read(t, 1)[0]; r.Value == nil || len(r.Value) != 0 {
		t.Errorf("value %q (null: %v)", r.Value, r.Value == nil)
	}
}
