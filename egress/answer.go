package egress

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the Retry-After header of an answer: how long it asks to be
// left alone, from its seconds or its date. It reports false when there is none
// that can be read. The length is not bounded: the caller knows how long is
// reasonable.
func RetryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// splitList is the words between commas, without blanks around them.
func splitList(text string) (words []string) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}
