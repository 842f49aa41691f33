package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// aheadShare is the part of a lease that a batch may wait for the one before it:
	// with half a lease for publishing it is marked in time, and so is what the
	// fleet gave renewed.
	aheadShare = 8

	// aheadRestMost is the most batches without a claim ahead after one that found
	// little, as in a backlog of few keys, whose next messages wait for the marks.
	aheadRestMost = 64
)

// ahead is the batch that a running relay claims while it publishes the one
// before, so that the database works while the destination does. It holds no
// message of a key that the other has one of, since a claim looks at the head of
// the key. The attempts of both are counted, so a crash repeats the one and spends
// an attempt of the other; a message that kills the relay spends those of two
// batches once, and is then claimed alone with none behind it.
type ahead struct {
	on    bool // Run is running; a Round by itself leaves nothing in its hands
	batch Batch
	at    time.Time // when it was claimed

	rest  int // batches still to come before the next claim ahead
	rests int // how many the last one cost that found little
}

// has tells whether there is a batch that was claimed and not yet published.
func (a *ahead) has() bool { return len(a.batch.Messages) > 0 }

// claimAhead begins to claim what follows a batch, if that is worth it. join waits
// for the answer.
func (r *Relay) claimAhead(ctx context.Context, under Batch) (join func() error) {
	if !r.mayClaimAhead(ctx, under) {
		return func() error { return nil }
	}
	c := r.claimOf(r.cfg.Now(), r.cfg.Batch)
	c.Ahead = true
	var err error
	var claiming sync.WaitGroup
	claiming.Go(func() {
		// Also when ctx ends: a batch that is known can be given back.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
		defer cancel()
		r.ahead.batch, err = r.cfg.Source.Claim(ctx, c)
	})
	return func() error {
		claiming.Wait()
		r.ahead.at = c.Now
		if 2*len(r.ahead.batch.Messages) >= r.cfg.Batch {
			r.ahead.rests = 0
			return err
		}
		r.ahead.rests = min(max(1, 2*r.ahead.rests), aheadRestMost)
		r.ahead.rest = r.ahead.rests
		return err
	}
}

// mayClaimAhead: only behind a full batch, which is neither a probe nor a suspect,
// and not when the fleet is to be asked, which wants empty hands.
func (r *Relay) mayClaimAhead(ctx context.Context, under Batch) bool {
	full := len(under.Messages) == r.cfg.Batch && r.cfg.Batch > 1
	if !r.ahead.on || !full || ctx.Err() != nil || r.circuit.failures > 0 ||
		r.cfg.Fleet != nil && !r.cfg.Now().Before(r.holdAt) {
		return false
	}
	if r.ahead.rest > 0 {
		r.ahead.rest--
		return false
	}
	return true
}

// putBack owes the release of a batch that was claimed ahead and is not to be
// published: its destination is down, or it has waited for too long.
func (r *Relay) putBack(rep *Report) {
	if r.ahead.has() && (r.circuit.failures > 0 || rep.At.Sub(r.ahead.at) >= r.cfg.Lease/aheadShare) {
		r.release(rep)
	}
}

// release owes the release of the batch that was claimed ahead.
func (r *Relay) release(rep *Report) {
	for _, m := range r.ahead.batch.Messages {
		r.owe(rep, Mark{ID: m.ID, Epoch: m.Epoch, Fence: m.Fence, Outcome: MarkReleased, NextAt: rep.At})
	}
	rep.Claimed += len(r.ahead.batch.Messages)
	r.ahead.batch = Batch{}
}

// stopAhead gives back what was claimed ahead when Run ends.
func (r *Relay) stopAhead(ctx context.Context) {
	r.ahead.on = false
	if !r.ahead.has() && r.writing == nil && len(r.unmarked) == 0 {
		return
	}
	rep := Report{At: r.cfg.Now(), Destination: r.cfg.Destination, Partitions: len(r.parts)}
	r.release(&rep)
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
	defer cancel()
	rep.Err = r.settle(settling, &rep)
	r.cfg.Observe(rep)
}
