package sim

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/store"
)

// A Driver is a store with all its parts, as every driver has them.
type Driver interface {
	store.Store
	store.Records
	store.Catalog
	store.Events
	store.Inspector
	Outbox() outbox.Source
}

// A database is the store of the world behind all that breaks on the way to
// it. Everything that really happens to a row passes here, and is checked here.
type database struct {
	Driver   // replaced by a restore
	w        *world
	clock    *skewed
	restores int
	jumped   time.Time // when its clock was set last
	backup   *store.Memory
	timers   map[store.DueTimer]int // how often each was handed out
}

func newDatabase(w *world) *database {
	db := &database{w: w, clock: newSkewed(w, 0), timers: map[store.DueTimer]int{}}
	db.Driver = store.NewMemory(store.MemoryConfig{Now: db.clock.now, Incarnation: "0"})
	if w.options.Open != nil {
		driver, err := w.options.Open(db.clock.now)
		if err != nil {
			w.fail("store", "it cannot be opened: %v", err)
			return db
		}
		db.Driver = driver
	}
	return db
}

// Commit applies writes and checks at once what they led to.
func (db *database) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	leases := db.leasesFor(writes)
	var done store.Committed
	var err error
	if db.w.options.Store != nil {
		done, err = db.w.options.Store(db.Driver).Commit(ctx, writes...)
	} else {
		done, err = db.Driver.Commit(ctx, writes...)
	}
	if err != nil {
		db.w.fail("bad_write", "the store refused a batch: %v", err)
		return done, err
	}
	lost := map[int]store.Condition{}
	for _, l := range done.Lost {
		lost[l.Index] = l.What
	}
	for i := range writes {
		w := &writes[i]
		if what, ok := lost[i]; ok {
			db.w.trace("lost ", string(w.Key.Run), " ", string(what))
			db.w.tell("the store refuses a write of run %s, which lost its race (%s)", short(w.Key.Run), what)
			if what == store.CondSequence {
				db.w.struck(fault.StaleCache, "run %s had moved on from event %d", short(w.Key.Run), w.First-1)
			}
			continue
		}
		db.w.watch.wrote(w, leases)
	}
	return done, nil
}

// Claim hands tasks out and checks that they may be.
func (db *database) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	claimed, err := db.Driver.Claim(ctx, c)
	for _, t := range claimed {
		db.w.watch.handedOut(t.Key, t.Row, t.Token, c.Worker, c.Now)
	}
	return claimed, err
}

// Beat extends leases and notes when.
func (db *database) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	answers, err := db.Driver.Beat(ctx, beats...)
	for i, a := range answers {
		if a.OK {
			db.w.watch.beaten(beats[i])
			db.w.watch.extend(beats[i].Key, beats[i].Token, beats[i].Now)
		}
	}
	return answers, err
}

// Send notes when an event was stored.
func (db *database) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keep time.Time) (bool, error) {
	created, err := db.Driver.Send(ctx, tenant, e, keep)
	if created {
		db.w.stored[e.ID] = db.w.steps
		db.w.watch.events = append(db.w.watch.events, storedEvent{e, tenant, keep})
		db.w.watch.keep[e.ID] = keep
		if want, ok := db.w.keeps[e.ID]; ok && !keep.Equal(e.SentAt.Add(want)) {
			db.w.fail("event", "event %s was sent at %s, to be kept for %s, and is stored until %s", e.ID, e.SentAt, want, keep)
		}
	}
	return created, err
}

// Expire checks that nobody waits for what is removed.
func (db *database) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	before := db.w.watch.outdated(now)
	n, err := db.Driver.Expire(ctx, now, limit)
	if n > 0 {
		db.w.watch.removed(now, before)
	}
	return n, err
}

// DueTimers counts the timers that are handed out more than once.
func (db *database) DueTimers(ctx context.Context, now, until time.Time, limit int) ([]store.DueTimer, error) {
	due, err := db.Driver.DueTimers(ctx, now, until, limit)
	for _, t := range due {
		if db.timers[t]++; db.timers[t] == 2 {
			db.w.struck(fault.TimerRepeated, "%s of run %s", t.ID, short(t.Key.Run))
		}
	}
	return due, err
}

// Settle applies what a sweep decided, and counts what was given back.
func (db *database) Settle(ctx context.Context, s store.Settlement) error {
	for _, l := range s.Lapses {
		db.w.struck(fault.HandOverLapsed, "lane %d of run %s", l.Lane, short(l.Key.Run))
	}
	var before []store.DueTask
	if len(s.Lapses) > 0 {
		before = db.leases()
	}
	err := db.Driver.Settle(ctx, s)
	if len(s.Lapses) > 0 {
		db.w.watch.gaveBack(s, before)
	}
	return err
}

