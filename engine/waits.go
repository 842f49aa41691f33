package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

const (
	// waitScan is how often pairs are looked for that both sides missed.
	waitScan = time.Second
	// waitPage bounds one look. What is left over is delivered by the next.
	waitPage = 1000
	// mostStuck is by how many pairs a look is widened at most, for those that
	// are looked at in vain because their run is quarantined.
	mostStuck = 20_000
	// expireScan is how often events are removed that nobody can take any more.
	expireScan = 10 * time.Second
	// expirePage bounds one removal.
	expirePage = 500
	// keepEvents is how long an event waits for a wait that opens later,
	// unless its sender says otherwise: a day, as people work.
	keepEvents = 24 * time.Hour
	// longestKeep bounds what a sender may say: the run time of a process.
	longestKeep = 400 * 24 * time.Hour
)

// waits brings events and waits together. The sender stores the event, the run
// its wait, each in its own transaction, and each looks for the other's row
// after that; the sweep over all pairs is for those that both missed.
type waits struct {
	*parts
	errands errands
	wake    chan struct{}

	mu       sync.Mutex
	open     []store.PairQuery // names and keys of waits that just opened
	stuck    int               // pairs of quarantined runs that the last sweep found
	sweepAt  time.Time
	expireAt time.Time
}

// opened says that a wait of this name and key stands in the store.
func (w *waits) opened(q store.PairQuery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) < waitPage && !slices.Contains(w.open, q) {
		w.open = append(w.open, q) // beyond that the sweep is quicker
	}
	signal(w.wake)
}

// Round looks for the waits that opened since the last one, and sweeps over
// everything when it is time to.
func (w *waits) Round(ctx context.Context) (worked bool, err error) {
	if !w.clock.Known() {
		return false, nil
	}
	w.mu.Lock()
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for _, q := range open {
		q.Limit = waitPage
		if _, err := w.match(ctx, q); err != nil {
			return false, err
		}
	}
	now := w.clock.Now()
	if w.sweepAt.After(now) && w.sweepAt.Sub(now) <= waitScan {
		return len(open) > 0, nil
	}
	// The pairs of quarantined runs come first for as long as they stand.
	if w.stuck, err = w.match(ctx, store.PairQuery{Limit: waitPage + min(w.stuck, mostStuck)}); err != nil {
		return false, err
	}
	w.sweepAt = now.Add(waitScan)
	return len(open) > 0, w.expire(ctx, now)
}

// match delivers what belongs together, of one name and key or of all, and
// counts the pairs that wait for a quarantined run.
func (w *waits) match(ctx context.Context, q store.PairQuery) (stuck int, err error) {
	pairs, err := w.Events.Pairs(ctx, q)
	if w.reach.Note(ctx, err) != nil {
		return 0, err
	}
	now := w.clock.Now()
	for _, p := range pairs {
		if w.sick.err(p.Key, now) != nil {
			stuck++
			continue
		}
		w.deliver(p)
	}
	return stuck, nil
}

// deliver tells the rules.
func (w *waits) deliver(p store.Pair) {
	cmd := ringi.Command{
		Tenant: p.Key.Tenant, Run: p.Key.Run, Actor: ringi.Engine(),
		Do: ringi.DeliverEvent{Step: p.Step, Event: p.Event},
	}
	w.errands.send(w.parts, fmt.Sprintf("%d/%s/%s/%s", p.Key.Tenant, p.Key.Run, p.Step, p.Event.ID), cmd, nil)
}

func (w *waits) expire(ctx context.Context, now time.Time) error {
	if w.expireAt.After(now) && w.expireAt.Sub(now) <= expireScan {
		return nil
	}
	n, err := w.Events.Expire(ctx, now, expirePage)
	if w.reach.Wrote(ctx, 0, err) != nil {
		return err
	}
	if n < expirePage {
		w.expireAt = now.Add(expireScan)
	}
	return nil
}

// send stores an event and looks for the waits that it belongs to. It is
// answered when the event is durable; the runs take it in their own time.
func (w *waits) send(ctx context.Context, cmd ringi.Command, a ringi.SendEvent) ringi.Result {
	if !w.clock.Known() {
		if err := w.contact(ctx); err != nil {
			return ringi.Result{Err: unavailable(err)}
		}
	}
	now := w.clock.Now()
	if a.ID == "" {
		id, err := newUUID(now, w.random)
		if err != nil {
			return ringi.Result{Err: internalFault(err)}
		}
		a.ID = id
	}
	keep := a.Keep
	if keep <= 0 {
		keep = keepEvents
	}
	event := ringi.SentEvent{ID: a.ID, Name: a.Name, Key: a.Key, Data: a.Data, SentAt: now}
	created, err := w.Events.Send(ctx, cmd.Tenant, event, now.Add(min(keep, longestKeep)))
	var known *store.EventKnown
	if errors.As(w.reach.Wrote(ctx, 0, err), &known) && sameEvent(known.Event, event) {
		created, err = false, nil
	}
	if errors.As(err, &known) {
		return ringi.Result{ID: a.ID, Err: &ringi.Error{
			Code: ringi.CodeInvalid, Message: fmt.Sprintf("the event id %q belongs to an event with another name, key or data", short(a.ID)),
			Hint: "an id names one event: repeat that unchanged, or give this one an id of its own",
		}}
	}
	if err != nil {
		return ringi.Result{Err: storeFault(err)}
	}
	res := ringi.Result{ID: a.ID, Created: created, Answer: ringi.Answer{Outcome: ringi.Accepted}}
	if !created {
		res.Answer.Outcome = ringi.Repeated
	}
	// If this fails the sweep finds the pair.
	_, _ = w.match(ctx, store.PairQuery{Tenant: cmd.Tenant, Name: a.Name, Key: a.Key, Limit: waitPage})
	return res
}

// sameEvent reports whether two events of one id differ only in how their data
// is written.
func sameEvent(a, b ringi.SentEvent) bool {
	digest := func(data []byte) (string, error) {
		if len(data) == 0 {
			data = []byte("null")
		}
		return workflow.Digest(data)
	}
	x, errX := digest(a.Data)
	y, errY := digest(b.Data)
	return a.Name == b.Name && a.Key == b.Key && errX == nil && errY == nil && x == y
}
