package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// A dice is a seeded source of chance. Every purpose has a stream of its own,
// so that a change in one does not shift all others.
type dice struct{ r *rand.Rand }

// The streams of a seed.
const (
	streamPlan   = iota + 1 // what the world is made of
	streamOrder             // which of what is due comes next
	streamFault             // what breaks
	streamActor             // what people, clients and services do
	streamDesign            // the definitions
	streamIDs               // the bytes of ids, one more for each engine
)

func newDice(seed uint64, stream uint64) *dice {
	return &dice{rand.New(rand.NewPCG(seed, stream*0x9e3779b97f4a7c15))}
}

// hit is true with a probability.
func (d *dice) hit(p float64) bool { return p > 0 && d.r.Float64() < p }

// below draws from 0 to n-1.
func (d *dice) below(n int) int { return d.r.IntN(n) }

// from draws from low to high, both included.
func (d *dice) from(low, high int) int { return low + d.r.IntN(high-low+1) }

// span draws a length of time between two, in whole microseconds.
func (d *dice) span(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.r.Int64N(int64(high-low)))/time.Microsecond*time.Microsecond
}

// one draws one of several.
func one[T any](d *dice, of ...T) T { return of[d.below(len(of))] }

// Read fills p; it is where engines take their ids from.
func (d *dice) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], d.r.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}
