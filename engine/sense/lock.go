package sense

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// lockPatience is how long a node stays ready while somebody else holds a
	// lock that it needs: a change of a table takes seconds, and to send its
	// clients elsewhere would help nobody, since all nodes need the same table.
	lockPatience = 10 * time.Second
	// tellAgain is how often the log is told of what lasts.
	tellAgain = time.Minute
	// tellAnew is how long what came again must last until it is told before that.
	tellAnew = 5 * time.Second
)

// A refrain says when something that lasts is told: at its beginning, then once
// a minute, and at its end if it was told at all. What comes and goes within
// seconds is told once a minute too.
type refrain struct {
	told bool
	last time.Time
}

// again reports whether it is to be told now that it has lasted since then.
func (f *refrain) again(now, since time.Time) bool {
	anew := !f.told && now.Sub(since) >= tellAnew
	if !anew && !f.last.IsZero() && now.Sub(f.last) < tellAgain {
		return false
	}
	f.told, f.last = true, now
	return true
}

// over reports whether the end is to be told.
func (f *refrain) over() bool {
	told := f.told
	f.told = false
	return told
}

// A lock is what this node waited for in vain because somebody else has locked
// it. The database is not away then: most of its tables are not concerned.
type lock struct {
	since time.Time // zero: there is none
	held  string    // what is locked, and by whom; "" until it was asked
	tell  refrain
}

// locked notes a failure that is a lock of somebody's, and reports whether it is
// one. A lease that could not be extended meanwhile does not count as lost.
func (r *Reach) locked(err error) bool {
	if !r.Asks || !errors.Is(err, store.ErrLocked) {
		return false
	}
	now := r.Local()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock.since.IsZero() {
		r.lock.since, r.lock.held = now, ""
	}
	r.since = time.Time{}
	return true
}

// InVain reports whether a lock was met that may last.
func (r *Reach) InVain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.lock.since.IsZero()
}

// Holds takes in what others hold locked now; "" is nothing.
func (r *Reach) Holds(what string) {
	now := r.Local()
	r.mu.Lock()
	since := r.lock.since
	r.lock.held = what
	var begins, ends bool
	if what == "" {
		r.lock.since = time.Time{}
		ends = r.lock.tell.over()
	} else {
		begins = r.lock.tell.again(now, since)
	}
	r.mu.Unlock()
	switch {
	case begins:
		r.Log.Warn("somebody holds a lock in the database that this node waits for", "lock", what, "for", now.Sub(since).Round(time.Second))
	case ends:
		r.Log.Info("the lock in the database is gone: this node goes on", "after", now.Sub(since).Round(time.Second))
	}
}

// waits is why a node that waits for a lock is not ready, or nil. The mutex is held.
func (r *Reach) waits(now time.Time) error {
	if r.lock.since.IsZero() || r.lock.held == "" || now.Sub(r.lock.since) < lockPatience {
		return nil
	}
	return &ringi.Error{
		Code:    ringi.CodeUnavailable,
		Message: fmt.Sprintf("the server waits for a lock in its database: %s", r.lock.held),
		Hint:    "it goes on by itself when the holder ends its transaction; end that session if nobody knows it",
	}
}
