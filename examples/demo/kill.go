package demo

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// killsEach is how often the server and the worker are killed each at
	// least: one more than the five that the demo promises.
	killsEach = 6
	// killEvery is the mean time between two kills under --chaos: long
	// enough for leases to run out in between, more often than not.
	killEvery = 5 * time.Second
	// killRest is kept free between two kills, so that the second does not
	// only hit a process that is still starting.
	killRest = 800 * time.Millisecond
)

// A kill is a SIGKILL that is going to happen.
type kill struct {
	at     time.Duration // since the feeding began, at the earliest
	server bool          // false: the worker
}

// drawKills draws the moments of n kills of each kind within span. One seed
// draws the same moments and the same order of kinds every time.
func drawKills(seed uint64, n int, span time.Duration) []kill {
	chance := rand.New(rand.NewPCG(seed, 0x72696e6769)) // a stream of its own per seed
	kills := make([]kill, 2*n)
	for i := range kills {
		kills[i].server = i < n
	}
	chance.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	moments := make([]time.Duration, len(kills))
	spare := max(span-time.Duration(len(kills))*killRest, 0)
	for i := range moments {
		moments[i] = time.Duration(chance.Float64() * float64(spare))
	}
	slices.Sort(moments)
	for i := range kills {
		kills[i].at = moments[i] + time.Duration(i+1)*killRest
	}
	return kills
}

// killsWithin is how often each kind is killed when the feeding goes on
// for span.
func killsWithin(span time.Duration) int {
	return max(killsEach, int(span/killEvery/2))
}
