package engine

import (
	"math"
	"sync"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// inboxLimit is how many commands may wait for one committer. At a thousand
// commits' worth it is seconds of work: more would only wait longer than its
// senders do.
const inboxLimit = 20_000

// A request is a command on its way through a committer.
type request struct {
	cmd    ringi.Command
	def    *workflow.Definition // of a start, resolved at the door
	size   int                  // bytes of payload, for the bound of a batch
	losses int                  // how often a write that held it was lost
	done   func(settled)        // called once, when the outcome is durable
}

// settled is what became of a request, with the state that it was decided on
// and led to; State is nil when none was known.
type settled struct {
	ringi.Result
	state *ringi.State
}

// An inbox holds what waits for one committer, first come first served within
// a tenant and the tenants in turn. Safe for concurrent use.
type inbox struct {
	wake   chan struct{}
	enough chan struct{} // signalled when there are enoughCommands

	mu      sync.Mutex
	again   []*request // lost their race: they go first
	tenants map[ringi.Tenant]*queue
	turn    []ringi.Tenant // those with a queue that is not empty, next first
	count   int
	closed  bool
}

// A queue is a first-in-first-out list.
type queue struct {
	items []*request
	head  int
}

func (q *queue) empty() bool { return q.head == len(q.items) }

func (q *queue) pop() *request {
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.empty() {
		q.items, q.head = q.items[:0], 0
	}
	return r
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), enough: make(chan struct{}, 1), tenants: map[ringi.Tenant]*queue{}}
}

// put adds requests; those of one call are taken together if a batch has room for
// them. They are refused when too many wait already, or nothing is taken out any
// more.
func (b *inbox) put(rs ...*request) {
	if len(rs) == 0 {
		return
	}
	added, why := b.add(rs)
	for _, r := range rs[added:] {
		r.refuse(why)
	}
}

// add returns how many of the requests it took in, and why not the others.
func (b *inbox) add(rs []*request) (added int, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, draining()
	}
	for _, r := range rs {
		if b.count >= inboxLimit {
			why = &ringi.Error{Code: ringi.CodeLimit, Message: "too many commands are waiting", Hint: "try again in a moment"}
			break
		}
		q := b.tenants[r.cmd.Tenant]
		if q == nil {
			q = &queue{}
			b.tenants[r.cmd.Tenant] = q
		}
		if q.empty() {
			b.turn = append(b.turn, r.cmd.Tenant)
		}
		q.items = append(q.items, r)
		b.count++
		added++
	}
	if added > 0 {
		signal(b.wake)
	}
	if b.count >= enoughCommands {
		signal(b.enough)
	}
	return added, why
}

// close refuses everything from now on and returns what still waits.
func (b *inbox) close() []*request {
	b.mu.Lock()
	b.closed = true
	n := b.count
	b.mu.Unlock()
	return b.take(n, math.MaxInt)
}

// back returns requests whose write was lost, in their order, to be decided
// before all others.
func (b *inbox) back(rs []*request) {
	if len(rs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again = append(b.again, rs...)
	b.count += len(rs)
	signal(b.wake)
}

// take removes at most n requests of at most size bytes together, but always
// one if there is one.
func (b *inbox) take(n, size int) []*request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*request
	for len(out) < n && size > 0 && len(b.again) > 0 {
		r := b.again[0]
		b.again = b.again[1:]
		out, size = append(out, r), size-r.size
	}
	for len(out) < n && size > 0 && len(b.turn) > 0 {
		tenant := b.turn[0]
		q := b.tenants[tenant]
		r := q.pop()
		out, size = append(out, r), size-r.size
		b.turn = b.turn[1:]
		if !q.empty() {
			b.turn = append(b.turn, tenant)
		}
	}
	b.count -= len(out)
	return out
}

// waiting is how many requests wait.
func (b *inbox) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// signal wakes whoever listens, once.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
