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
	"github.com/ringiflow/ringi/worker/shift"
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
	queues  []shift.Queue

	activities map[string]map[string]Activity // by queue and name
	hands      *hands
	ran        atomic.Bool
}

// New makes a worker. It fails on a configuration that cannot work.
func New(config Config) (*Worker, error) {
	if config.Service == nil {
		return nil, errors.New("worker: Config.Service is missing: give it an engine or a client")
	}
	w := &Worker{
		service: config.Service, name: config.Name, tenant: config.Tenant, actor: config.Actor,
		drain: config.Drain, trouble: config.Trouble, activities: map[string]map[string]Activity{},
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
	for _, q := range config.Queues {
		if err := w.serve(q); err != nil {
			return nil, err
		}
	}
	if len(w.queues) == 0 {
		return nil, errors.New("worker: Config.Queues is empty: a worker needs a queue to serve")
	}
	w.hands = newHands(shift.New(shift.Config{Worker: w.name, Tenant: w.tenant, Actor: w.actor, Queues: w.queues, Drain: w.drain}), len(w.queues))
	return w, nil
}

// serve adds a queue.
func (w *Worker) serve(c Queue) error {
	q := shift.Queue{Name: c.Name, Slots: c.Slots}
	if q.Name == "" {
		q.Name = DefaultQueue
	}
	if q.Slots == 0 {
		q.Slots = DefaultSlots
	}
	if w.activities[q.Name] != nil {
		return fmt.Errorf("worker: the queue %q is there twice: put its activities together", q.Name)
	}
	if !w.actor.Serves(q.Name) {
		return fmt.Errorf("worker: the queue %q belongs to the engine, which makes the calls of http steps itself: serve one of another name", q.Name)
	}
	if q.Slots < 0 {
		return fmt.Errorf("worker: the queue %q has %d slots", q.Name, q.Slots)
	}
	activities := map[string]Activity{}
	for _, a := range c.Activities {
		switch _, there := activities[a.name]; {
		case a.call == nil || a.name == "":
			return fmt.Errorf("worker: an activity of the queue %q has no name or function: make it with Func", q.Name)
		case there:
			return fmt.Errorf("worker: the activity %q is there twice in the queue %q", a.name, q.Name)
		}
		activities[a.name] = a
		q.Activities = append(q.Activities, a.name)
	}
	if len(q.Activities) == 0 {
		return fmt.Errorf("worker: the queue %q has no activities: without a name to ask for, it would take tasks that it cannot do", q.Name)
	}
	w.activities[q.Name] = activities
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
	loops.Go(func() { w.beats(background) })
	loops.Go(func() { w.reports(background, life) })
	for i := range w.queues {
		polls.Go(func() { w.poll(ctx, life, i) })
	}
	<-ctx.Done()
	w.hands.change(func(s *shift.Shift, now time.Time) { s.Stop(now) })
	polls.Wait()
	w.wait(end)
	hush()
	loops.Wait()

	w.hands.mu.Lock()
	defer w.hands.mu.Unlock()
	if s := w.hands.shift; s.Open() > 0 {
		return fmt.Errorf("worker: stopped with %d attempts that did not finish and %d that the server has not taken", s.Running(), s.Waiting())
	}
	return nil
}

// wait waits until a stopped worker is at its end, and ends all contexts on the
// way if that takes too long.
func (w *Worker) wait(end context.CancelCauseFunc) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		phase, in := look(w.hands, func(s *shift.Shift, now time.Time) (shift.Phase, time.Duration) { return s.Drain(now) })
		switch phase {
		case shift.Over:
			return
		case shift.Hurrying:
			end(ErrStopping)
		}
		timer.Reset(in)
		select {
		case <-w.hands.lighter:
		case <-timer.C:
		}
	}
}
