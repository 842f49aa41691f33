package outbox

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

const (
	// jitterPercent spreads retries to both sides, so that messages that failed
	// together do not come back together.
	jitterPercent = 20
)

// backoff is the pause after a message's attempt of that number failed: first,
// doubled per attempt up to most, spread by a hash of the id, so that a repeat
// of the same history pauses alike.
func backoff(id string, attempt int, first, most time.Duration) time.Duration {
	d := double(attempt, first, most)
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", id, attempt)
	spread := int64(d) / 100 * jitterPercent
	if spread == 0 {
		return d
	}
	return d - time.Duration(spread) + time.Duration(h.Sum64()%uint64(2*spread+1))
}

// double is first for n = 1 and twice as much for each further n, at most most.
func double(n int, first, most time.Duration) time.Duration {
	d := first
	for i := 1; i < n; i++ {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// reason is an error as a text that every database can store.
func reason(err error) string { return Storable(err.Error()) }

// Storable is what an outbox keeps of a reason or an error: at most MaxReason bytes
// of UTF-8 without NUL, which every database can store.
func Storable(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > MaxReason {
		s = strings.ToValidUTF8(s[:MaxReason], "")
	}
	return s
}

// circuit remembers that a destination is down. While it is open nothing is
// claimed; after each pause one message is tried, and when that gets through
// the destination has everything again.
type circuit struct {
	failures int       // in a row; 0 is closed
	failed   time.Time // the last of them
	until    time.Time // open until then
}

func (c *circuit) open(now time.Time) bool { return c.failures > 0 && now.Before(c.until) }

func (c *circuit) probing(now time.Time) bool { return c.failures > 0 && !c.open(now) }

func (c *circuit) fail(now time.Time, first, most time.Duration) {
	c.failures++
	c.failed = now
	c.until = now.Add(double(c.failures, first, most))
}

// look ends the pause, so that the next message is tried at once.
func (c *circuit) look(now time.Time) {
	if c.open(now) {
		c.until = now
	}
}

func (c *circuit) heal() { *c = circuit{} }
