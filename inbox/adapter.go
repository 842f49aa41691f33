package inbox

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// Usable tells whether a consumer can keep a message id: it is not empty, UTF-8
// without NUL, and within MaxName. Adapters to brokers ask it of what a message
// says of itself, before they name the message otherwise.
func Usable(id string) bool {
	return id != "" && len(id) <= MaxName && utf8.ValidString(id) && !strings.Contains(id, "\x00")
}

// Pause is how long an adapter keeps a message that failed before it is received
// again, after so many failures before this one: first, doubling up to most.
func Pause(first, most time.Duration, failures int) time.Duration {
	for range failures {
		if first > most/2 {
			return most
		}
		first *= 2
	}
	return min(first, most)
}

// DefaultPauseFirst and DefaultPauseMost are the pauses of adapters before a message
// that failed is received again, doubling from the one to the other; they are those
// of the outbox.
const (
	DefaultPauseFirst = time.Second
	DefaultPauseMost  = time.Minute
)

// A Receiver is what an adapter does with the deliveries of its broker.
type Receiver struct {
	// Receive does the work of one delivery, as Consumer.Receive does.
	Receive func(ctx context.Context, d Delivery) (Outcome, error)

	// Observe is told the outcome of every delivery.
	Observe func(d Delivery, outcome Outcome, err error)

	// Trouble is told of every error of the broker.
	Trouble func(err error)

	// PauseFirst and PauseMost are the pauses after a failure.
	PauseFirst, PauseMost time.Duration
}

// Insist receives one delivery, again and again while it fails, with growing pauses.
// It answers Failed, with the last error, only when ctx has ended or held says that
// the broker may have given the message to somebody else; nil held never says so.
//
// The message is kept meanwhile and not given back to the broker: every hand-out
// counts there, so that a database that is down for some minutes would look like a
// message that kills processes.
func (r Receiver) Insist(ctx context.Context, d Delivery, held func() bool) (Outcome, error) {
	for failures := 0; ; failures++ {
		outcome, err := r.Receive(ctx, d)
		r.Observe(d, outcome, err)
		if outcome != Failed || ctx.Err() != nil || held != nil && !held() {
			return outcome, err
		}
		Rest(ctx, Pause(r.PauseFirst, r.PauseMost, failures))
		if ctx.Err() != nil {
			return outcome, err
		}
	}
}

// Loop calls round until ctx ends; after one that met an error of the broker it tells
// of that, unless trouble is nil, and waits for the pause.
func Loop(ctx context.Context, pause time.Duration, round func(context.Context) error, trouble func(error)) {
	for ctx.Err() == nil {
		if err := round(ctx); err != nil {
			if trouble != nil && ctx.Err() == nil {
				trouble(err)
			}
			Rest(ctx, pause)
		}
	}
}

// Rest waits for d, or less when ctx ends.
func Rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
