package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// Relays carry the messages of one outbox, each to its destination.
type Relays struct {
	relays []*outbox.Relay
	hints  []chan struct{}
}

// New returns the relays to some sinks, one for each. What the config says holds for
// each of them; its Sink, Destination and Wake are not used, and Observe is called from
// several goroutines.
func New(cfg outbox.RelayConfig, sinks ...*Sink) (*Relays, error) {
	if len(sinks) == 0 {
		return nil, errors.New("there is no destination; name at least one of " + Forms)
	}
	r := &Relays{}
	for _, s := range sinks {
		if err := r.add(cfg, s); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Relays) add(cfg outbox.RelayConfig, s *Sink) error {
	hint := make(chan struct{}, 1)
	cfg.Sink, cfg.Destination, cfg.Wake = finishing{s.Sink}, s.Destination, hint
	if len(r.relays) > 0 {
		cfg.Retention = -1 // one is enough to remove what is old, whosever it was
	}
	one, err := outbox.NewRelay(cfg)
	if err != nil {
		return err
	}
	r.relays, r.hints = append(r.relays, one), append(r.hints, hint)
	return nil
}

// Wake hints that messages were committed. It never blocks.
func (r *Relays) Wake() {
	for _, hint := range r.hints {
		select {
		case hint <- struct{}{}:
		default: // a hint waits already
		}
	}
}

// Run relays until ctx ends. Batches under way are then still published and
// marked, each within the lease, and nothing new is claimed.
func (r *Relays) Run(ctx context.Context) error {
	errs := make([]error, len(r.relays))
	var running sync.WaitGroup
	for i, one := range r.relays {
		running.Go(func() { errs[i] = one.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// RunUntil is Run, which it gives a limited time after ctx has ended.
func (r *Relays) RunUntil(ctx context.Context, limit time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return errors.New("a destination did not answer in time: its messages are sent again when their lease ends")
	}
}

// finishing lets a batch that is being published finish although the relay is to
// stop: what was sent and not answered would be sent again by whoever comes next.
type finishing struct{ outbox.Sink }

// Publish implements outbox.Sink; only the deadline ends it early.
func (s finishing) Publish(ctx context.Context, msgs []outbox.Message) []error {
	end, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return s.Sink.Publish(ctx, msgs)
}
