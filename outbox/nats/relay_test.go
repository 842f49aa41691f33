package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/outbox/nats"
)

// marks is a source whose marks can be lost, as when a relay dies before them.
type marks struct {
	*memory.Outbox
	lost bool
}

func (s *marks) Mark(ctx context.Context, at time.Time, ms []outbox.Mark) (int, error) {
	if s.lost {
		return 0, errors.New("the relay died")
	}
	return s.Outbox.Mark(ctx, at, ms)
}

func newRelay(t *testing.T, source outbox.Source, sink outbox.Sink, now func() time.Time) *outbox.Relay {
	t.Helper()
	r, err := outbox.NewRelay(outbox.RelayConfig{Source: source, Sink: sink, Now: now, PauseFirst: 20 * time.Millisecond, Circuit: 100 * time.Millisecond, Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// insert writes messages and leaves their numbers to the source.
func insert(t *testing.T, s *memory.Outbox, msgs []outbox.Message) {
	t.Helper()
	for i := range msgs {
		msgs[i].Seq = 0
	}
	if err := s.Insert(msgs...); err != nil {
		t.Fatal(err)
	}
}

// untilDelivered runs rounds until nothing waits in the source.
func untilDelivered(t *testing.T, r *outbox.Relay, s outbox.Source) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
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

// O7, O-25: the server goes away in between and comes back. Nothing is lost,
// set aside or doubled, and each aggregate's order holds.
func TestAServerRestartedInBetweenLosesNothing(t *testing.T) {
	n := startStream(t)
	source := &memory.Outbox{}
	insert(t, source, orders(20, "a", "b", "c"))
	relay := newRelay(t, source, n.sink(t, nats.Config{}), nil)
	for range 2 {
		if _, err := relay.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n.stop()
	began := time.Now()
	if _, err := relay.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > nats.DefaultTimeout {
		t.Errorf("without a server an answer took %s", took)
	}
	n.start(t)
	untilDelivered(t, relay, source)
	wantOrder(t, n.read(t), 20, "a", "b", "c")
}

// A server that is not there yet delays messages; it does not keep a service
// from starting.
func TestASinkStartsBeforeItsServer(t *testing.T) {
	n := startStream(t)
	n.stop()
	source := &memory.Outbox{}
	insert(t, source, orders(2, "a"))
	relay := newRelay(t, source, n.sink(t, nats.Config{}), nil)
	if _, err := relay.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.start(t)
	untilDelivered(t, relay, source)
	wantOrder(t, n.read(t), 2, "a")
}

// O-11, O-14: a relay dies between acknowledgement and mark, and the server
// restarts too. The messages are sent again under their ids, and the stream
// still knows them.
func TestACrashBeforeTheMarkIsDroppedByTheStream(t *testing.T) {
	n := startStream(t)
	source := &marks{Outbox: &memory.Outbox{}, lost: true}
	insert(t, source.Outbox, orders(5, "a", "b"))
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	if _, err := newRelay(t, source, n.sink(t, nats.Config{}), clock).Round(t.Context()); err == nil {
		t.Fatal("the mark was not lost")
	}
	wantOrder(t, n.read(t), 5, "a", "b")
	n.stop()
	n.start(t)
	source.lost = false
	now = now.Add(outbox.DefaultLease + time.Second)
	untilDelivered(t, newRelay(t, source, n.sink(t, nats.Config{}), clock), source)
	wantOrder(t, n.read(t), 5, "a", "b")
}

// O-13: when the outage was longer than the window, the repeat arrives, under
// the same id.
func TestAfterTheWindowARepeatArrivesUnderItsId(t *testing.T) {
	n := startNode(t, nil)
	n.listen(t, shortWindow)
	s := n.sink(t, nats.Config{})
	publish(t, s, orders(1, "a"))
	deadline := time.Now().Add(20 * time.Second)
	for len(n.read(t)) < 2 {
		if time.Now().After(deadline) {
			t.Fatal("no repeat arrived")
		}
		<-time.After(shortWindow.Duplicates)
		publish(t, s, orders(1, "a"))
	}
	for _, m := range n.read(t) {
		if got, want := m.Header.Get(nats.HeaderID), order("a", 1).ID; got != want {
			t.Errorf("id %s, want %s", got, want)
		}
	}
}
