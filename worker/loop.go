package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/shift"
)

// hands is a shift with a lock around it, and hints for those who wait for a
// change of it.
type hands struct {
	mu      sync.Mutex
	shift   *shift.Shift
	beatAt  time.Time       // when the loop of heartbeats looks next
	sooner  chan struct{}   // a lease is to be extended before that
	report  chan struct{}   // there may be something to report
	freed   []chan struct{} // by queue: a slot may be free
	lighter chan struct{}   // fewer tasks may be open
}

func newHands(s *shift.Shift, queues int) *hands {
	h := &hands{shift: s, sooner: hint(), report: hint(), lighter: hint()}
	for range queues {
		h.freed = append(h.freed, hint())
	}
	return h
}

// hint has room for one, so that giving it never waits.
func hint() chan struct{} { return make(chan struct{}, 1) }

func give(hint chan struct{}) {
	select {
	case hint <- struct{}{}:
	default:
	}
}

// change does something to the shift, and lets everybody look who may now have
// something to do.
func (h *hands) change(f func(s *shift.Shift, now time.Time)) {
	h.mu.Lock()
	f(h.shift, time.Now())
	h.mu.Unlock()
	give(h.report)
	give(h.lighter)
	for _, freed := range h.freed {
		give(freed)
	}
}

// look asks the shift something that others need not know of.
func look[T any](h *hands, f func(s *shift.Shift, now time.Time) (T, time.Duration)) (T, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f(h.shift, time.Now())
}

// begin is the command that asks for permission.
func (h *hands) begin(a *shift.Attempt) ringi.Command {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shift.Begin(a)
}

// poll takes tasks of the i-th queue until ctx ends. Functions live as long as
// life.
func (w *Worker) poll(ctx, life context.Context, i int) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		req, in := look(w.hands, func(s *shift.Shift, now time.Time) (ringi.PollRequest, time.Duration) { return s.Poll(i, now) })
		if req.Max == 0 {
			timer.Reset(in)
			select {
			case <-w.hands.freed[i]:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		began := time.Now()
		tasks, err := w.service.Poll(ctx, req)
		w.hands.change(func(s *shift.Shift, now time.Time) {
			w.start(life, s.Polled(i, req.Max, tasks, err, began, now))
		})
		if err != nil && ctx.Err() == nil {
			w.trouble(fmt.Errorf("worker: poll of queue %s: %w", req.Queue, err))
		}
	}
}

// start performs attempts that have just come: in the same change of the shift,
// so that each can be ended from the first moment on.
func (w *Worker) start(life context.Context, attempts []*shift.Attempt) {
	for _, a := range attempts {
		ctx, end := context.WithCancelCause(life)
		a.End = end
		go w.perform(ctx, a)
	}
}

// beats extends leases when they are due, until ctx ends. What is added meanwhile
// and due later than that is seen then, so that a worker with many short tasks
// looks seldom.
func (w *Worker) beats(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		round, in := look(w.hands, func(s *shift.Shift, now time.Time) (*shift.Round, time.Duration) {
			r, in := s.Beat(now)
			w.hands.beatAt = now.Add(min(in, time.Hour))
			return r, in
		})
		if round != nil {
			w.beat(ctx, round)
			continue
		}
		timer.Reset(in)
		select {
		case <-ctx.Done():
			return
		case <-w.hands.sooner:
		case <-timer.C:
		}
	}
}

// beat sends one heartbeat.
func (w *Worker) beat(ctx context.Context, round *shift.Round) {
	limited, cancel := context.WithTimeout(ctx, shift.BeatTimeout)
	answers, err := w.service.Heartbeat(limited, round.Beats...)
	cancel()
	if err == nil && len(answers) != len(round.Beats) {
		err = fmt.Errorf("%d answers to %d beats", len(answers), len(round.Beats))
	}
	if err != nil && ctx.Err() == nil {
		w.trouble(fmt.Errorf("worker: heartbeat: %w", err))
	}
	w.hands.mu.Lock()
	defer w.hands.mu.Unlock()
	for _, e := range w.hands.shift.Beaten(round, answers, err, time.Now()) {
		e.Attempt.End(e.Cause)
	}
}

// extending wakes the loop of heartbeats if the lease of an attempt is to be
// extended before it looks.
func (w *Worker) extending(a *shift.Attempt) {
	w.hands.mu.Lock()
	due := a.Due()
	sooner := !due.IsZero() && due.Before(w.hands.beatAt)
	w.hands.mu.Unlock()
	if sooner {
		give(w.hands.sooner)
	}
}

// reports sends reports until ctx ends. Functions that are started along with the
// answers live as long as life.
func (w *Worker) reports(ctx, life context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		batch, in := look(w.hands, func(s *shift.Shift, now time.Time) (*shift.Batch, time.Duration) { return s.Report(now) })
		if batch != nil {
			calls.Go(func() { w.send(ctx, life, batch) })
			continue
		}
		timer.Reset(in)
		select {
		case <-ctx.Done():
			return
		case <-w.hands.report:
		case <-timer.C:
		}
	}
}

// send makes one call with reports and begins with the tasks that its answer
// brings.
func (w *Worker) send(ctx, life context.Context, batch *shift.Batch) {
	results := w.service.Do(ctx, batch.Commands...)
	var errs []error
	w.hands.change(func(s *shift.Shift, now time.Time) {
		attempts, told := s.Reported(batch, results, now)
		w.start(life, attempts)
		errs = told
	})
	for _, err := range errs {
		if ctx.Err() == nil || !shift.MayPass(err) {
			w.trouble(err)
		}
	}
}
