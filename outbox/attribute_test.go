package outbox_test

import (
	"slices"
	"testing"

	"github.com/ringiflow/ringi/outbox"
)

// O-14: the id is the message's, whatever carries it.
func TestAttributesNameTheEvent(t *testing.T) {
	m := order(7, "o-1")
	m.Seq = 12
	var got []string
	for name, value := range outbox.Attributes("//shop", &m) {
		got = append(got, name+"="+value)
	}
	want := []string{
		"id=01890000-0000-7000-8000-000000000007", "source=//shop", "type=order.placed", "subject=o-1",
		"time=2026-03-01T09:00:00.123456Z", "aggregatetype=Order", "tenant=1", "sequence=00000000000000000012",
	}
	if !slices.Equal(got, want) {
		t.Errorf("attributes %q, want %q", got, want)
	}
	m.Seq = 0
	for name, value := range outbox.Attributes("", &m) {
		if name == "sequence" || name == "source" && value != outbox.DefaultEventSource {
			t.Errorf("an unordered message without a source has %s=%s", name, value)
		}
		if name == "source" {
			break
		}
	}
}
