package nats_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/relay"
)

// What a person writes on a command line reaches the server.
func TestAServerIsReachedByItsName(t *testing.T) {
	n := startNode(t, nil)
	n.listen(t, jetstream.StreamConfig{Name: stream, Subjects: []string{"shop.>"}})
	sinks, err := relay.Opener{}.Open([]relay.Place{{URL: n.address() + "?stream=" + stream + "&subject-prefix=shop."}})
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range sinks[0].Publish(t.Context(), orders(3, "a")) {
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if text, err := sinks[0].Describe(t.Context()); err != nil || !strings.Contains(text, "drops repeats for 2m0s") {
		t.Errorf("says %q, %v", text, err)
	}
	if err := relay.CloseAll(sinks); err != nil {
		t.Error(err)
	}
	if msgs := n.read(t); len(msgs) != 3 || msgs[0].Subject != "shop.Order" {
		t.Errorf("the stream has %d messages", len(msgs))
	}
}
