package sim

import "time"

// epoch is when every world begins.
//
// constant: only read.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A skewed clock is the world's time as somebody in it reads it: off by a
// shift, and running at a speed of its own.
type skewed struct {
	w     *world
	since time.Time // world's time when speed or shift changed last
	shown time.Time // what it showed then
	speed float64   // 1 is the world's
}

func newSkewed(w *world, shift time.Duration) *skewed {
	return &skewed{w: w, since: w.now, shown: w.now.Add(shift), speed: 1}
}

func (c *skewed) now() time.Time {
	passed := c.w.now.Sub(c.since)
	if c.speed != 1 {
		passed = time.Duration(float64(passed) * c.speed)
	}
	return c.shown.Add(passed).Truncate(time.Microsecond)
}

// set makes the clock jump, and run at a speed from now on.
func (c *skewed) set(jump time.Duration, speed float64) {
	c.shown = c.now().Add(jump)
	c.since, c.speed = c.w.now, speed
}
