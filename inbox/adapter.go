package inbox

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Usable tells whether a consumer can keep a message id: it is not empty, UTF-8
// without NUL, and within MaxName. Adapters to brokers ask it of what a message
// says of itself, before they name the message otherwise.
func Usable(id string) bool {
	return id != "" && len(id) <= MaxName && utf8.ValidString(id) && !strings.Contains(id, "\x00")
}

// Pause is how long an adapter keeps a message that failed before it is received
// again, after so many failures before this one: first, doubling up to most.
func Pause(first, most time.Duration, failures int) time.Duration {
	for range failures {
		if first > most/2 {
			return most
		}
		first *= 2
	}
	return min(first, most)
}
