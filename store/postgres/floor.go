package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// floorLag is how far a floor stays behind what was seen: a row may become
	// visible so long after the time that it stands under was taken.
	floorLag = 30 * time.Second
	// floorSlack is how old a row may be when the database writes it. An older
	// one, such as a task that is resumed, a timer that was set for the past, or
	// whatever a node wrote that was frozen meanwhile, is ordered as if it were
	// this old; it is due at once in either case.
	floorSlack = 10 * time.Second
	// floorStall is how long a transaction that writes holds the floors down: one
	// whose commit waits for a disk that hangs may end with rows as old as itself.
	// What is open for longer is somebody's forgotten session.
	floorStall = 2 * time.Minute
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
// Two things make this safe. No row is written under a time older than
// floorSlack, by the database's own clock and at the moment when it writes the
// row: how long ago a node decided on it does not count. And a floor stays
// floorLag behind what is due, and behind what still writes. The rejected
// alternative, partitions by time that are dropped as a whole, moves rows
// between tables when their time changes.
type floors struct {
	foreign bool // see Config.Foreign

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

// saw moves the floor of a look behind the lowest row that was there, and
// behind the oldest transaction that wrote; zero when there was none.
func (f *floors) saw(k look, lowest, oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !k.move || k.age != f.age {
		return
	}
	key, now, at := k.key, k.now, k.now
	for _, t := range []time.Time{lowest, oldest} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
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

// textWriting is the beginning of the oldest transaction that writes. What it
// wrote is not seen yet, so it must be asked for before the rows are looked at:
// in the other order it could end between the two. Of other people's sessions
// only those of the same role tell.
const textWriting statement = `select min(xact_start) from pg_stat_get_activity(null) where backend_xid is not null and pid <> pg_backend_pid()
	and datid = (select oid from pg_database where datname = current_database()) and xact_start > clock_timestamp() - make_interval(secs => $1::bigint)`

// writing asks for the oldest transaction that writes.
func (f *floors) writing(oldest *time.Time) []*call {
	if f.foreign {
		return nil
	}
	ask := &call{statement: textWriting, row: func(row cells) error {
		*oldest = row.time(0)
		return nil
	}}
	ask.int(int64(floorStall / time.Second))
	return []*call{ask}
}

// placed is, in a statement, the time that a row is ordered under: its own, but
// not before floorSlack, by the clock of the database. The number is that of
// the argument that slack adds. Null is no time.
func placed(at string, n int) string {
	return fmt.Sprintf("case when %s is not null then greatest(%s, clock_timestamp() - make_interval(secs => $%d::bigint)) end", at, at, n)
}

// slack adds the argument of placed.
func (f *floors) slack(c *call) {
	if f.foreign {
		c.add(oidInt, nil) // null moves nothing
		return
	}
	c.int(int64(floorSlack / time.Second))
}

// call is a statement over the rows of a table that places them. counted is as
// in table.call.
func (f *floors) call(t *table, text statement, counted bool) *call {
	c := t.call(text, false)
	f.slack(c)
	if counted {
		c.int(int64(t.rows))
	}
	return c
}

// least is the least time that a row may be ordered under where the database
// cannot say it, since the times are not its own: floorSlack before the latest
// that was passed in. Zero is none.
func (f *floors) least() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.foreign || f.last.IsZero() {
		return time.Time{}
	}
	return f.last.Add(-floorSlack)
}

// place is at, but not before least. Zero is no time.
func place(at, least time.Time) time.Time {
	if !at.IsZero() && at.Before(least) {
		return least
	}
	return at
}

// latest is the latest time that was passed in.
func (f *floors) latest() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}
