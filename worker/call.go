package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/shift"
)

// perform makes one attempt and hands its report over. ctx is the function's, and
// ends with the attempt at the latest.
func (w *Worker) perform(ctx context.Context, a *shift.Attempt) {
	defer a.End(nil)
	if at, ok := a.Deadline(); ok {
		timed, stopTimer := context.WithDeadlineCause(ctx, at, ErrTimeout)
		defer stopTimer()
		ctx = timed
	}
	if a.Asks() && !w.permitted(ctx, a) {
		return
	}
	w.extending(a)
	output, err := w.guarded(ctx, w.activities[a.Queue()][a.Task.Activity], a.Task)
	w.hands.change(func(s *shift.Shift, _ time.Time) {
		if err != nil {
			s.Failed(a, failureOf(ctx, err))
			return
		}
		s.Succeeded(a, output)
	})
}

// permitted asks for permission to make a call that must not repeat. It asks
// until it is answered: the answer to a repeated question is the same.
func (w *Worker) permitted(ctx context.Context, a *shift.Attempt) bool {
	for {
		res := w.service.Do(ctx, w.hands.begin(a))[0]
		var verdict shift.Verdict
		var in time.Duration
		var err error
		w.hands.change(func(s *shift.Shift, now time.Time) { verdict, in, err = s.Begun(a, res, ctx.Err() != nil, now) })
		if err != nil {
			w.trouble(err)
		}
		if verdict != shift.Again {
			return verdict == shift.Call
		}
		if !pause(ctx, in) {
			w.hands.change(func(s *shift.Shift, _ time.Time) { s.Drop(a) })
			return false
		}
	}
}

// pause waits. It reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errNoReturn is what a function that ended its goroutine is taken to have said.
var errNoReturn = errors.New("the function ended without returning")

// guarded turns a panic of the function, or the end of its goroutine, into a
// failure. The function has a goroutine of its own, so that ending it does not
// end the report.
func (w *Worker) guarded(ctx context.Context, activity Activity, task ringi.Task) (output json.RawMessage, err error) {
	done := make(chan struct{})
	err = panicked(errNoReturn)
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				w.trouble(fmt.Errorf("worker: panic in %s: %v\n%s", activity.name, p, debug.Stack()))
				err = panicked(p)
			}
		}()
		output, err = activity.Call(ctx, task)
	}()
	<-done
	return output, err
}
