package kafka_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/servertest"
)

// shared is the Kafka broker in a process of its own that the tests of this
// package share; the first that asks starts it. Each has a topic of its own.
var shared struct {
	once   sync.Once
	server *servertest.Server
	err    error
	topics atomic.Int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// openReal opens a shop at Kafka itself.
func openReal(t *testing.T) *shop {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = servertest.Kafka(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	s := openDatabase(t)
	s.real, s.brokers = shared.server, []string{shared.server.Address()}
	s.topic = fmt.Sprint(topic, shared.topics.Add(1))
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = s.topic, 2, 1
	req.Topics = append(req.Topics, made)
	resp, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The broker learns of it from its controller a moment later.
	until(t, "the topic with its partitions", func() bool {
		ask := kmsg.NewPtrMetadataRequest()
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &s.topic
		ask.Topics = append(ask.Topics, one)
		resp, err := ask.RequestWith(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		led := 0
		for _, p := range resp.Topics[0].Partitions {
			if p.Leader >= 0 {
				led++
			}
		}
		return led == 2
	})
	return s
}

// onBoth runs a test with a broker in this process and with Kafka itself.
func onBoth(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Run("in process", func(t *testing.T) { test(t, open(t)) })
	t.Run("real", func(t *testing.T) { test(t, openReal(t)) })
}

// O9, O-25: the broker is killed while its records are worked on, and comes back.
// Each has one effect, in order, and the consumer needs no restart.
func TestABrokerKilledInBetweenRepeatsNoEffect(t *testing.T) {
	s := openReal(t)
	s.send(t, 0, names("a", 20)...)
	s.send(t, 1, names("b", 20)...)
	s.fail["a/10"], s.fail["b/15"] = 1, 1 // the rest of each partition waits for it
	defer s.consume(t)()
	until(t, "the first failure", func() bool { return s.outcomes(inbox.Failed) > 0 })
	if err := s.real.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := s.real.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.send(t, 0, "a/21")
	s.send(t, 1, "b/21")
	until(t, "42 effects", func() bool { return len(s.effects(t)) == 42 })
	for _, p := range []string{"a", "b"} {
		if got := of(s.effects(t), p); !slices.Equal(got, names(p, 21)) {
			t.Errorf("partition %s: %v", p, got)
		}
	}
}

// What has been done is seen with Kafka's own tool: the group stands at the end.
func TestKafkasOwnToolShowsTheGroupAtTheEnd(t *testing.T) {
	s := openReal(t)
	s.send(t, 0, names("a", 5)...)
	stop := s.consume(t)
	until(t, "five effects", func() bool { return s.outcomes(inbox.Handled) == 5 })
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := servertest.KafkaTool(ctx, s.real, "kafka-consumer-groups", "--describe", "--group", s.topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out, "\n") {
		// GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG …
		if f := strings.Fields(line); len(f) > 5 && f[1] == s.topic && f[2] == "0" {
			if f[3] != "5" || f[4] != "5" || f[5] != "0" {
				t.Errorf("the group stands at %s of %s", f[3], f[4])
			}
			return
		}
	}
	t.Errorf("the group is not shown:\n%s", out)
}
