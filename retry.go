package ringi

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// jitter spreads retries by ±20 % so that what failed together does not come
// back together. It hashes ids instead of drawing, so that deciding twice
// gives the same time.
const jitter = 0.2

// backoff is the pause before the try that follows the given number of tries
// since the budget was fresh.
func backoff(run RunID, step string, d Direction, tries int, r workflow.Retry) time.Duration {
	pause := float64(r.Initial) * math.Pow(max(r.Factor, 1), float64(max(tries-1, 0)))
	if limit := float64(r.Max); r.Max > 0 && pause > limit {
		pause = limit
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s/%d", run, step, d, tries)
	unit := float64(h.Sum64()%2001)/1000 - 1 // -1 … 1
	pause *= 1 + jitter*unit
	if pause > float64(math.MaxInt64/2) {
		pause = float64(math.MaxInt64 / 2)
	}
	return time.Duration(pause).Truncate(time.Microsecond)
}

// retryAt is when the next attempt of a call may be made, or false when its
// budget of tries or of time is used up.
func (t *turn) retryAt(step string, c *Call, r workflow.Retry) (time.Time, bool) {
	tries := c.Attempt - c.Fresh
	if tries >= r.Attempts {
		return time.Time{}, false
	}
	at := t.cmd.At.Add(max(backoff(t.s.Run, step, c.Direction, tries, r), t.patience()))
	if !c.TotalAt.IsZero() && !at.Before(c.TotalAt) {
		return time.Time{}, false
	}
	return at, true
}

// patience is how long the service asked to be left alone that the failure at
// hand came from: a pause shorter than that would only be refused again.
func (t *turn) patience() time.Duration {
	f, ok := t.cmd.Do.(FailActivity)
	if !ok {
		return 0
	}
	return millis(min(max(f.Failure.RetryAfterMS, 0), MaxRetryAfter.Milliseconds()))
}
