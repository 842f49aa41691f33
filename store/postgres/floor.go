package postgres

import (
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// floorLag is how far a floor stays behind what was seen: a row may become
	// visible so long after the time that it stands under was taken.
	floorLag = 30 * time.Second
	// floorSlack is how old a row may be when it is written. An older one, such
	// as a task that is resumed or a timer that was set for the past, is ordered
	// as if it were this old; it is due at once in either case.
	floorSlack = 10 * time.Second
	// floorRise is how often a floor is moved.
	floorRise = 5 * time.Second
	// floorAge is how long a floor stands. Then it is taken away and everything
	// is looked at once more, so that no fault of ours hides a row for ever.
	floorAge = 10 * time.Minute
)

// What has a floor besides the queues.
const (
	floorTimers = "timers"
	floorChecks = "checks"
	floorPairs  = "pairs"
	floorEvents = "events"
)

// A floorKey names an ordered index: a queue of a tenant, the timers, the
// checks of tasks, the openings of waits with the sending of events, or the ends
// of what is kept of those.
type floorKey struct {
	what   string
	queue  string
	tenant ringi.Tenant
}

// floors are where this node begins to look for what is due. Every row of these
// indexes leaves its place, and as long as any transaction is open anywhere the
// entry that it leaves cannot be removed; a scan from the beginning would walk
// over all of them, more with every minute. So each scan begins at a time below
// which nothing was due when it was last looked. Safe for concurrent use.
//
// Two things make this safe: no row is written under a time older than
// floorSlack by the writing node's clock, and a floor stays floorLag behind.
// The rejected alternative, partitions by time that are dropped as a whole,
// moves rows between tables when their time changes.
type floors struct {
	mu   sync.Mutex
	of   map[floorKey]*floor
	age  int       // grows with every reset: a look that began before moves nothing
	last time.Time // the latest time that was passed in
}

type floor struct {
	at    time.Time // nothing is due at or before it
	made  time.Time // when the first look from the beginning was
	moved time.Time // when it was moved last
}

// reset takes all floors away.
func (f *floors) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
}

func (f *floors) clear() {
	f.of = nil
	f.age++
}

// heard notes a time that was passed in. Calls that run beside each other pass
// in times that differ a little.
func (f *floors) heard(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.last.Add(-floorSlack)) {
		f.clear() // the clock was set back
		f.last = now
	}
	if now.After(f.last) {
		f.last = now
	}
}

// A look is one scan of an index from its floor.
type look struct {
	key  floorKey
	now  time.Time
	from time.Time // nothing is due at or before it
	move bool      // the lowest row that is there is to be asked for
	age  int
}

// look begins a scan at a time.
func (f *floors) look(key floorKey, now time.Time) look {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of[key]
	if l != nil && (now.Sub(l.made) >= floorAge || now.Before(l.moved.Add(-floorSlack))) {
		delete(f.of, key) // it is old, or the clock was set back
		l = nil
	}
	if l == nil {
		return look{key, now, beginning, true, f.age}
	}
	return look{key, now, l.at, now.Sub(l.moved) >= floorRise, f.age}
}

// saw moves the floor of a look behind the lowest row that was there; zero when
// there was none.
func (f *floors) saw(k look, lowest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !k.move || k.age != f.age {
		return
	}
	key, now, at := k.key, k.now, k.now
	if !lowest.IsZero() && lowest.Before(now) {
		at = lowest
	}
	at = at.Add(-floorLag)
	l := f.of[key]
	if l == nil {
		if f.of == nil {
			f.of = map[floorKey]*floor{}
		}
		l = &floor{made: now}
		f.of[key] = l
	}
	if at.After(l.at) {
		l.at = at
	}
	l.moved = now
}

// beginning is before every row.
// constant: only read
var beginning = time.UnixMicro(epoch).UTC()

// place is the time that a row is ordered under when the latest time that was
// passed in is last. Zero is no time.
func place(at, last time.Time) time.Time {
	if at.IsZero() || last.IsZero() {
		return at
	}
	if lowest := last.Add(-floorSlack); at.Before(lowest) {
		return lowest
	}
	return at
}

// latest is the latest time that was passed in.
func (f *floors) latest() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}
