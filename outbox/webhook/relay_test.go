package webhook_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
)

// O-25, O7: an endpoint that takes three requests at a time, and for a while
// none, gets everything in order; no message dies of its limits.
func TestALimitOnTheRateCostsNoMessageItsLife(t *testing.T) {
	e := startEndpoint(t)
	var room, lost atomic.Int64
	e.answers(func(w http.ResponseWriter, _ string) {
		if room.Add(-1) < 0 {
			lost.Add(1)
			status(http.StatusTooManyRequests, "Retry-After", "2")(w, "")
		}
	})
	source := &memory.Outbox{}
	msgs := orders(20, "a", "b", "c")
	for i := range msgs {
		msgs[i].Seq = 0
	}
	if err := source.Insert(msgs...); err != nil {
		t.Fatal(err)
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: source, Sink: e.sink(t, nil), Now: e.clock, Attempts: 2, Circuit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for second := range 20 * 60 {
		if second > 60 { // the first minute it takes nothing
			room.Store(3)
		}
		for worked := true; worked; {
			if worked, err = relay.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		e.pass(time.Second)
	}
	st, err := source.Stats(t.Context())
	if err != nil || st.Pending+st.Claimed+st.Dead != 0 {
		t.Errorf("left over: %+v, %v", st, err)
	}
	if lost.Load() < 20 {
		t.Errorf("the endpoint refused %d requests, want it to have been asked too often", lost.Load())
	}
	e.check(t)
	wantInOrder(t, e, 20, "a", "b", "c")
}
