package memory

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// partitionOf is the partition of a key in memory. A database has its own rule;
// all that matters is that everyone who shares a table goes by the same.
func partitionOf(k outbox.Key) int {
	h := fnv.New64a()
	// A hash never fails to be written to.
	_, _ = h.Write([]byte(strconv.FormatInt(k.Tenant, 10) + " " + k.AggregateID))
	return int(h.Sum64() % outbox.Partitions)
}

// fleet is the tables outbox_partition and outbox_relay of an outbox in memory.
type fleet struct {
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

var _ outbox.Fleet = (*Outbox)(nil)

// Hold implements Fleet. A zero time is refused: memory has no clock.
func (s *Outbox) Hold(ctx context.Context, h outbox.Hold) (outbox.Held, error) {
	if err := errors.Join(ctx.Err(), h.Check()); err != nil {
		return outbox.Held{}, err
	}
	if h.Now.IsZero() {
		return outbox.Held{}, errors.New("outbox: an outbox in memory has no clock; pass the time")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.hold(h), nil
}

// Leave implements Fleet.
func (s *Outbox) Leave(ctx context.Context, h outbox.Hold) error {
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

func (f *fleet) hold(h outbox.Hold) outbox.Held {
	if f.parts == nil {
		f.parts, f.relays = map[place]holding{}, map[member]seat{}
	}
	f.relays[member{h.Destination, h.By}] = seat{h.Now.Add(h.Lease), h.Took, h.Failed}
	held := outbox.Held{Now: h.Now}
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
	most := table.Share(held.Relays)
	for _, mine := range []bool{true, false} { // first what it has, then what is free
		for n := range outbox.Partitions {
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
				held.Partitions = append(held.Partitions, outbox.Partition{Number: n, Epoch: p.epoch})
			}
		}
	}
	slices.SortFunc(held.Partitions, func(a, b outbox.Partition) int { return a.Number - b.Number })
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
func (f *fleet) fences(c outbox.Claim) map[int]int64 {
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
func (f *fleet) epoch(r *entry) int64 {
	return f.parts[place{r.Destination, partitionOf(r.at.Key)}].epoch
}

func (f *fleet) clone() fleet {
	return fleet{parts: maps.Clone(f.parts), relays: maps.Clone(f.relays)}
}
