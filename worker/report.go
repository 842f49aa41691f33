package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
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

// A report is what a worker has to say about an attempt.
type report struct {
	queue  *queue
	task   ringi.Task
	beat   *beat
	do     ringi.Action // CompleteActivity or FailActivity
	failed int          // how often it was not taken
	due    time.Time    // not sent before, unless it may go along
	along  bool         // it failed because the server was away: it goes with the next
}

// reports are sent in a few calls at a time: what finishes while all of those
// are under way goes together into the next. So a busy worker groups its reports
// by itself, and one that is not reports at once. With one call at a time a
// report would wait for the commit of those before it, and be late for the next.
type reports struct {
	w     *Worker
	mu    sync.Mutex
	all   []*report // that are not under way, in order of finishing
	sent  int       // under way
	calls int       // in so many calls
	want  bool      // whether tasks are asked for along with reports
	hint  chan struct{}
}

func newReports(w *Worker) *reports {
	return &reports{w: w, want: true, hint: make(chan struct{}, 1)}
}

func (rs *reports) add(r *report) {
	rs.mu.Lock()
	rs.all = append(rs.all, r)
	rs.mu.Unlock()
	rs.look()
}

// look lets run look for what it can send.
func (rs *reports) look() {
	select {
	case rs.hint <- struct{}{}:
	default:
	}
}

// stopWanting takes no more tasks along with the answers.
func (rs *reports) stopWanting() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.want = false
}

func (rs *reports) waiting() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.all) + rs.sent
}

// run sends reports until ctx ends. Functions that are started along with the
// answers live as long as life.
func (rs *reports) run(ctx, life context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		batch, next := rs.take()
		if len(batch) > 0 {
			calls.Go(func() { rs.send(ctx, life, batch) })
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-rs.hint:
		case <-timer.C:
		}
	}
}

// take returns the reports that are due, or else how long none is.
// Completions come first and those of a queue together: the client puts what
// follows each other into one request.
func (rs *reports) take() (batch []*report, next time.Duration) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	next = time.Hour
	if rs.calls >= maxCalls {
		return nil, next
	}
	for _, r := range rs.all {
		next = min(next, r.wait())
	}
	if next > 0 {
		return nil, next
	}
	rs.all = slices.DeleteFunc(rs.all, func(r *report) bool {
		goes := len(batch) < maxReports && (r.along || r.wait() <= 0)
		if goes {
			batch = append(batch, r)
		}
		return goes
	})
	rs.sent += len(batch)
	rs.calls++
	slices.SortStableFunc(batch, func(a, b *report) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.queue.name, b.queue.name))
	})
	return batch, next
}

// wait is how long the report is put off; 0 for one that never was.
func (r *report) wait() time.Duration {
	if r.due.IsZero() {
		return 0
	}
	return time.Until(r.due)
}

func (r *report) rank() int {
	if _, ok := r.do.(ringi.CompleteActivity); ok {
		return 0
	}
	return 1
}

// send makes one call for a batch and acts on its answers.
func (rs *reports) send(ctx, life context.Context, batch []*report) {
	commands := make([]ringi.Command, len(batch))
	for i, r := range batch {
		commands[i] = rs.w.command(r.task.Run, r.do)
	}
	asked := rs.ask(batch, commands)
	for _, r := range batch {
		r.queue.sent()
	}
	results := rs.w.service.Do(ctx, commands...)
	if len(results) != len(commands) {
		err := &ringi.Error{Code: ringi.CodeUnavailable, Message: fmt.Sprintf("%d results for %d commands", len(results), len(commands))}
		results = make([]ringi.Result, len(commands))
		for i := range results {
			results[i].Err = err
		}
	}
	for i, r := range batch {
		if n, ok := asked[r.queue]; ok && wanted(commands[i].Do) {
			r.queue.got(n, len(results[i].Tasks))
			rs.w.start(life, r.queue, results[i].Tasks)
		}
	}
	for i, r := range batch {
		rs.answered(ctx, r, results[i].Err)
	}
	rs.mu.Lock()
	rs.sent -= len(batch)
	rs.calls--
	rs.mu.Unlock()
	rs.look()
}

// ask adds to one report of each queue a wish for as many tasks as it has free
// slots. It returns how many were asked for.
func (rs *reports) ask(batch []*report, commands []ringi.Command) map[*queue]int {
	asked := map[*queue]int{}
	rs.mu.Lock()
	want := rs.want
	rs.mu.Unlock()
	if !want {
		return asked
	}
	for i, r := range slices.Backward(batch) {
		if _, ok := asked[r.queue]; ok {
			continue
		}
		n := r.queue.ask()
		asked[r.queue] = n
		if n == 0 {
			continue
		}
		p := rs.w.request(r.queue, n, 0)
		switch do := r.do.(type) {
		case ringi.CompleteActivity:
			do.Want = &p
			commands[i].Do = do
		case ringi.FailActivity:
			do.Want = &p
			commands[i].Do = do
		}
	}
	return asked
}

func wanted(do ringi.Action) bool {
	switch do := do.(type) {
	case ringi.CompleteActivity:
		return do.Want != nil
	case ringi.FailActivity:
		return do.Want != nil
	}
	return false
}

// answered drops a report that was taken or can never be, and puts off another.
func (rs *reports) answered(ctx context.Context, r *report, err error) {
	switch {
	case err != nil && mayPass(err):
		if ctx.Err() == nil {
			rs.w.trouble(fmt.Errorf("worker: report of %s %s: %w", r.task.Run, r.task.Step, err))
		}
		rs.later(r, err)
		return
	case r.rank() == 0 && (ringi.ErrorCode(err) == ringi.CodeTooLarge || ringi.ErrorCode(err) == ringi.CodeInvalid):
		// the call was made; what it answered can never be taken
		code := CodeTooLarge
		if ringi.ErrorCode(err) == ringi.CodeInvalid {
			code = CodeBadOutput
			rs.w.trouble(fmt.Errorf("worker: the output of %s %s was refused: %w", r.task.Run, r.task.Step, err))
		}
		r.do = ringi.FailActivity{CallRef: r.task.CallRef, Worker: rs.w.name, Failure: ringi.Failure{
			Code: code, Message: sendable(err.Error(), maxMessage), Applied: ringi.AppliedUnknown,
		}}
		rs.back(r)
		return
	case err != nil:
		rs.w.trouble(fmt.Errorf("worker: report of %s %s was refused: %w", r.task.Run, r.task.Step, err))
	}
	rs.w.beats.remove(r.beat)
	r.queue.taken()
	rs.w.close()
}

// later puts a report off.
func (rs *reports) later(r *report, err error) {
	r.failed++
	r.along = ringi.ErrorCode(err) == ringi.CodeUnavailable
	r.due = time.Now().Add(pauseAfter(r.failed))
	rs.back(r)
}

// back returns a report that is to be sent again.
func (rs *reports) back(r *report) {
	r.queue.back()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, r)
}
