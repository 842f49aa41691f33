package sim

import (
	"context"
	"errors"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/sim/fault"
)

// A broker takes the messages of the outbox from a relay, and remembers what
// it has.
type broker struct {
	w     *world
	relay *outbox.Relay
	has   map[string]bool
	last  map[outbox.Key]int64
	fresh int // after a restore the numbers of an aggregate begin anew
	clock *skewed
}

func newBroker(w *world) *broker {
	b := &broker{w: w, has: map[string]bool{}, last: map[outbox.Key]int64{}, clock: newSkewed(w, 0)}
	b.begin()
	return b
}

// begin makes a new relay, which knows nothing of the one before.
func (b *broker) begin() {
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Source: source{b.w.db}, Sink: b, Now: b.clock.now, Batch: 4, Retention: -1,
	})
	if err != nil {
		b.w.fail("relay", "it cannot be made: %v", err)
		return
	}
	b.relay = relay
}

var errBroker = errors.New("the broker does not answer")

// Publish implements outbox.Sink.
func (b *broker) Publish(_ context.Context, msgs []outbox.Message) []error {
	answers := make([]error, len(msgs))
	w := b.w
	if w.strikes(fault.SinkDown, 0.15) {
		w.struck(fault.SinkDown, "%d messages", len(msgs))
		for i := range answers {
			answers[i] = errBroker
		}
		return answers
	}
	if w.strikes(fault.RelayCrash, 0.15) {
		w.struck(fault.RelayCrash, "with %d messages", len(msgs))
		b.take(msgs[:w.faults.Below(len(msgs)+1)])
		panic(errRelayDied)
	}
	unheard := w.strikes(fault.SinkUnheard, 0.2)
	b.take(msgs)
	if unheard {
		w.struck(fault.SinkUnheard, "%d messages", len(msgs))
		for i := range answers {
			answers[i] = errBroker
		}
	}
	return answers
}

var errRelayDied = errors.New("the relay died")

// take holds messages to their order.
func (b *broker) take(msgs []outbox.Message) {
	for _, m := range msgs {
		b.w.trace("message ", m.ID)
		if b.has[m.ID] {
			continue
		}
		b.has[m.ID] = true
		if m.Seq != b.last[m.Key()]+1 && b.fresh == 0 {
			b.w.fail("message_order", "message %d of %s %s follows %d", m.Seq, m.AggregateType, m.AggregateID, b.last[m.Key()])
		}
		b.last[m.Key()] = m.Seq
	}
}

// restored forgets the numbers: what is sent now may have numbers of before.
func (b *broker) restored() { b.fresh++ }

// round lets the relay do one round, and puts the next on the agenda.
func (b *broker) round() {
	was := b.w.count.faults[string(fault.RelayCrash)]
	_, err := b.relay.Round(context.Background())
	if b.w.count.faults[string(fault.RelayCrash)] > was {
		b.begin() // the process is gone, and its claims wait for their leases
	} else if err != nil {
		b.w.fail("relay", "its round failed: %v", err)
	}
	b.w.idly(b.w.order.Span(500*time.Millisecond, 4*time.Second), "relay", b.round)
}
