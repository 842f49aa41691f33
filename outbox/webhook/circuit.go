package webhook

import (
	"sync"
	"time"
)

// circuit remembers how the endpoint does. It is safe for concurrent use.
type circuit struct {
	failures    int // in a row that open it
	first, most time.Duration

	mu      sync.Mutex
	row     int       // failures in a row
	opened  int       // openings in a row
	until   time.Time // sends nothing until then
	probing bool      // one request is out to see
}

// enter asks to send. When it may not, it says until when, at the least.
func (c *circuit) enter(now time.Time) (until time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.opened == 0:
		return time.Time{}, true
	case now.Before(c.until), c.probing:
		return c.until, false
	}
	c.probing = true
	return time.Time{}, true
}

// succeed notes an answer that shows the endpoint alive.
func (c *circuit) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.row, c.opened, c.probing = 0, 0, false
}

// fail notes a request without a good answer. patience is what the endpoint
// asked for; below 0 it asked for nothing.
func (c *circuit) fail(now time.Time, patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.row++
	probe := c.probing
	c.probing = false
	if patience < 0 && !probe && c.row < c.failures {
		return
	}
	if c.opened > 0 && !probe && now.Before(c.until) {
		// One of several that were under way when it opened.
		c.until = later(c.until, now.Add(patience))
		return
	}
	pause := c.first
	for range c.opened {
		pause = min(2*pause, c.most)
	}
	c.opened++
	c.until = now.Add(max(pause, patience))
}

// abandon gives a leave to send back without having used it.
func (c *circuit) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
