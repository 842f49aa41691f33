package cli

import (
	"os"
	"runtime/debug"
)

// collectPercent is how much a small heap may grow before it is collected. A relay
// keeps a few megabytes, and looking through them at each doubling took a third of
// its processor time.
const collectPercent = 400

// CollectLess lets the heap of a program that keeps little grow further before it is
// collected, unless GOGC says something else.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}
