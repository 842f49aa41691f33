package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/outbox/memory"
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

// O7, O-25: the broker is killed in between. Nothing is lost, nothing is set
// aside, and each aggregate's order holds.
func TestABrokerKilledInBetweenLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		source := &memory.Outbox{}
		insert(t, source, orders(20, "a", "b", "c"))
		relay := newRelay(t, source, b.sink(t, kafka.Config{Timeout: time.Second}), nil)
		for range 2 {
			if _, err := relay.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.crash(t)
		if _, err := relay.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.resume(t)
		untilDelivered(t, relay, source)
		wantOrder(t, b.read(t, 60), 20, true, "a", "b", "c")
	})
}

// O-11, O-14: a relay that dies between the broker's answer and the mark sends
// its messages again, under the ids that they had.
func TestACrashBeforeTheMarkRepeatsTheIds(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		source := &marks{Outbox: &memory.Outbox{}, lost: true}
		insert(t, source.Outbox, orders(5, "a", "b"))
		now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		if _, err := newRelay(t, source, b.sink(t, kafka.Config{}), clock).Round(t.Context()); err == nil {
			t.Fatal("the mark was not lost")
		}
		if n := b.count(t, topic); n != 10 {
			t.Fatalf("the topic holds %d records, want 10", n)
		}
		source.lost = false
		now = now.Add(outbox.DefaultLease + time.Second)
		untilDelivered(t, newRelay(t, source, b.sink(t, kafka.Config{}), clock), source)

		records := b.read(t, 20)
		wantOrder(t, records, 5, true, "a", "b")
		times := map[string]int{}
		for _, r := range records {
			times[header(r, kafka.HeaderID)+" "+string(r.Value)]++
		}
		if len(times) != 10 {
			t.Errorf("%d ids, want 10", len(times))
		}
		for m, n := range times {
			if n != 2 {
				t.Errorf("message %s arrived %d times, want twice", m, n)
			}
		}
	})
}
