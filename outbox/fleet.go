package outbox

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Partitions is how many virtual partitions a destination's messages fall into,
// by tenant and aggregate id. It is the most relays that can share one
// destination; more than that, and the others stand by.
const Partitions = 64

// never is a time after every other, in microseconds: when a parked message is
// due. It is the last second of the year 9999, which every database stores.
const never = 253402300799000000

// dawn is the first time that a message can have been written at, in microseconds:
// the beginning of the year 1. Between it and never every format has a text.
const dawn = -62135596800000000

// Fleet shares the partitions of a destination among the relays that serve it.
// Memory is its reference, Postgres its database. Partitions divide the work and
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

// check refuses a hold that could never keep anything.
func (h *Hold) check() error {
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

// share is the most partitions that one of n relays has.
func share(n int) int { return (Partitions + n - 1) / n }

// partitionOf is the partition of a key in memory. A database has its own rule;
// all that matters is that everyone who shares a table goes by the same.
func partitionOf(k Key) int {
	h := fnv.New64a()
	// A hash never fails to be written to.
	_, _ = h.Write([]byte(strconv.FormatInt(k.Tenant, 10) + " " + k.AggregateID))
	return int(h.Sum64() % Partitions)
}

// memoryFleet is the tables outbox_partition and outbox_relay of Memory.
type memoryFleet struct {
	parts  map[place]holding
	relays map[member]seat
}

type (
	place struct {
		destination string
		number      int
	}
	member struct{ destination, relay string }
	// seat is until when a relay lives, and what it saw of its destination.
	seat struct{ end, took, failed time.Time }
	// holding is who has a partition, under which epoch and until when.
	holding struct {
		owner string
		epoch int64
		end   time.Time
	}
)

var _ Fleet = (*Memory)(nil)

// Hold implements Fleet. A zero time is refused: Memory has no clock.
func (s *Memory) Hold(ctx context.Context, h Hold) (Held, error) {
	if err := errors.Join(ctx.Err(), h.check()); err != nil {
		return Held{}, err
	}
	if h.Now.IsZero() {
		return Held{}, errors.New("outbox: an outbox in memory has no clock; pass the time")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.hold(h), nil
}

// Leave implements Fleet.
func (s *Memory) Leave(ctx context.Context, h Hold) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.fleet.relays, member{h.Destination, h.By})
	for at, p := range s.fleet.parts {
		if at.destination == h.Destination && p.owner == h.By {
			p.owner, p.end = "", time.Time{}
			s.fleet.parts[at] = p
		}
	}
	return nil
}

func (f *memoryFleet) hold(h Hold) Held {
	if f.parts == nil {
		f.parts, f.relays = map[place]holding{}, map[member]seat{}
	}
	f.relays[member{h.Destination, h.By}] = seat{h.Now.Add(h.Lease), h.Took, h.Failed}
	held := Held{Now: h.Now}
	for who, s := range f.relays {
		if who.destination != h.Destination {
			continue
		}
		if s.end.After(h.Now) {
			held.Relays++
		}
		if who.relay != h.By {
			held.Took, held.Failed = later(held.Took, s.took), later(held.Failed, s.failed)
		}
	}
	most := share(held.Relays)
	for _, mine := range []bool{true, false} { // first what it has, then what is free
		for n := range Partitions {
			at := place{h.Destination, n}
			p := f.parts[at]
			switch {
			case mine != (p.owner == h.By):
				continue
			case mine && len(held.Partitions) == most:
				p.owner, p.end = "", time.Time{}
			case mine:
				p.end = h.Now.Add(h.Lease)
			case len(held.Partitions) == most || p.end.After(h.Now):
				continue
			default:
				p = holding{owner: h.By, epoch: p.epoch + 1, end: h.Now.Add(h.Lease)}
			}
			f.parts[at] = p
			if p.owner == h.By {
				held.Partitions = append(held.Partitions, Partition{Number: n, Epoch: p.epoch})
			}
		}
	}
	slices.SortFunc(held.Partitions, func(a, b Partition) int { return a.Number - b.Number })
	return held
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// fences maps the partitions of a claim that still are the claimer's to their
// epochs; nil when the claim names none.
func (f *memoryFleet) fences(c Claim) map[int]int64 {
	if c.Partitions == nil {
		return nil
	}
	fences := make(map[int]int64, len(c.Partitions))
	for _, p := range c.Partitions {
		if f.parts[place{c.Destination, p.Number}].epoch == p.Epoch {
			fences[p.Number] = p.Epoch
		}
	}
	return fences
}

// epoch is the epoch of a row's partition now.
func (f *memoryFleet) epoch(r *memoryRow) int64 {
	return f.parts[place{r.Destination, partitionOf(r.key)}].epoch
}

func (f *memoryFleet) clone() memoryFleet {
	return memoryFleet{parts: maps.Clone(f.parts), relays: maps.Clone(f.relays)}
}
