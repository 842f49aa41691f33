package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/inbox"
)

// O-8: pauses double up to the longest, and never go beyond it.
func TestPausesDoubleUpToTheLongest(t *testing.T) {
	for failures, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if got := inbox.Pause(time.Second, 5*time.Second, failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
	if got := inbox.Pause(time.Minute, time.Second, 0); got != time.Second {
		t.Errorf("a first pause above the longest is %s", got)
	}
}

func TestAnIdThatCannotBeKeptIsNotUsable(t *testing.T) {
	for id, want := range map[string]bool{"": false, "a\x00": false, "\xff": false, strings.Repeat("a", inbox.MaxName+1): false, strings.Repeat("a", inbox.MaxName): true, "東京": true} {
		if got := inbox.Usable(id); got != want {
			t.Errorf("%.20q: %t", id, got)
		}
	}
}
