package outbox

import (
	"context"
	"slices"
	"time"
)

// Feed tells relays of messages when they are committed, so that they need not poll
// to find them. It is a hint, which may come late, twice or never: the table stays
// the truth, and a relay with a feed polls all the same, at most PollMost apart.
// Package wal has one that reads PostgreSQL's write-ahead log.
type Feed interface {
	// Join begins to tell one relay of a destination's messages. hint is called
	// when there is something to take; it does not block and calls nothing of the
	// lane.
	Join(destination string, hint func()) Lane
}

// Lane is what a feed has for one relay. One goroutine at a time calls it.
type Lane interface {
	// Take returns at most limit committed messages of the relay's partitions (nil
	// means all) that were not taken, in the order of their commits; with limit 0
	// it only notes the partitions. gap says that since the last call something
	// was committed that the lane does not hold, so that the relay must poll.
	Take(parts []Partition, limit int) (ids []string, gap bool)

	// Settle says that a feed need not remember messages any more: they were marked
	// or are left to polling. What is not known, or settled already, changes nothing.
	Settle(ids []string)

	// Leave ends the lane.
	Leave()
}

// latePatience is how long a message that could not be claimed when the feed told of
// it is asked for again: the log has a commit a moment before others can see it,
// longer where it waits for a standby. After that it is left to polling.
const latePatience = 250 * time.Millisecond

// feeding is a running relay beside its feed. The zero value has none.
type feeding struct {
	lane   Lane
	hints  chan struct{}
	late   []lateMessage
	pollAt time.Time // when to poll next, whatever the feed says
	polled bool      // the last claim was a poll
}

// lateMessage could not be claimed, first at a time.
type lateMessage struct {
	id    string
	first time.Time
}

// join begins to listen.
func (r *Relay) join() {
	if r.cfg.Feed == nil {
		return
	}
	hints := make(chan struct{}, 1)
	r.feed = feeding{hints: hints}
	r.feed.lane = r.cfg.Feed.Join(r.cfg.Destination, func() {
		select {
		case hints <- struct{}{}:
		default: // a hint waits already
		}
	})
}

// unjoin ends the listening.
func (r *Relay) unjoin() {
	if r.feed.lane != nil {
		r.feed.lane.Leave()
		r.feed = feeding{}
	}
}

// claim takes what the feed told of, or polls when that is due. Where there is much
// of both they take turns: a backlog must not wait for what is new, nor the other
// way round.
func (r *Relay) claim(ctx context.Context, rep *Report, limit int) (Batch, error) {
	c := r.claimOf(rep.At, limit)
	f := &r.feed
	if f.lane == nil {
		return r.cfg.Source.Claim(ctx, c)
	}
	if r.circuit.failures > 0 { // a probe takes what has waited longest
		r.spill()
		return r.cfg.Source.Claim(ctx, c)
	}
	if _, gap := f.lane.Take(r.parts, 0); gap {
		f.pollAt = time.Time{}
	}
	due := !rep.At.Before(f.pollAt)
	if !due || f.polled {
		c.IDs = f.next(rep.At, r.parts, limit)
	}
	f.polled = len(c.IDs) == 0
	if len(c.IDs) > 0 {
		batch, err := r.cfg.Source.Claim(ctx, c)
		rep.Fed += len(batch.Messages)
		f.missed(rep.At, c.IDs, batch.Messages)
		return batch, err
	}
	if !due {
		return Batch{}, nil
	}
	batch, err := r.cfg.Source.Claim(ctx, c)
	if err == nil && len(batch.Messages) == 0 && !batch.More {
		f.pollAt = rep.At.Add(r.cfg.PollMost)
	}
	return batch, err
}

// next returns what to ask for: what came late first, which is never all of it.
func (f *feeding) next(now time.Time, parts []Partition, limit int) []string {
	var ids, settled []string
	kept := f.late[:0]
	for _, l := range f.late {
		switch {
		case now.Sub(l.first) > latePatience:
			settled = append(settled, l.id)
		case len(ids) < max(1, limit/2):
			ids = append(ids, l.id)
			kept = append(kept, l)
		default:
			kept = append(kept, l)
		}
	}
	f.late = kept
	f.lane.Settle(settled)
	more, gap := f.lane.Take(parts, limit-len(ids))
	if gap {
		f.pollAt = time.Time{}
	}
	return append(ids, more...)
}

// missed keeps what was asked for and not claimed for another time.
func (f *feeding) missed(now time.Time, asked []string, got []ClaimedMessage) {
	claimed := make(map[string]bool, len(got))
	for i := range got {
		claimed[got[i].ID] = true
	}
	known := make(map[string]bool, len(f.late))
	f.late = slices.DeleteFunc(f.late, func(l lateMessage) bool {
		known[l.id] = true
		return claimed[l.id]
	})
	for _, id := range asked {
		if !claimed[id] && !known[id] {
			f.late = append(f.late, lateMessage{id, now})
		}
	}
}

// spill leaves everything to polling: while the destination is down, and in a backlog,
// where claims are polls and the feed would hold its log for what it said long ago.
func (r *Relay) spill() {
	f := &r.feed
	if f.lane == nil {
		return
	}
	f.pollAt = time.Time{}
	ids := make([]string, 0, len(f.late))
	for _, l := range f.late {
		ids = append(ids, l.id)
	}
	f.late = nil
	for {
		f.lane.Settle(ids)
		if ids, _ = f.lane.Take(r.parts, r.cfg.Batch); len(ids) == 0 {
			return
		}
	}
}

// marked tells the feed of messages that were marked.
func (r *Relay) marked(marks []Mark) {
	if r.feed.lane == nil {
		return
	}
	ids := make([]string, len(marks))
	for i := range marks {
		ids[i] = marks[i].ID
	}
	r.feed.lane.Settle(ids)
}

// abandoned tells the feed of messages that are left to their lease.
func (r *Relay) abandoned(msgs []ClaimedMessage) {
	if r.feed.lane == nil {
		return
	}
	ids := make([]string, len(msgs))
	for i := range msgs {
		ids[i] = msgs[i].ID
	}
	r.feed.lane.Settle(ids)
}

// pauseFor is how long to pause at most: neither the next poll beside a feed nor the
// next renewal of the partitions is to be missed.
func (r *Relay) pauseFor(pause time.Duration) time.Duration {
	now := r.cfg.Now()
	if left := r.feed.pollAt.Sub(now); r.feed.lane != nil && left > 0 {
		pause = min(pause, left)
	}
	if left := r.holdAt.Sub(now); r.cfg.Fleet != nil && left > 0 {
		pause = min(pause, left)
	}
	return pause
}
