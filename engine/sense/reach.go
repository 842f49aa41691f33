package sense

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ringiflow/ringi/store"
)

// reachGap is the silence after which a node cannot say that it has reached
// the store without a break: it may have been stopped in between. The pulse
// speaks to the store every second.
const reachGap = 5 * time.Second

// A ReachConfig says how a node looks around. All but Probe and Asks must be set.
type ReachConfig struct {
	Local func() time.Time // the node's clock, monotonic
	Up    func() bool      // whether workers can reach this node
	Log   *slog.Logger
	Probe bool // whether a write can be tried that changes nothing
	Asks  bool // whether the store says what others hold locked
}

// A Reach knows since when this node has reached the store without a break,
// with its workers' endpoint up. A lease counts as lost only when it could
// have been extended, and through this node it could not while either was
// missing. Safe for concurrent use.
type Reach struct {
	ReachConfig

	mu      sync.Mutex
	since   time.Time // zero while it is broken
	seen    time.Time // the last success
	err     error     // the last failure, nil while it is whole
	lostAt  time.Time // when that began
	tell    refrain   // of it in the log
	lock    lock
	pending int // bytes that could not be written; reading proves nothing until some can
}

// probeLeast and probeMost bound what is written to see whether a write works
// again, in bytes: room for some commits, and no more than one commit has.
const (
	probeLeast = 64 << 10
	probeMost  = 4 << 20
)

// NewReach makes one that has reached nothing yet.
func NewReach(c ReachConfig) *Reach { return &Reach{ReachConfig: c} }

// Note takes the outcome of reading the store and hands it on. A failure under
// a context that has ended says nothing about the store: the caller left.
func (r *Reach) Note(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrDoubt) {
		r.broke(err)
	} else if away, back := r.worked(); back {
		r.Log.Info("the database is back: this node goes on", "after", away.Round(time.Millisecond))
	}
	return err
}

func (r *Reach) broke(err error) {
	if r.locked(err) {
		return
	}
	now := r.Local()
	r.mu.Lock()
	if r.err == nil {
		r.lostAt = now
	}
	since := r.lostAt
	r.since, r.err = time.Time{}, err
	tell := r.tell.again(now, since)
	r.mu.Unlock()
	if tell {
		r.Log.Warn("the database is away: nothing is answered that it does not hold, until it is back", "for", now.Sub(since).Round(time.Second), "err", err)
	}
}

// worked notes a success, and tells how long the store was away before it, if
// its end is to be told.
func (r *Reach) worked() (away time.Duration, back bool) {
	now, up := r.Local(), r.Up()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending > 0 {
		return 0, false // it was a read
	}
	if r.err != nil {
		away, back = now.Sub(r.lostAt), r.tell.over()
	}
	if r.since.IsZero() || now.Sub(r.seen) > reachGap {
		r.since = now
	}
	if !up {
		r.since = time.Time{}
	}
	r.seen, r.err = now, nil
	return away, back
}

// Wrote is Note for a call that writes so many bytes, or some that nobody
// counted: 0. A full disk can be read, and heartbeats cannot be kept on it, and
// a database that somebody locked can be read too: until a write has worked the
// reach is broken. One whose bytes are not known may have found nothing to
// write, and proves nothing when it works.
func (r *Reach) Wrote(ctx context.Context, bytes int, err error) error {
	if r.Probe {
		r.mu.Lock()
		switch {
		case err == nil && bytes > 0:
			r.pending = 0
		case r.Asks && errors.Is(err, store.ErrLocked): // it says nothing of all other writes
		case ctx.Err() == nil && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrDoubt)):
			r.pending = min(max(bytes, r.pending, probeLeast), probeMost)
		}
		r.mu.Unlock()
	}
	return r.Note(ctx, err)
}

// Unwritten is how many bytes have to be written before anything counts; 0: none.
func (r *Reach) Unwritten() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending
}

// Restart begins the wait anew: another database answers, or its clock was set.
func (r *Reach) Restart() {
	now := r.Local()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() {
		r.since = now
	}
}

// Short is how much longer the reach must hold until it has held for d. It is
// d itself while the reach is broken.
func (r *Reach) Short(d time.Duration) time.Duration {
	now := r.Local()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || now.Sub(r.seen) > reachGap {
		return d
	}
	return max(d-now.Sub(r.since), 0)
}

// Lost is why the store is not reached at this moment, or nil.
func (r *Reach) Lost() error {
	now := r.Local()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return r.err
	case r.seen.IsZero():
		return errors.New("engine: the store was not reached yet")
	case now.Sub(r.seen) > reachGap:
		return errors.New("engine: the store has not answered for " + now.Sub(r.seen).Truncate(time.Second).String())
	}
	return r.waits(now)
}
