package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// begun runs a relay in the bubble of synctest until the test ends it.
func begun(t *testing.T, cfg outbox.RelayConfig) (stop func()) {
	t.Helper()
	r, err := outbox.NewRelay(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

// elapse lets virtual time pass, and then lets every goroutine come to rest.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// written returns an order that was written at the bubble's time.
func written(n int, aggregate string) outbox.Message {
	m := order(n, aggregate)
	m.CreatedAt = time.Now()
	return m
}

func TestRunFindsMessagesWithoutAHint(t *testing.T) { // O5
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{}
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink})
		elapse(time.Hour) // idle: the pause has grown to its most
		f.put(t, written(1, "a"))
		elapse(outbox.DefaultPollMost)
		if got := sink.taken(); got != "a/1" {
			t.Errorf("got %q after the longest pause", got)
		}
		stop()
	})
}

func TestAHintEndsThePauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, sink, wake := inMemory(), &fakeSink{}, make(chan struct{}, 1)
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Wake: wake})
		elapse(time.Hour + time.Millisecond)
		f.put(t, written(1, "a"))
		wake <- struct{}{}
		synctest.Wait() // no time passes
		if got := sink.taken(); got != "a/1" {
			t.Errorf("got %q right after the hint", got)
		}
		close(wake) // hints end; polling goes on
		f.put(t, written(2, "a"))
		elapse(outbox.DefaultPollMost)
		if got := sink.taken(); got != "a/1 a/2" {
			t.Errorf("got %q without hints", got)
		}
		stop()
	})
}

// looks counts the claims of a relay.
type looks struct {
	outbox.Source
	n int
}

func (l *looks) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	l.n++
	return l.Source.Claim(ctx, c)
}

func TestAnIdleRelayLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &looks{Source: inMemory()}
		stop := begun(t, outbox.RelayConfig{Source: src, Sink: &fakeSink{}})
		elapse(time.Minute)
		if src.n < 60 || src.n > 70 {
			t.Errorf("%d looks in an idle minute, want about one a second", src.n)
		}
		stop()
	})
}

// away is a source whose database can be away.
type away struct {
	outbox.Source
	gone atomic.Bool
}

func (a *away) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	if a.gone.Load() {
		return outbox.Batch{}, errKilled
	}
	return a.Source.Claim(ctx, c)
}

func TestRunGoesOnWhenTheDatabaseComesBack(t *testing.T) { // O7
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{}
		src := &away{Source: f}
		src.gone.Store(true)
		failures := 0
		stop := begun(t, outbox.RelayConfig{Source: src, Sink: sink, Observe: func(r outbox.Report) {
			if r.Err != nil {
				failures++
			}
		}})
		f.put(t, written(1, "a"))
		elapse(5*time.Minute + time.Millisecond)
		if failures == 0 {
			t.Error("the failures were told to nobody")
		}
		src.gone.Store(false)
		elapse(outbox.DefaultPollMost)
		if got := sink.taken(); got != "a/1" {
			t.Errorf("got %q", got)
		}
		stop()
	})
}
