package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
)

// Defaults and limits of a worker.
const (
	// DefaultQueue is the queue of steps that name none.
	DefaultQueue = "default"
	// DefaultSlots is how many functions of a queue run at once: enough to hide
	// the waiting of calls over a network, few enough not to drown a service.
	DefaultSlots = 10
	// DefaultDrain is how long Run waits for running functions at its end, the
	// same as the server's.
	DefaultDrain = 30 * time.Second
	// longPoll is how long a poll waits for its first task.
	longPoll = 20 * time.Second
	// firstPause and longestPause bound the pause after a call that failed: a
	// server that is back is found within two seconds.
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	// lastWord is how long functions have to end after their context was ended
	// by a worker that stops, and how long their reports then have.
	lastWord = 2 * time.Second
)

// Config says what a worker does. Service and one Queue with one Activity are
// needed.
type Config struct {
	Service ringi.Service

	// Name tells this worker process from others, in lists and in the log of
	// runs. "" draws one; two workers must not share a name.
	Name string

	// Queues are the queues that it serves, each with slots of its own.
	Queues []Queue

	// Tenant is whose tasks it takes; 0 is ringi.DefaultTenant. Over HTTP it
	// follows from the key.
	Tenant ringi.Tenant

	// Actor is who its commands come from; zero is a machine of the worker's
	// name. Over HTTP it follows from the key. Queues that belong to the engine
	// are served by a ringi.System only.
	Actor ringi.Actor

	// Drain is how long Run waits for running functions at its end before it
	// ends their contexts; 0 is 30 s.
	Drain time.Duration

	// Trouble sees what went wrong and was dealt with: polls that failed,
	// reports that were refused, panics. It may be called concurrently. Nil
	// drops them.
	Trouble func(error)
}

// A Queue is a queue that a worker serves.
type Queue struct {
	Name       string // "" is DefaultQueue
	Slots      int    // functions that run at once; 0 is DefaultSlots
	Activities []Activity
}

// A Worker takes tasks and calls functions. Make one with New; Run may be
// called once.
type Worker struct {
	service ringi.Service
	name    string
	tenant  ringi.Tenant
	actor   ringi.Actor
	drain   time.Duration
	trouble func(error)
	queues  []*queue

	beats   *beats
	reports *reports
	open    atomic.Int64  // tasks from their start until their report is taken
	closed  chan struct{} // has room for one hint that open fell
	ran     atomic.Bool
}

// New makes a worker. It fails on a configuration that cannot work.
func New(config Config) (*Worker, error) {
	if config.Service == nil {
		return nil, errors.New("worker: Config.Service is missing: give it an engine or a client")
	}
	w := &Worker{
		service: config.Service, name: config.Name, tenant: config.Tenant, actor: config.Actor,
		drain: config.Drain, trouble: config.Trouble, closed: make(chan struct{}, 1),
	}
	if w.name == "" {
		w.name = "worker-" + rand.Text()
	}
	if w.tenant == 0 {
		w.tenant = ringi.DefaultTenant
	}
	if w.actor.ID == "" {
		w.actor = ringi.Actor{ID: w.name, Kind: ringi.Machine}
	}
	if w.drain <= 0 {
		w.drain = DefaultDrain
	}
	if w.trouble == nil {
		w.trouble = func(error) {}
	}
	w.beats, w.reports = newBeats(w), newReports(w)
	for _, q := range config.Queues {
		if err := w.serve(q); err != nil {
			return nil, err
		}
	}
	if len(w.queues) == 0 {
		return nil, errors.New("worker: Config.Queues is empty: a worker needs a queue to serve")
	}
	return w, nil
}

// serve adds a queue.
func (w *Worker) serve(c Queue) error {
	q := newQueue(c)
	for _, other := range w.queues {
		if other.name == q.name {
			return fmt.Errorf("worker: the queue %q is there twice: put its activities together", q.name)
		}
	}
	if !w.actor.Serves(q.name) {
		return fmt.Errorf("worker: the queue %q belongs to the engine, which makes the calls of http steps itself: serve one of another name", q.name)
	}
	if q.slots < 0 {
		return fmt.Errorf("worker: the queue %q has %d slots", q.name, q.slots)
	}
	for _, a := range c.Activities {
		switch _, there := q.activities[a.name]; {
		case a.call == nil || a.name == "":
			return fmt.Errorf("worker: an activity of the queue %q has no name or function: make it with Func", q.name)
		case there:
			return fmt.Errorf("worker: the activity %q is there twice in the queue %q", a.name, q.name)
		}
		q.activities[a.name] = a
		q.names = append(q.names, a.name)
	}
	if len(q.names) == 0 {
		return fmt.Errorf("worker: the queue %q has no activities: without a name to ask for, it would take tasks that it cannot do", q.name)
	}
	w.queues = append(w.queues, q)
	return nil
}

// Name is the name under which the worker takes tasks.
func (w *Worker) Name() string { return w.name }

// Run takes tasks until ctx ends. Then it takes no more, lets running functions
// finish and be reported for as long as Config.Drain says, ends the contexts of
// the others, and returns. It returns nil when all was reported; otherwise the
// engine hands the rest out again, or asks what became of it, once their leases
// are over.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errors.New("worker: Run was called twice: make another worker")
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	background, hush := context.WithCancel(context.WithoutCancel(ctx))
	defer hush()

	var loops, polls sync.WaitGroup
	loops.Go(func() { w.beats.run(background) })
	loops.Go(func() { w.reports.run(background, life) })
	for _, q := range w.queues {
		polls.Go(func() { w.poll(ctx, life, q) })
	}
	<-ctx.Done()
	w.reports.stopWanting()
	polls.Wait()

	drained := w.idle(w.drain)
	if !drained {
		end(ErrStopping)
		drained = w.idle(lastWord)
	}
	hush()
	loops.Wait()
	if !drained {
		return fmt.Errorf("worker: stopped with %d attempts that did not finish and %d that the server has not taken", w.running(), w.reports.waiting())
	}
	return nil
}

// idle waits until every function has ended and every report was taken, for at
// most limit.
func (w *Worker) idle(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for w.open.Load() > 0 {
		select {
		case <-w.closed:
		case <-timer.C:
			return false
		}
	}
	return true
}

// close ends the life of a task: its report was taken, or there is none.
func (w *Worker) close() {
	w.open.Add(-1)
	select {
	case w.closed <- struct{}{}:
	default:
	}
}

func (w *Worker) running() int {
	n := 0
	for _, q := range w.queues {
		n += q.running()
	}
	return n
}

// command is a command of this worker.
func (w *Worker) command(run ringi.RunID, do ringi.Action) ringi.Command {
	return ringi.Command{Tenant: w.tenant, Run: run, Actor: w.actor, Do: do}
}

// pause waits after the n-th failure in a row, n from 1. It reports false when
// ctx ended first.
func pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(pauseAfter(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func pauseAfter(n int) time.Duration {
	d := firstPause
	for ; n > 1 && d < longestPause; n-- {
		d *= 2
	}
	return min(d, longestPause)
}

// mayPass reports whether the same call may succeed later: what nobody decided,
// and what an operator can mend (a key, a scope, a fault of the server).
func mayPass(err error) bool {
	switch ringi.ErrorCode(err) {
	case ringi.CodeUnavailable, ringi.CodeLimit, ringi.CodeInternal, ringi.CodeUnauthenticated, ringi.CodeForbidden:
		return true
	}
	return false
}
