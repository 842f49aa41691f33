package shift

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// An Attempt is one task in the hands of a worker: until its call has ended, and
// then until its report was taken.
type Attempt struct {
	// Task is what is to be done. Task.Started is when it came.
	Task ringi.Task

	// End is how its user ends the context of the call, if it has one: when an
	// Ending says so. The shift does not call it.
	End func(cause error)

	queue *queue
	open  bool

	// Of the question for permission, and later of the report.
	failed int // how often it was not answered

	// Of the lease.
	every      time.Duration
	due        time.Time // of the next heartbeat; zero while there is none
	prev, next *Attempt
	held       bool // it is in the list of those whose leases are extended

	// Of the report.
	do     ringi.Action // CompleteActivity or FailActivity; nil until the call has ended
	putOff time.Time    // not sent before, unless it may go along
	along  bool         // it failed because the server was away: it goes with the next
}

// Asks reports whether the call needs permission first.
func (a *Attempt) Asks() bool { return a.Task.Begin }

// Open reports whether it is in the worker's hands: until its report was taken,
// or until it was dropped.
func (a *Attempt) Open() bool { return a.open }

// Queue is the queue that it came from.
func (a *Attempt) Queue() string { return a.queue.Name }

// Deadline is when the context of the call ends, if it has a time-out.
func (a *Attempt) Deadline() (at time.Time, ok bool) {
	return a.Task.Started.Add(a.Task.Timeout), a.Task.Timeout > 0
}

// Due is when its lease is to be extended next; zero while it is not.
func (a *Attempt) Due() time.Time { return a.due }

// take begins with tasks. One that names an activity that nobody registered is
// reported at once; the others are returned, to be performed.
func (s *Shift) take(q *queue, tasks []ringi.Task, now time.Time) []*Attempt {
	attempts := make([]*Attempt, 0, len(tasks))
	for _, t := range tasks {
		t.Started = now
		a := &Attempt{Task: t, queue: q, open: true}
		s.open++
		q.busy++
		known := slices.Contains(q.Activities, t.Activity)
		if !known || !a.Asks() {
			s.hold(a, t.Started.Add(handOver(t.Lease)))
		}
		if !known {
			s.Failed(a, ringi.Failure{
				Code: CodeNoHandler, Message: fmt.Sprintf("this worker has no activity %q", t.Activity), Retryable: true, Applied: ringi.AppliedNo,
			})
			continue
		}
		attempts = append(attempts, a)
	}
	return attempts
}

// A Verdict says how an attempt goes on after it asked for permission.
type Verdict int

// The verdicts.
const (
	Call   Verdict = iota // the call is to be made
	Forget                // it is not, and there is nothing to report
	Again                 // nobody answered: it is to ask again
)

// Begin is the command that asks for permission to make a call. Only its answer
// is the permission; asked again, it is answered alike.
func (s *Shift) Begin(a *Attempt) ringi.Command {
	return s.command(a, ringi.BeginActivity{CallRef: a.Task.CallRef, Worker: s.config.Worker})
}

// Begun takes in the answer to Begin; ended says that the context of the call has
// ended meanwhile. After Again it is to ask again after in, unless the context
// ends before: then Drop. err is what a person should hear of.
func (s *Shift) Begun(a *Attempt, res ringi.Result, ended bool, now time.Time) (v Verdict, in time.Duration, err error) {
	switch {
	case res.Err == nil && (res.Answer.Outcome == ringi.Accepted || res.Answer.Outcome == ringi.Repeated):
		s.hold(a, now.Add(beatEvery(a.Task)))
		a.failed = 0
		return Call, 0, nil
	case res.Err != nil && !ended && MayPass(res.Err):
		a.failed++
		return Again, pauseAfter(a.failed), nil
	case res.Err != nil && !ended:
		err = fmt.Errorf("worker: begin of %s %s: %w", a.Task.Run, a.Task.Step, res.Err)
	}
	s.Drop(a)
	return Forget, 0, err
}

// Drop forgets an attempt that was never permitted: there is nothing to report.
func (s *Shift) Drop(a *Attempt) {
	a.queue.busy--
	a.open = false
	s.open--
}

// Succeeded ends a call that worked. Its slot is free, so that its report can ask
// for the next task.
func (s *Shift) Succeeded(a *Attempt, output json.RawMessage) {
	s.end(a, ringi.CompleteActivity{CallRef: a.Task.CallRef, Worker: s.config.Worker, Output: output})
}

// Failed ends a call that failed.
func (s *Shift) Failed(a *Attempt, f ringi.Failure) {
	s.end(a, ringi.FailActivity{CallRef: a.Task.CallRef, Worker: s.config.Worker, Failure: f})
}

func (s *Shift) end(a *Attempt, do ringi.Action) {
	a.do = do
	a.queue.busy--
	a.queue.unreported++
	a.queue.unsent++
	s.reports = append(s.reports, a)
}

// close ends the life of an attempt: its report was taken, or never can be.
func (s *Shift) close(a *Attempt) {
	s.release(a)
	a.queue.unreported--
	a.open = false
	s.open--
}

func (s *Shift) command(a *Attempt, do ringi.Action) ringi.Command {
	return ringi.Command{Tenant: s.config.Tenant, Run: a.Task.Run, Actor: s.config.Actor, Do: do}
}
