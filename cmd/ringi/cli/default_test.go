package cli

import (
	"testing"
	"time"
)

func TestSpansAreInTheirLargestUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "90s", 72 * time.Hour: "72h", 250 * time.Millisecond: "250ms", 15 * time.Minute: "15m"} {
		if got := span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
