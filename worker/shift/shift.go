package shift

import (
	"math"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// Never is after how long there is something to do when only a change of the
	// shift can bring it about.
	Never = time.Duration(math.MaxInt64)
	// LongPoll is how long a poll waits for its first task.
	LongPoll = 20 * time.Second
	// firstPause and longestPause bound the pause after a call that failed: a
	// server that is back is found within two seconds.
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	// quickPoll is how long an empty poll must at least have waited; one that
	// comes back sooner (of a server that drains) is followed by a pause.
	quickPoll = 100 * time.Millisecond
)

// Config says for whom the decisions are made. All of it is needed but Drain.
type Config struct {
	Worker string       // the name under which tasks are taken
	Tenant ringi.Tenant // whose tasks
	Actor  ringi.Actor  // who the commands come from
	Queues []Queue      // at least one, each name once

	// Drain is how long calls may go on after Stop before their contexts end.
	Drain time.Duration
}

// A Queue is a queue that is served, with slots of its own.
type Queue struct {
	Name       string
	Slots      int      // calls at once, above 0
	Activities []string // the names that can be called
}

// A Shift is what one process of a worker has in its hands, from its start to its
// end. Make one with New.
type Shift struct {
	config  Config
	queues  []*queue
	open    int // tasks from their coming until their report is taken
	stop    time.Time
	stopped bool

	first, last *Attempt // those whose leases are extended, in order of coming
	beating     bool     // a heartbeat is under way

	reports []*Attempt // that are not under way, in order of finishing
	sent    int        // reports under way
	calls   int        // in so many calls
}

// New begins a shift with nothing in its hands.
func New(c Config) *Shift {
	s := &Shift{config: c}
	for _, q := range c.Queues {
		s.queues = append(s.queues, &queue{Queue: q})
	}
	return s
}

// A queue counts what stands open in the slots of a Queue: calls that run, tasks
// that are asked for in a poll or with a report, and reports that the server has
// not taken. The first two have one slot each; all three together may be twice as
// many, so that work goes on while reports are under way, and a worker that
// cannot report takes no more.
type queue struct {
	Queue
	busy       int
	asked      int
	unreported int
	unsent     int       // of those: not under way to the server
	failed     int       // polls that failed in a row
	rests      time.Time // no poll before
}

// free counts the slots to ask tasks for along with a report.
func (q *queue) free() int {
	return max(min(q.Slots, 2*q.Slots-q.unreported)-q.busy-q.asked, 0)
}

// Poll says which tasks of the i-th queue to ask for now, and keeps slots for
// them until Polled. If it asks for none (Max is 0), it is to be called again
// after in, and whenever the shift has changed. It leaves the slots of calls that
// have just ended to their reports, which are about to be sent.
func (s *Shift) Poll(i int, now time.Time) (req ringi.PollRequest, in time.Duration) {
	q := s.queues[i]
	n := max(q.free()-q.unsent, 0)
	switch {
	case s.stopped || n == 0:
		return ringi.PollRequest{}, Never
	case q.rests.After(now):
		return ringi.PollRequest{}, q.rests.Sub(now)
	}
	q.asked += n
	return s.request(q, n, LongPoll), 0
}

func (s *Shift) request(q *queue, n int, wait time.Duration) ringi.PollRequest {
	return ringi.PollRequest{
		Tenant: s.config.Tenant, Actor: s.config.Actor, Worker: s.config.Worker,
		Queue: q.Name, Activities: q.Activities, Max: n, Wait: wait,
	}
}

// Polled takes in what became of a poll of the i-th queue that asked for n tasks
// at began. It returns the attempts to perform.
func (s *Shift) Polled(i, n int, tasks []ringi.Task, err error, began, now time.Time) []*Attempt {
	q := s.queues[i]
	q.asked -= n
	if err != nil || len(tasks) == 0 && now.Sub(began) < quickPoll {
		q.failed++
		q.rests = now.Add(pauseAfter(q.failed))
	} else {
		q.failed = 0
	}
	return s.take(q, tasks, now)
}

// pauseAfter is the pause after the n-th failure in a row, n from 1.
func pauseAfter(n int) time.Duration {
	d := firstPause
	for ; n > 1 && d < longestPause; n-- {
		d *= 2
	}
	return min(d, longestPause)
}

// MayPass reports whether the same call may succeed later: what nobody decided,
// and what an operator can mend (a key, a scope, a fault of the server).
func MayPass(err error) bool {
	return err != nil && slices.Contains([]ringi.Code{
		ringi.CodeUnavailable, ringi.CodeLimit, ringi.CodeInternal, ringi.CodeUnauthenticated, ringi.CodeForbidden,
	}, ringi.ErrorCode(err))
}

// Running counts the calls that have not ended.
func (s *Shift) Running() int {
	n := 0
	for _, q := range s.queues {
		n += q.busy
	}
	return n
}

// Waiting counts the reports that the server has not taken.
func (s *Shift) Waiting() int { return len(s.reports) + s.sent }

// Open counts the tasks that are not at their end: their calls run, or their
// reports have not been taken.
func (s *Shift) Open() int { return s.open }
