package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/faulty"
)

// A tap is the way of one life of a node to the store. It is where a node can
// die inside a round, where its calls take time, and where they fail. All that
// a node does to the world passes here, so that dying at each of its calls is
// dying at every point that anybody could tell from another.
type tap struct {
	*faulty.Store
	node   *node
	dead   bool
	swept  map[sweptName]time.Duration    // how long it had been there when it last saw an attempt in a sweep
	jumped time.Time                      // when the database's clock was set last, as far as it could notice
	since  time.Time                      // of the world: since when it reached the store without a break
	doubts map[ringi.RunID]store.CommitID // writes of which it does not know whether they were done
	doomed ringi.RunID                    // the next commit of this run is refused
	until  time.Time                      // not before
	refuse bool                           // the commit under way is refused
}

// crashed is the panic by which a dead node leaves its round.
type crashed struct{ tap *tap }

func newTap(n *node) *tap {
	t := &tap{node: n, swept: map[sweptName]time.Duration{}, doubts: map[ringi.RunID]store.CommitID{}}
	db := n.w.db
	t.Store = faulty.New(faulty.Config{Store: db, Records: db, Catalog: db, Events: db, Plan: t.plan})
	return t
}

// plan says what becomes of the next call.
func (t *tap) plan(c faulty.Call) faulty.Fault {
	w := t.node.w
	if w.storeDown() || t.node.cut {
		return faulty.Unavailable
	}
	switch {
	case c.Op == faulty.Commit && c.Writes > 0:
		switch {
		case t.refuse:
			w.struck(fault.StoreRefuses, "%s of %s", c.Op, t.node.name)
			return faulty.Unavailable
		case w.strikes(fault.CommitNotDone, 0.02):
			w.struck(fault.CommitNotDone, "%s, %d writes", t.node.name, c.Writes)
			return faulty.Before
		case w.strikes(fault.CommitDone, 0.02):
			w.struck(fault.CommitDone, "%s, %d writes", t.node.name, c.Writes)
			return faulty.After
		case w.strikes(fault.CommitLate, 0.02):
			w.struck(fault.CommitLate, "%s, %d writes", t.node.name, c.Writes)
			w.after(w.order.Span(0, 4*time.Second), "late commit of "+t.node.name, func() { w.land(t) })
			return faulty.Late
		}
	case c.Op == faulty.Commit:
		return faulty.None
	case c.Op == faulty.Claim && w.strikes(fault.PollAnswerLost, 0.02):
		return faulty.After
	}
	if w.strikes(fault.StoreRefuses, 0.006) {
		w.struck(fault.StoreRefuses, "%s of %s", c.Op, t.node.name)
		return faulty.Unavailable
	}
	return faulty.None
}

// land does the commits that are late.
func (w *world) land(t *tap) {
	if err := t.Land(context.Background()); err != nil {
		w.fail("store", "a late commit: %v", err)
	}
}

// through is one call to the store.
func through[T any](t *tap, op faulty.Op, changes bool, call func() (T, error)) (T, error) {
	w := t.node.w
	if t.dead {
		panic(crashed{t})
	}
	if changes && w.strikes(fault.NodeCrashBeforeStore, dying(op)) {
		w.struck(fault.NodeCrashBeforeStore, "%s at %s", t.node.name, op)
		t.node.crash()
	}
	t.wait(op)
	v, err := call()
	w.trace("store ", t.node.name, " ", string(op), " ", outcomeOf(err))
	t.wait(op)
	t.reached(err) // the node learns of it now
	if changes && !t.dead && w.strikes(fault.NodeCrashAfterStore, dying(op)) {
		w.struck(fault.NodeCrashAfterStore, "%s at %s", t.node.name, op)
		t.node.crash()
	}
	if t.dead {
		panic(crashed{t})
	}
	return v, err
}

// dying is how likely a node dies at a call: where it hurts, more often.
func dying(op faulty.Op) float64 {
	if op == faulty.Commit {
		return 0.012
	}
	return 0.003
}

// wait lets others act before or behind the store's work.
func (t *tap) wait(op faulty.Op) {
	w := t.node.w
	if !t.dead && w.depth < deepest && w.strikes(fault.StoreSlow, 0.03) {
		w.struck(fault.StoreSlow, "%s of %s", op, t.node.name)
		w.meanwhile(w.order.From(1, 12))
	}
	if t.dead {
		panic(crashed{t})
	}
}

func outcomeOf(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}

// A sweptName is an attempt under one hand-out.
type sweptName struct {
	key   store.Key
	token int64
}

// unbroken is for how long the node has reached the store, as it could know.
func (t *tap) unbroken() time.Duration {
	since := t.since
	if t.jumped.After(since) {
		since = t.jumped
	}
	if t.since.IsZero() {
		return 0
	}
	return t.node.w.now.Sub(since)
}

// reached notes since when the node has reached the store, by rules of its own.
func (t *tap) reached(err error) {
	switch {
	case err != nil:
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = t.node.w.now
	}
}

// Commit implements store.Store.
func (t *tap) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	return through(t, faulty.Commit, len(writes) > 0, func() (store.Committed, error) {
		t.doom(writes)
		before := t.node.w.watch.committing
		t.node.w.watch.committing = t
		defer func() { t.node.w.watch.committing = before }()
		done, err := t.Store.Commit(ctx, writes...)
		t.doubt(writes, err)
		if err == nil {
			t.jumped = t.node.w.db.jumped
			t.prove(writes, done.Lost)
			t.forget(writes)
		}
		return done, err
	})
}

