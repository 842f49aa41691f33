package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

// quickPoll is how long an empty poll must at least have waited; one that comes
// back sooner (of a server that drains) is followed by a pause.
const quickPoll = 100 * time.Millisecond

// A queue counts what stands open in the slots of a Queue: functions that run,
// tasks that are asked for in a poll or with a report, and reports that the
// server has not taken. The first two have one slot each; all three together may
// be twice as many, so that work goes on while reports are under way, and a
// worker that cannot report takes no more.
type queue struct {
	name       string
	slots      int
	activities map[string]Activity
	names      []string

	mu         sync.Mutex
	busy       int
	asked      int
	unreported int
	unsent     int           // of those: not under way to the server
	freed      chan struct{} // has room for one hint that one of them fell
}

func newQueue(c Queue) *queue {
	q := &queue{name: c.Name, slots: c.Slots, activities: map[string]Activity{}, freed: make(chan struct{}, 1)}
	if q.name == "" {
		q.name = DefaultQueue
	}
	if q.slots == 0 {
		q.slots = DefaultSlots
	}
	return q
}

// ask takes the free slots to ask tasks for along with a report.
func (q *queue) ask() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(min(q.slots, 2*q.slots-q.unreported)-q.busy-q.asked, 0)
	q.asked += n
	return n
}

// askPoll takes the free slots to ask tasks for in a poll. It leaves those of
// functions that have just ended to their reports, which are about to be sent.
func (q *queue) askPoll() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(min(q.slots, 2*q.slots-q.unreported)-q.busy-q.asked-q.unsent, 0)
	q.asked += n
	return n
}

// got gives asked slots back and takes those of the tasks that came.
func (q *queue) got(asked, tasks int) {
	q.change(func() { q.asked -= asked; q.busy += tasks })
}

// drop gives back the slot of a task that is not performed.
func (q *queue) drop() { q.change(func() { q.busy-- }) }

// done gives back the slot of a function that has ended.
func (q *queue) done() { q.change(func() { q.busy--; q.unreported++; q.unsent++ }) }

// sent says that a report is on its way, and back that it was not taken.
func (q *queue) sent() { q.change(func() { q.unsent-- }) }
func (q *queue) back() { q.change(func() { q.unsent++ }) }

// taken says that a report was taken.
func (q *queue) taken() { q.change(func() { q.unreported-- }) }

func (q *queue) change(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.freed <- struct{}{}:
	default:
	}
}

func (q *queue) running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy
}

// request asks for n tasks of the queue.
func (w *Worker) request(q *queue, n int, wait time.Duration) ringi.PollRequest {
	return ringi.PollRequest{Tenant: w.tenant, Actor: w.actor, Worker: w.name, Queue: q.name, Activities: q.names, Max: n, Wait: wait}
}

// poll takes tasks of one queue until ctx ends. Functions live as long as life.
func (w *Worker) poll(ctx, life context.Context, q *queue) {
	failed := 0
	for ctx.Err() == nil {
		n := q.askPoll()
		if n == 0 {
			select {
			case <-q.freed:
			case <-ctx.Done():
			}
			continue
		}
		before := time.Now()
		tasks, err := w.service.Poll(ctx, w.request(q, n, longPoll))
		q.got(n, len(tasks))
		w.start(life, q, tasks)
		switch {
		case err != nil && ctx.Err() == nil:
			failed++
			w.trouble(fmt.Errorf("worker: poll of queue %s: %w", q.name, err))
			pause(ctx, failed)
		case len(tasks) == 0 && time.Since(before) < quickPoll:
			failed++
			pause(ctx, failed)
		default:
			failed = 0
		}
	}
}

// start calls a function for each task, whose slots are taken.
func (w *Worker) start(life context.Context, q *queue, tasks []ringi.Task) {
	for _, t := range tasks {
		t.Started = time.Now()
		w.open.Add(1)
		go w.perform(life, q, t)
	}
}
