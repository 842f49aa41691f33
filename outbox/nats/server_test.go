package nats_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/nats"
)

const (
	stream  = "ORDERS"
	subject = outbox.TopicPrefix + "Order"
)

// node is a NATS server with JetStream in this process, with its streams on disk
// and an address that it keeps over a restart.
type node struct {
	*server.Server
	options server.Options
}

func startNode(t *testing.T, change func(*server.Options)) *node {
	t.Helper()
	n := &node{options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	if change != nil {
		change(&n.options)
	}
	n.start(t)
	n.options.Port = n.Addr().(*net.TCPAddr).Port
	t.Cleanup(func() { n.stop() })
	return n
}

// start begins a server; after stop it is the same one, restarted.
func (n *node) start(t *testing.T) {
	t.Helper()
	options := n.options // the server writes into it
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server did not start in time")
	}
	n.Server = s
}

func (n *node) stop() {
	n.Shutdown()
	n.WaitForShutdown()
}

func (n *node) address() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.options.Port) }

func (n *node) sink(t *testing.T, cfg nats.Config) *nats.Sink {
	t.Helper()
	cfg.Servers = []string{n.address()}
	s, err := nats.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (n *node) client(t *testing.T) jetstream.JetStream {
	t.Helper()
	conn, err := natsgo.Connect(n.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// listen makes a stream.
func (n *node) listen(t *testing.T, cfg jetstream.StreamConfig) {
	t.Helper()
	if _, err := n.client(t).CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// startStream is a server with a stream for everything.
func startStream(t *testing.T) *node {
	t.Helper()
	n := startNode(t, nil)
	n.listen(t, jetstream.StreamConfig{Name: stream, Subjects: []string{outbox.TopicPrefix + ">"}, Duplicates: time.Minute})
	return n
}

// read returns all messages of the stream in their order.
func (n *node) read(t *testing.T) (msgs []*jetstream.RawStreamMsg) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	st, err := n.client(t).Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= st.CachedInfo().State.LastSeq; seq++ {
		msg, err := st.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

func id(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012x", n) }

// order is the seq-th message of an aggregate; the payload says which.
func order(aggregate string, seq int) outbox.Message {
	return outbox.Message{
		ID: id(int(aggregate[len(aggregate)-1])<<16 + seq), Tenant: 1,
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

func publish(t *testing.T, s *nats.Sink, msgs []outbox.Message) {
	t.Helper()
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Fatalf("message %d (%s): %v", i, msgs[i].Payload, err)
		}
	}
}

// wantOrder checks that each aggregate's messages are 1, 2, 3, … up to count,
// each once.
func wantOrder(t *testing.T, msgs []*jetstream.RawStreamMsg, count int, aggregates ...string) {
	t.Helper()
	last := map[string]int{}
	for _, m := range msgs {
		key := m.Header.Get("ce-subject")
		last[key]++
		if want := fmt.Sprintf(`"%s/%d"`, key, last[key]); string(m.Data) != want {
			t.Errorf("aggregate %s: %s arrived where %s was due", key, m.Data, want)
		}
	}
	for _, a := range aggregates {
		if last[a] != count {
			t.Errorf("aggregate %s: %d messages arrived, want %d", a, last[a], count)
		}
	}
}

// shortWindow is a stream that soon forgets what it has seen; 100 ms is the
// least that a server allows.
var shortWindow = jetstream.StreamConfig{Name: stream, Subjects: []string{outbox.TopicPrefix + ">"}, Duplicates: 100 * time.Millisecond}
