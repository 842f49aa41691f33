package draw

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// A Dice is a seeded source of chance. Every purpose has a stream of its own,
// so that a change in one does not shift all others.
type Dice struct{ r *rand.Rand }

// The streams of a seed.
const (
	StreamPlan   = iota + 1 // what the world is made of
	StreamOrder             // which of what is due comes next
	StreamFault             // what breaks
	StreamActor             // what people, clients and services do
	StreamDesign            // the definitions
	StreamIDs               // the bytes of ids, one more for each engine
)

// New makes the dice of a stream of a seed.
func New(seed uint64, stream uint64) *Dice {
	return &Dice{rand.New(rand.NewPCG(seed, stream*0x9e3779b97f4a7c15))}
}

// Hit is true with a probability.
func (d *Dice) Hit(p float64) bool { return p > 0 && d.r.Float64() < p }

// Below draws from 0 to n-1.
func (d *Dice) Below(n int) int { return d.r.IntN(n) }

// From draws from low to high, both included.
func (d *Dice) From(low, high int) int { return low + d.r.IntN(high-low+1) }

// Span draws a length of time between two, in whole microseconds.
func (d *Dice) Span(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.r.Int64N(int64(high-low)))/time.Microsecond*time.Microsecond
}

// One draws one of several.
func One[T any](d *Dice, of ...T) T { return of[d.Below(len(of))] }

// Read fills p; it is where engines take their ids from.
func (d *Dice) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], d.r.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}
