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

// A kind of process that is killed.
type kind int

const (
	aWorker kind = iota
	aServer
	theDatabase
)

// A kill is a SIGKILL that is going to happen, or the crash of the database.
type kill struct {
	at   time.Duration // since the feeding began, at the earliest
	what kind
	nth  int // which of the servers or workers
}

// A cast is who may be killed.
type cast struct {
	nodes    int  // servers, and as many workers
	database bool // it is ours to end
}

// drawKills draws the moments of n kills of servers and n of workers within
// span, and a third as many of the database. Each server and each worker has its
// turns. One seed draws the same moments, order and turns every time.
func drawKills(seed uint64, who cast, n int, span time.Duration) []kill {
	chance := rand.New(rand.NewPCG(seed, 0x72696e6769)) // a stream of its own per seed
	var kills []kill
	for i := range n {
		kills = append(kills, kill{what: aServer, nth: i % who.nodes}, kill{what: aWorker, nth: i % who.nodes})
		if who.database && i%3 == 0 {
			kills = append(kills, kill{what: theDatabase})
		}
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