// doubt keeps the writes of which nobody knows, until the same ones are settled.
func (t *tap) doubt(writes []store.Write, err error) {
	for _, w := range writes {
		switch {
		case errors.Is(err, store.ErrDoubt):
			t.doubts[w.Key.Run] = w.Commit
		case err == nil && t.doubts[w.Key.Run] == w.Commit:
			delete(t.doubts, w.Key.Run)
		}
	}
}

// forget lets a node die right behind a write that opens a wait: nobody is left
// who knows that an event for it may be there.
func (t *tap) forget(writes []store.Write) {
	opens := slices.ContainsFunc(writes, func(w store.Write) bool {
		return slices.ContainsFunc(w.Waits, func(c store.WaitChange) bool { return c.Row != nil })
	})
	if w := t.node.w; opens && !t.dead && w.strikes(fault.NodeCrashAfterStore, 0.2) {
		w.struck(fault.NodeCrashAfterStore, "%s when a wait had opened", t.node.name)
		t.node.crash()
	}
}

// prove notes what a commit has made sure for the round that waits for it.
func (t *tap) prove(writes []store.Write, lost []store.LostWrite) {
	p := t.node.w.inside
	if p == nil || p.node != t.node {
		return
	}
	for i := range writes {
		if !slices.ContainsFunc(lost, func(l store.LostWrite) bool { return l.Index == i }) {
			p.proof[writes[i].Key.Run] = proof{writes[i].First - 1, writes[i].Last}
		}
	}
}

// Load implements store.Store.
func (t *tap) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	return through(t, faulty.Load, false, func() ([]store.Loaded, error) { return t.Store.Load(ctx, keys...) })
}

// Claim implements store.Store.
func (t *tap) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	return through(t, faulty.Claim, true, func() ([]store.Claimed, error) {
		before := t.node.w.watch.handOuts
		claimed, err := t.Store.Claim(ctx, c)
		if lost := t.node.w.watch.handOuts - before; err != nil && lost > 0 {
			t.node.w.struck(fault.PollAnswerLost, "the store handed %d tasks to %s, which does not know", lost, t.node.name)
		}
		return claimed, err
	})
}

// Beat implements store.Store.
func (t *tap) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	return through(t, faulty.Beat, true, func() ([]store.Beaten, error) { return t.Store.Beat(ctx, beats...) })
}

// DueTimers implements store.Store.
func (t *tap) DueTimers(ctx context.Context, now, until time.Time, limit int) ([]store.DueTimer, error) {
	due, err := through(t, faulty.DueTimers, true, func() ([]store.DueTimer, error) {
		if t.node.w.strikes(fault.TimerRepeated, 0.9) {
			until = now // the claim does not last: the next look finds them again
		}
		return t.Store.DueTimers(ctx, now, until, limit)
	})
	for _, d := range due {
		t.node.w.meddle(d.Key.Run)
		name := timerName{d.Key, d.ID, d.Generation}
		if _, flying := t.node.claims[name]; !flying {
			t.node.claims[name] = t.node.w.steps
		}
	}
	if err == nil {
		timer := func(d store.DueTimer) string { return "timer " + d.ID + " of run " + short(d.Key.Run) }
		due = recall(t, &t.node.w.timers, t.hurry(due), timer)
	}
	return due, err
}

// DueTasks implements store.Store.
func (t *tap) DueTasks(ctx context.Context, now time.Time, limit int) ([]store.DueTask, error) {
	due, err := through(t, faulty.DueTasks, false, func() ([]store.DueTask, error) { return t.Store.DueTasks(ctx, now, limit) })
	if err == nil {
		due = recall(t, &t.node.w.tasks, due, func(d store.DueTask) string { return "task " + d.Row.Step + " of run " + short(d.Key.Run) })
	}
	for _, d := range due {
		name := sweptName{d.Key, d.Token}
		t.swept[name] = max(t.swept[name], t.unbroken())
		t.node.w.tempt(d)
	}
	return due, err
}

// Settle implements store.Store.
func (t *tap) Settle(ctx context.Context, s store.Settlement) error {
	_, err := through(t, faulty.Settle, true, func() (struct{}, error) { return struct{}{}, t.Store.Settle(ctx, s) })
	return err
}

// Definition implements store.Catalog.
func (t *tap) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (store.Definition, error) {
	return through(t, faulty.Definition, false, func() (store.Definition, error) { return t.Store.Definition(ctx, tenant, name, version) })
}

// Send implements store.Events.
func (t *tap) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keep time.Time) (bool, error) {
	return through(t, faulty.Send, true, func() (bool, error) { return t.Store.Send(ctx, tenant, e, keep) })
}

// Pairs implements store.Events.
func (t *tap) Pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	pairs, err := through(t, faulty.Pairs, false, func() ([]store.Pair, error) {
		t.lastMoment(t.node.w.db.clock.now(), q)
		return t.Store.Pairs(ctx, q)
	})
	if err == nil && q.Name == "" {
		t.node.looks++
		pairs = recall(t, &t.node.w.waits, pairs, func(p store.Pair) string { return p.Event.ID + " for " + p.Step + " of run " + short(p.Key.Run) })
		pairs = t.own(pairs, t.node.w.db.clock.now())
	}
	return pairs, err
}

// Expire implements store.Events.
func (t *tap) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	return through(t, faulty.Expire, true, func() (int, error) {
		t.undelivered(now)
		return t.Store.Expire(ctx, now, limit)
	})
}
