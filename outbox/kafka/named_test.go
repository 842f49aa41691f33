package kafka_test

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi/relay"
)

// What a person writes on a command line reaches the broker.
func TestABrokerIsReachedByItsName(t *testing.T) {
	onBoth(t, func(t *testing.T, b *broker) {
		b.create(t, "shop.Order", 1)
		sinks, err := relay.Opener{}.Open([]relay.Place{{URL: "kafka://127.0.0.1:1," + b.address + "?topic-prefix=shop.&source=/shop"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range sinks[0].Publish(t.Context(), orders(3, "a")) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		if text, err := sinks[0].Describe(t.Context()); err != nil || !strings.HasPrefix(text, "kafka: ") {
			t.Errorf("says %q, %v", text, err)
		}
		if err := relay.CloseAll(sinks); err != nil {
			t.Error(err)
		}
		for i, r := range b.read(t, 3, "shop.Order") {
			if string(r.Key) != "a" || r.Headers[0].Key != "id" {
				t.Errorf("record %d: %+v", i, r)
			}
		}
	})
}
