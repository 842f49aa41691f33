package outbox

import (
	"context"
	"errors"
	"time"
)

// Partitions is how many virtual partitions a destination's messages fall into,
// by tenant and aggregate id. It is the most relays that can share one
// destination; more than that, and the others stand by.
const Partitions = 64

// Fleet shares the partitions of a destination among the relays that serve it.
// memory.Outbox is its reference; postgres.Outbox and mysql.Outbox fulfil it. Partitions divide the work and
// fence a relay that lost its share; the order of a key does not rest on them,
// since a claim never takes a message whose earlier one somebody still has.
type Fleet interface {
	// Hold tells the others that the relay is alive until the lease ends, renews
	// the partitions that it has, gives back those beyond its fair share and
	// takes free ones up to it. A partition is free when its lease has ended or
	// its owner gave it back; who takes it raises its epoch. The relay calls it
	// with no claimed message in its hands, at least three times per lease.
	Hold(ctx context.Context, h Hold) (Held, error)

	// Leave gives everything back, so that the others need not wait for the
	// lease to end. A relay calls it when it stops.
	Leave(ctx context.Context, h Hold) error
}

// Hold says who serves which destination, when and for how long.
type Hold struct {
	// By is the relay, a name that no other process has.
	By string

	// Destination is whose partitions are shared.
	Destination string

	// Now is the time; zero means the clock of the database, which is the only
	// one that relays on several machines have in common.
	Now time.Time

	// Lease is how long the partitions stay with the relay unless renewed.
	Lease time.Duration

	// Took and Failed are when the destination last took something from this relay,
	// and last failed; zero for never. The others hear of it.
	Took, Failed time.Time
}

// Check refuses a hold that could never keep anything.
func (h *Hold) Check() error {
	if h.By == "" || h.Lease <= 0 {
		return errors.New("outbox: a relay in a fleet needs a name of its own and a lease longer than nothing")
	}
	return nil
}

// Held is what a relay has.
type Held struct {
	// Partitions are the relay's, by number.
	Partitions []Partition

	// Relays counts the living relays of the destination, this one included.
	Relays int

	// Now is the time that the fleet went by.
	Now time.Time

	// Took and Failed are the latest of the other relays, zero for never: one that
	// sees the destination down tries again when another got through.
	Took, Failed time.Time
}

// Partition is a share of the messages under a lease.
type Partition struct {
	Number int   // 0 to Partitions-1
	Epoch  int64 // grows each time the partition is taken
}
