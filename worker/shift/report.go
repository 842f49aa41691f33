package shift

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// maxReports is how many go at once: as many as one request takes.
	maxReports = 500
	// maxCalls is how many calls with reports are under way at once: one whose
	// commit is under way, one that waits for the next, and as many again on their
	// way there and back. More make smaller requests and gain nothing.
	maxCalls = 4
)

// A Batch is one call with reports, which asks for the next tasks. What finishes
// while as many calls as may be are under way goes together into the next: so a
// busy worker groups its reports by itself, and one that is not reports at once.
// With one call at a time a report would wait for the commit of those before it,
// and be late for the next.
type Batch struct {
	Commands []ringi.Command // to send
	attempts []*Attempt
	asked    []int // how many tasks the command asks for
}

// Report says what to report now; what it returns is under way until Reported. If
// there is nothing (nil), it is to be called again after in, and whenever a call
// has ended or a report was answered. Completions come first and those of a queue
// together: the client puts what follows each other into one request.
func (s *Shift) Report(now time.Time) (b *Batch, in time.Duration) {
	in = Never
	if s.calls >= maxCalls {
		return nil, in
	}
	for _, a := range s.reports {
		in = min(in, a.wait(now))
	}
	if in > 0 {
		return nil, in
	}
	b = &Batch{}
	s.reports = slices.DeleteFunc(s.reports, func(a *Attempt) bool {
		goes := len(b.attempts) < maxReports && (a.along || a.wait(now) <= 0)
		if goes {
			b.attempts = append(b.attempts, a)
		}
		return goes
	})
	s.sent += len(b.attempts)
	s.calls++
	slices.SortStableFunc(b.attempts, func(a, b *Attempt) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.queue.Name, b.queue.Name))
	})
	for _, a := range b.attempts {
		b.Commands = append(b.Commands, s.command(a, a.do))
	}
	s.ask(b)
	for _, a := range b.attempts {
		a.queue.unsent--
	}
	return b, 0
}

// wait is how long the report is put off; 0 for one that never was.
func (a *Attempt) wait(now time.Time) time.Duration {
	if a.putOff.IsZero() {
		return 0
	}
	return a.putOff.Sub(now)
}

func (a *Attempt) rank() int {
	if _, ok := a.do.(ringi.CompleteActivity); ok {
		return 0
	}
	return 1
}

// ask adds to one report of each queue a wish for as many tasks as it has free
// slots.
func (s *Shift) ask(b *Batch) {
	b.asked = make([]int, len(b.attempts))
	if s.stopped {
		return
	}
	var done []*queue
	for i, a := range slices.Backward(b.attempts) {
		if slices.Contains(done, a.queue) {
			continue
		}
		done = append(done, a.queue)
		n := a.queue.free()
		if n == 0 {
			continue
		}
		a.queue.asked += n
		b.asked[i] = n
		b.Commands[i].Do = wanting(a.do, s.request(a.queue, n, 0))
	}
}

// wanting is a report that asks for tasks.
func wanting(do ringi.Action, p ringi.PollRequest) ringi.Action {
	switch do := do.(type) {
	case ringi.CompleteActivity:
		do.Want = &p
		return do
	case ringi.FailActivity:
		do.Want = &p
		return do
	}
	return do
}

// Reported takes in the results of a batch, one for each command; any other
// number counts as no answer. It returns the attempts to perform that came along,
// and what a person should hear of. A report that was taken, or can never be, is
// forgotten; another is sent again, for as long as it takes.
func (s *Shift) Reported(b *Batch, results []ringi.Result, now time.Time) (attempts []*Attempt, errs []error) {
	if len(results) != len(b.Commands) {
		err := &ringi.Error{Code: ringi.CodeUnavailable, Message: fmt.Sprintf("%d results for %d commands", len(results), len(b.Commands))}
		results = make([]ringi.Result, len(b.Commands))
		for i := range results {
			results[i].Err = err
		}
	}
	for i, a := range b.attempts {
		if b.asked[i] > 0 {
			a.queue.asked -= b.asked[i]
			attempts = append(attempts, s.take(a.queue, results[i].Tasks, now)...)
		}
	}
	for i, a := range b.attempts {
		if err := s.answered(a, results[i].Err, now); err != nil {
			errs = append(errs, err)
		}
	}
	s.sent -= len(b.attempts)
	s.calls--
	return attempts, errs
}

// answered drops a report that was taken or can never be, and puts off another.
func (s *Shift) answered(a *Attempt, err error, now time.Time) error {
	code := ringi.ErrorCode(err)
	switch {
	case err != nil && MayPass(err):
		a.failed++
		a.along = code == ringi.CodeUnavailable
		a.putOff = now.Add(pauseAfter(a.failed))
		s.back(a)
		return fmt.Errorf("worker: report of %s %s: %w", a.Task.Run, a.Task.Step, err)
	case a.rank() == 0 && (code == ringi.CodeTooLarge || code == ringi.CodeInvalid):
		// the call was made; what it answered can never be taken
		refused := Failure(CodeTooLarge, err.Error(), false, ringi.AppliedUnknown)
		if code == ringi.CodeInvalid {
			refused.Code = CodeBadOutput
			err = fmt.Errorf("worker: the output of %s %s was refused: %w", a.Task.Run, a.Task.Step, err)
		} else {
			err = nil
		}
		a.do = ringi.FailActivity{CallRef: a.Task.CallRef, Worker: s.config.Worker, Failure: refused}
		s.back(a)
		return err
	case err != nil:
		err = fmt.Errorf("worker: report of %s %s was refused: %w", a.Task.Run, a.Task.Step, err)
	}
	s.close(a)
	return err
}

// back returns a report that is to be sent again.
func (s *Shift) back(a *Attempt) {
	a.queue.unsent++
	s.reports = append(s.reports, a)
}
