package rabbitmq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/outbox/rabbitmq"
)

// O7, O-25: the broker crashes in between and comes back. Nothing is lost or set
// aside, and each aggregate's order holds.
func TestABrokerThatCrashesInBetweenLosesNothing(t *testing.T) {
	n := startNode(t)
	n.queue(t, queue, quorum(nil))
	// RabbitMQ 3 forgets in a crash where the log of a quorum queue is that was made
	// within the last minutes.
	if err := errors.Join(n.Stop(), n.Resume(t.Context())); err != nil {
		t.Fatal(err)
	}
	source := &memory.Outbox{}
	msgs := orders(40, "a", "b", "c")
	for i := range msgs {
		msgs[i].Seq = 0 // the source numbers them
	}
	if err := source.Insert(msgs...); err != nil {
		t.Fatal(err)
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: source, Sink: n.sink(t, rabbitmq.Config{}), PauseFirst: 20 * time.Millisecond, Circuit: 50 * time.Millisecond, Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := relay.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Crash(); err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	untilDelivered(t, relay, source)
	wantOrder(t, n.read(t, queue), 40, "a", "b", "c")
}

// untilDelivered runs rounds until nothing waits in the source.
func untilDelivered(t *testing.T, r *outbox.Relay, s outbox.Source) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		worked, err := r.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case st.Dead > 0:
			t.Fatalf("%d messages are dead", st.Dead)
		case st.Pending+st.Claimed == 0:
			return
		case time.Now().After(deadline):
			t.Fatalf("%d messages still wait", st.Pending+st.Claimed)
		case !worked:
			<-time.After(10 * time.Millisecond)
		}
	}
}
