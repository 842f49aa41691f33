package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// firstBeat is when a task that still runs is confirmed: the engine wants it
	// within two seconds of the hand-over.
	firstBeat = 1500 * time.Millisecond
	// beatsPerLease leaves room for two that get lost.
	beatsPerLease = 3
	// beatsTogether is how much earlier than due a beat may go along with others.
	beatsTogether = 250 * time.Millisecond
	// beatTimeout ends a heartbeat that is not answered, so that the next still
	// comes in time.
	beatTimeout = 5 * time.Second
	// beatAgain is the pause after a heartbeat that failed.
	beatAgain = time.Second
	// defaultLease is the lease of a task that names none.
	defaultLease = 30 * time.Second
)

// A beat extends the lease of one task until its report is taken.
type beat struct {
	task  ringi.Task
	every time.Duration
	due   time.Time
	end   context.CancelCauseFunc // ends the function's context
}

// beats extends the leases of all tasks of a worker, in one call per round.
type beats struct {
	w    *Worker
	mu   sync.Mutex
	all  map[*beat]struct{}
	wake time.Time     // when run looks next
	hint chan struct{} // has room for one hint that something is due before that
}

func newBeats(w *Worker) *beats {
	return &beats{w: w, all: map[*beat]struct{}{}, hint: make(chan struct{}, 1)}
}

// add begins to extend the lease of a task. One that was permitted to begin is
// confirmed already; another is confirmed by its first beat.
func (bs *beats) add(task ringi.Task, end context.CancelCauseFunc) *beat {
	lease := task.Heartbeat
	if lease <= 0 {
		lease = defaultLease
	}
	b := &beat{task: task, every: lease / beatsPerLease, end: end}
	if task.Begin {
		b.due = time.Now().Add(b.every)
	} else {
		b.due = task.Started.Add(handOver(task.Lease))
	}
	bs.mu.Lock()
	bs.all[b] = struct{}{}
	sooner := b.due.Before(bs.wake)
	bs.mu.Unlock()
	if sooner {
		select {
		case bs.hint <- struct{}{}:
		default:
		}
	}
	return b
}

// handOver is when a hand-over is confirmed.
func handOver(lease time.Duration) time.Duration {
	if lease <= 0 {
		return firstBeat
	}
	return min(firstBeat, lease/beatsPerLease)
}

func (bs *beats) remove(b *beat) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.all, b)
}

// run sends beats when they are due, until ctx ends.
func (bs *beats) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(bs.next())
		select {
		case <-ctx.Done():
			return
		case <-bs.hint:
		case <-timer.C:
			bs.round(ctx)
		}
	}
}

// next is how long nothing is due. What is added meanwhile and due later than that
// is seen then, so that a worker with many short tasks looks seldom.
func (bs *beats) next() time.Duration {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	now := time.Now()
	wait := time.Hour
	for b := range bs.all {
		wait = min(wait, b.due.Sub(now))
	}
	wait = max(wait, 0)
	bs.wake = now.Add(wait)
	return wait
}

func (bs *beats) due() []*beat {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var due []*beat
	for b := range bs.all {
		if time.Until(b.due) <= min(beatsTogether, b.every/2) {
			due = append(due, b)
		}
	}
	return due
}

// round sends one heartbeat for all that are due or nearly so.
func (bs *beats) round(ctx context.Context) {
	due := bs.due()
	if len(due) == 0 {
		return
	}
	sent := make([]ringi.Beat, len(due))
	for i, b := range due {
		sent[i] = ringi.Beat{Tenant: bs.w.tenant, Run: b.task.Run, CallRef: b.task.CallRef, Worker: bs.w.name}
	}
	limited, cancel := context.WithTimeout(ctx, beatTimeout)
	answers, err := bs.w.service.Heartbeat(limited, sent...)
	cancel()
	if err == nil && len(answers) != len(due) {
		err = fmt.Errorf("%d answers to %d beats", len(answers), len(due))
	}
	if err != nil && ctx.Err() == nil {
		bs.w.trouble(fmt.Errorf("worker: heartbeat: %w", err))
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for i, b := range due {
		switch {
		case err != nil: // nobody said that the lease is lost: go on
			b.due = time.Now().Add(min(b.every, beatAgain))
		case answers[i].Outcome == ringi.Stale:
			delete(bs.all, b)
			b.end(ErrLeaseLost)
		default:
			b.due = time.Now().Add(b.every)
			if answers[i].Cancel {
				b.end(ErrCancelled)
			}
		}
	}
}
