package sim

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/store"
)

// A memory is what sweeps of any node were told by the store: due timers, due
// tasks, pairs. A process that stood still acts on it minutes later.
type memory[T any] struct{ seen []T }

// longMemory is how many answers are remembered.
const longMemory = 64

// recall hands out something that was seen before, together with what is seen
// now. Rules and conditions must find that it is out of date.
func recall[T any](t *tap, m *memory[T], now []T, what func(T) string) []T {
	w := t.node.w
	if len(m.seen) > 0 && w.strikes(fault.SweepRepeated, 0.05) {
		old := m.seen[w.faults.Below(len(m.seen))]
		w.struck(fault.SweepRepeated, "%s acts on %s once more", t.node.name, what(old))
		now = append(slices.Clone(now), old)
	}
	if m.seen = append(m.seen, now...); len(m.seen) > longMemory {
		m.seen = slices.Clone(m.seen[len(m.seen)-longMemory:])
	}
	return now
}

// hurry adds a timer that is not due for long, as for a node whose clock is set
// back between its look and what comes of it.
func (t *tap) hurry(due []store.DueTimer) []store.DueTimer {
	w := t.node.w
	var of []store.DueTimer
	for _, sh := range w.watch.all() {
		for _, tm := range sh.state.Timers {
			if sh.state.Paused == nil && tm.FireAt.Sub(w.db.clock.now()) > time.Minute {
				of = append(of, store.DueTimer{Key: sh.key, TimerRow: ringi.TimerRow{ID: tm.ID, Generation: tm.Generation, FireAt: tm.FireAt}})
			}
		}
	}
	if len(of) == 0 || !w.strikes(fault.TimerEarly, 0.02) {
		return due
	}
	early := draw.One(w.faults, of...)
	w.struck(fault.TimerEarly, "%s fires %s of run %s", t.node.name, early.ID, short(early.Key.Run))
	return append(slices.Clone(due), early)
}

// lastMoment stores an event for a wait that is about to time out, or has: it
// was sent just before, by a node that could not do more than store it. When
// this node wants to deliver it, the store takes its time, and refuses.
func (t *tap) lastMoment(now time.Time, q store.PairQuery) {
	w := t.node.w
	for _, sh := range w.watch.all() {
		for _, tm := range sh.state.Timers {
			st := promise.StepOf(sh.state, tm.Step)
			if st == nil || st.Wait == nil || st.Wait.Event == "" || sh.state.Paused != nil || tm.FireAt.Sub(now) > 4*time.Second || w.late[sh.key.Run] || !w.strikes(fault.EventLastMoment, 0.4) {
				continue
			}
			w.late[sh.key.Run] = true
			e := w.crowd.newEvent(st.Wait.Event, st.Wait.Key)
			e.SentAt = earlier(tm.FireAt.Add(-time.Millisecond), now)
			if _, err := w.db.Send(context.Background(), sh.key.Tenant, e, now.Add(time.Hour)); err != nil {
				w.fail("store", "an event cannot be stored: %v", err)
			}
			w.stored[e.ID] = w.steps
			if q.Tenant == sh.key.Tenant && q.Name == st.Wait.Event && q.Key == st.Wait.Key {
				w.stored[e.ID]-- // it stands there before it is looked for; another wait may have been looked at already
			}
			w.struck(fault.EventLastMoment, "%s for %s of run %s", e.ID, tm.Step, short(sh.key.Run))
			t.doomed, t.until = sh.key.Run, w.now.Add(tm.FireAt.Sub(w.db.clock.now())+time.Second)
		}
	}
}

// own adds an event to a sweep that belongs to no wait of its run: the one that
// the run was started by.
func (t *tap) own(pairs []store.Pair, now time.Time) []store.Pair {
	w := t.node.w
	for _, sh := range w.watch.all() {
		for _, st := range sh.state.Steps {
			if sh.state.EventID == "" || st.Outcome != ringi.Open || st.Wait == nil || st.Wait.Event == "" || !w.strikes(fault.EventOwn, 0.05) {
				continue
			}
			w.struck(fault.EventOwn, "%s for %s of run %s", sh.state.EventID, st.ID, short(sh.key.Run))
			e := ringi.SentEvent{ID: sh.state.EventID, Name: st.Wait.Event, Key: st.Wait.Key, SentAt: now}
			return append(slices.Clone(pairs), store.Pair{Key: sh.key, Step: st.ID, Event: e})
		}
	}
	return pairs
}

// undelivered stores an event for an open wait, by a node that died right behind
// it and for a sender who wants it kept for no time at all. The clean-up must
// leave it to the sweep.
func (t *tap) undelivered(now time.Time) {
	w := t.node.w
	for _, sh := range w.watch.all() {
		for _, st := range sh.state.Steps {
			if sh.state.End != nil || st.Outcome != ringi.Open || st.Wait == nil || st.Wait.Event == "" || now.Before(st.Wait.OpenedAt) || !w.strikes(fault.EventUndelivered, 0.3) {
				continue
			}
			e := w.crowd.newEvent(st.Wait.Event, st.Wait.Key)
			e.SentAt = now
			if _, err := w.db.Send(context.Background(), sh.key.Tenant, e, now); err != nil {
				w.fail("store", "an event cannot be stored: %v", err)
			}
			w.struck(fault.EventUndelivered, "%s for %s of run %s", e.ID, st.ID, short(sh.key.Run))
			return
		}
	}
}

// doom refuses the commit of the run whose turn it is, after the node has looked
// at its timers once more.
func (t *tap) doom(writes []store.Write) {
	w := t.node.w
	t.refuse = slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key.Run == t.doomed }) && w.depth < deepest
	if !t.refuse {
		return
	}
	t.doomed = ""
	w.now = promise.Later(w.now, t.until)
	w.depth++
	defer func() { w.depth-- }()
	for _, p := range t.node.parts {
		if p.name == "timers" && !p.busy {
			p.round()
		}
	}
}

// A timerName tells a timer from all others that there ever were.
type timerName struct {
	key        store.Key
	id         string
	generation int
}

// inVain holds a time-out that a node's own sweep brings to the events that
// stood in the store when it claimed the timer: one that was sent in time ends
// the wait, however late anybody looks.
func (n *node) inVain(s *ringi.State, f ringi.FireTimer) {
	name := timerName{store.Key{Tenant: s.Tenant, Run: s.Run}, f.Timer, f.Generation}
	since, known := n.claims[name]
	if !known {
		return
	}
	delete(n.claims, name)
	pairs, err := n.w.db.Pairs(context.Background(), store.PairQuery{Limit: 1 << 10})
	if err != nil {
		n.w.fail("store", "events cannot be read: %v", err)
	}
	for _, tm := range s.Timers {
		for _, p := range pairs {
			if tm.ID == f.Timer && p.Key == name.key && p.Step == tm.Step && !p.Event.SentAt.After(tm.FireAt) && n.w.stored[p.Event.ID] < since {
				n.w.fail("event", "%s takes the wait %s of run %s for timed out, and event %s was there in time", n.name, p.Step, short(s.Run), p.Event.ID)
			}
		}
	}
}
