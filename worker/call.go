package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ringiflow/ringi"
)

// perform makes one attempt and hands its report over. The slot is free again
// before that, so that the report can ask for the next task.
func (w *Worker) perform(life context.Context, q *queue, task ringi.Task) {
	timed, stopTimer := life, func() {}
	if task.Timeout > 0 {
		timed, stopTimer = context.WithDeadlineCause(life, task.Started.Add(task.Timeout), ErrTimeout)
	}
	defer stopTimer()
	ctx, end := context.WithCancelCause(timed)
	defer end(nil)

	activity, known := q.activities[task.Activity]
	if known && task.Begin && !w.permitted(ctx, task) {
		q.drop()
		w.close()
		return
	}
	b := w.beats.add(task, end)
	do := w.outcome(ctx, activity, known, task)
	q.done()
	w.reports.add(&report{queue: q, task: task, beat: b, do: do})
}

// permitted asks for permission to make a call that must not repeat. It asks
// until it is answered: the answer to a repeated question is the same.
func (w *Worker) permitted(ctx context.Context, task ringi.Task) bool {
	for failed := 1; ; failed++ {
		res := w.service.Do(ctx, w.command(task.Run, ringi.BeginActivity{CallRef: task.CallRef, Worker: w.name}))[0]
		switch {
		case res.Err == nil:
			return res.Answer.Outcome == ringi.Accepted || res.Answer.Outcome == ringi.Repeated
		case ctx.Err() != nil:
			return false
		case !mayPass(res.Err):
			w.trouble(fmt.Errorf("worker: begin of %s %s: %w", task.Run, task.Step, res.Err))
			return false
		}
		if !pause(ctx, failed) {
			return false
		}
	}
}

// outcome calls the function and says what became of it.
func (w *Worker) outcome(ctx context.Context, activity Activity, known bool, task ringi.Task) ringi.Action {
	if !known {
		return ringi.FailActivity{CallRef: task.CallRef, Worker: w.name, Failure: ringi.Failure{
			Code: CodeNoHandler, Message: fmt.Sprintf("this worker has no activity %q", task.Activity), Retryable: true, Applied: ringi.AppliedNo,
		}}
	}
	output, err := w.guarded(ctx, activity, task)
	if err != nil {
		return ringi.FailActivity{CallRef: task.CallRef, Worker: w.name, Failure: failureOf(ctx, err)}
	}
	return ringi.CompleteActivity{CallRef: task.CallRef, Worker: w.name, Output: output}
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
