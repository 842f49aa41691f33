// Package sense is what a node knows of the world around it: the clock of its
// database, since when it has reached that without a break, and which workers it
// saw lately. All of it is in memory, and begins anew with the process.
package sense

import (
	"sync"
	"time"
)

// clockJump is the difference from the expected time above which the
// database's clock has been set, rather than read late. Nothing that was
// measured before such a jump is trusted after it.
const clockJump = 2 * time.Second

// A Clock is the database's clock as this node knows it: the latest reading,
// carried on by the node's own monotonic one. All times of the engine come
// from it, in UTC and whole microseconds. Safe for concurrent use.
type Clock struct {
	local func() time.Time

	mu   sync.Mutex
	base time.Time // a time of the database
	at   time.Time // the node's time when that held
	last time.Time // what Now answered last
}

// NewClock makes a clock that carries on readings by the node's own, which must be
// monotonic.
func NewClock(local func() time.Time) *Clock { return &Clock{local: local} }

// Known reports whether the database was ever asked for the time.
func (c *Clock) Known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.base.IsZero()
}

// Now is the database's time. It goes back only when the database's clock was
// set back: what one goroutine stamped, another must not find in its future.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.estimate(c.local())
	if t.Before(c.last) && c.last.Sub(t) < clockJump {
		return c.last
	}
	c.last = t
	return t
}

func (c *Clock) estimate(local time.Time) time.Time {
	return c.base.Add(local.Sub(c.at)).UTC().Truncate(time.Microsecond)
}

// Observe takes a reading of the database's clock that was made somewhere
// between sent and now. A reading that the estimate allows changes nothing;
// another one moves the clock by as little as explains it. It reports whether
// the database's clock has jumped.
func (c *Clock) Observe(sent, reading time.Time) (jumped bool) {
	received := c.local()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		c.base, c.at = reading, received
		return false
	}
	early, late := c.estimate(sent), c.estimate(received)
	switch {
	case reading.Before(early):
		c.base, c.at = reading, sent
		return early.Sub(reading) > clockJump
	case reading.After(late):
		c.base, c.at = reading, received
		return reading.Sub(late) > clockJump
	}
	return false
}