// far is later than everything in a world.
const far = 100 * 365 * 24 * time.Hour

// leases reads all task rows that a sweep will ever look at.
func (db *database) leases() []store.DueTask {
	due, err := db.Driver.DueTasks(context.Background(), epoch.Add(far), 1<<20)
	if err != nil {
		db.w.fail("store", "leases cannot be read: %v", err)
	}
	return due
}

// leasesFor reads them when a write is about to give attempts up or take calls
// back.
func (db *database) leasesFor(writes []store.Write) []store.DueTask {
	for i := range writes {
		if bytes.Contains(writes[i].Body, []byte(`"ActivityTimedOut"`)) || bytes.Contains(writes[i].Body, []byte(`"ActivityWithdrawn"`)) {
			return db.leases()
		}
	}
	return nil
}

// nextInterest is when something in the store wants to be looked at, at latest
// at a time; ok is false when something does already.
func (db *database) nextInterest(latest time.Time) (at time.Time, ok bool) {
	shift := db.clock.now().Sub(db.w.now) // rows are in the database's time
	at = latest
	ok = true
	look := func(t time.Time) {
		if t.IsZero() {
			return
		}
		t = t.Add(-shift)
		ok = ok && t.After(db.w.now)
		if t.Before(at) {
			at = t
		}
	}
	held, ready, lost := map[string]bool{}, map[string]time.Time{}, false
	for _, t := range db.leases() {
		ready[fmt.Sprint(t.Key.Run, "/", t.Row.Lane)] = t.Row.ReadyAt // moved when a hand-over lapsed
		if t.Leased {
			held[fmt.Sprint(t.Key.Run, "/", t.Row.Lane)] = true
			lost = lost || !t.LeaseEnd.Add(-shift).After(db.w.now)
		}
	}
	for _, sh := range db.w.watch.all() {
		rows := ringi.Standing(sh.state)
		for _, t := range rows.Timers {
			// One that is long overdue was claimed before the clock was set back.
			if db.w.now.Sub(t.FireAt.Add(-shift)) < time.Minute {
				look(t.FireAt)
			}
		}
		for _, t := range rows.Tasks {
			if name := fmt.Sprint(sh.key.Run, "/", t.Lane); !held[name] && !t.Held {
				look(promise.Later(t.ReadyAt, ready[name]))
			}
		}
	}
	if ok && at.After(db.w.now) {
		at = db.nextCheck(at, shift)
	}
	if lost && at.Sub(db.w.now) < time.Minute {
		return at, false // a node that was not there in between would wait anew
	}
	return at, ok && at.After(db.w.now)
}

// nextCheck is when a sweep has to look at a task next, at latest at a time.
func (db *database) nextCheck(latest time.Time, shift time.Duration) time.Time {
	due := func(at time.Time) bool {
		rows, err := db.Driver.DueTasks(context.Background(), at.Add(shift), 1)
		return err != nil || len(rows) > 0
	}
	if !due(latest) {
		return latest
	}
	from, to := db.w.now, latest
	if due(from) {
		return from
	}
	for to.Sub(from) > time.Second {
		if middle := from.Add(to.Sub(from) / 2); due(middle) {
			to = middle
		} else {
			from = middle
		}
	}
	return to
}

// restore brings the database back to its backup, as an operator would after a
// disaster: what was committed since is gone, and its incarnation is another.
func (db *database) restore() {
	if db.backup == nil {
		return
	}
	gone := db.w.watch.lostSince(db.backup)
	if gone == 0 {
		return
	}
	db.restores++
	db.Driver = db.backup.Copy(fmt.Sprint(db.restores))
	db.w.struck(fault.StoreRestored, "%d runs lost events", gone)
	db.w.watch.restored()
	db.w.broker.restored()
}

// source is the outbox of the database as it stands, for a relay that outlives
// a restore.
type source struct{ db *database }

var _ outbox.Source = source{}

// Claim implements outbox.Source.
func (s source) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	return s.db.Outbox().Claim(ctx, c)
}

// Mark implements outbox.Source.
func (s source) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	return s.db.Outbox().Mark(ctx, at, marks)
}

// Prune implements outbox.Source.
func (s source) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.db.Outbox().Prune(ctx, before, limit)
}

// Stats implements outbox.Source.
func (s source) Stats(ctx context.Context) (outbox.Stats, error) { return s.db.Outbox().Stats(ctx) }

// short is the end of a run's id, which tells the runs of a world apart.
func short(run ringi.RunID) string {
	if len(run) < 6 {
		return string(run)
	}
	return "…" + string(run[len(run)-6:])
}
