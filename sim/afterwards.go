package sim

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// mostSteps bounds what a world may need to come to rest.
const (
	restSteps = 60_000
	// restTime is how long a run may stand that is not waiting for anybody.
	restTime = 4 * time.Hour
)

// afterwards ends all faults and waits until every run has come to an end. A
// run that stands still must say what it waits for; then that is given to it.
func (w *world) afterwards() {
	w.heal()
	limit := w.steps + restSteps
	w.helping(2 * time.Minute)
	moved := map[store.Key]int64{}
	since := map[store.Key]time.Time{}
	for !w.done() {
		open := w.openRuns()
		if len(open) == 0 {
			break
		}
		if w.steps > limit {
			w.fail("liveness", "run %s has not come to an end: it is %s", short(open[0].key.Run), standsAs(open[0].state))
			return
		}
		for _, sh := range open {
			if moved[sh.key] != sh.state.Seq || since[sh.key].IsZero() || namesItsWait(sh.state) {
				moved[sh.key], since[sh.key] = sh.state.Seq, w.now
			} else if w.now.Sub(since[sh.key]) > restTime {
				w.fail("liveness", "run %s stands still at event %d for %s: it is %s", short(sh.key.Run), sh.state.Seq, restTime, standsAs(sh.state))
			}
		}
		w.step()
	}
	w.drain(limit)
	w.audit()
}

// heal ends everything that breaks.
func (w *world) heal() {
	w.calm = true
	w.tell("all faults end here")
	w.downUntil = time.Time{}
	for _, n := range w.nodes {
		n.cut, n.asleep = false, time.Time{}
		n.clock.set(0, 1)
		if n.up {
			w.land(n.tap)
		} else {
			n.restart()
		}
	}
	for _, h := range w.hands {
		if !w.shape.zombies { // there the last of them wake up in their own time
			h.stalled = time.Time{}
		}
		h.start()
	}
	side := newHand(w, "worker for both", draw.QueueSide, 2)
	main := newHand(w, "worker for all", "default", 2)
	w.hands = append(w.hands, side, main)
	side.start()
	main.start()
}

// helping looks after the runs from time to time, less and less often, until
// the end.
func (w *world) helping(most time.Duration) {
	w.after(w.actors.Span(30*time.Second, most), "help", func() {
		w.help(w.openRuns())
		w.helping(min(most*5/4, 20*time.Hour))
	})
}

func (w *world) openRuns() []*shadow {
	var open []*shadow
	for _, sh := range w.watch.all() {
		if sh.state.End == nil {
			open = append(open, sh)
		}
	}
	return open
}

// namesItsWait reports whether a run says what it waits for.
func namesItsWait(s *ringi.State) bool {
	switch s.Status() {
	case ringi.Paused, ringi.InIncident, ringi.Waiting:
		return true
	}
	return len(s.Timers) > 0 && len(ringi.Standing(s).Tasks) == 0
}

func standsAs(s *ringi.State) string {
	raw, err := ringi.EncodeState(s)
	if err != nil {
		return string(s.Status())
	}
	return string(s.Status()) + " " + string(raw)
}

// help gives the runs what they wait for: a decision, an event, an order.
func (w *world) help(open []*shadow) {
	op := ringi.Actor{ID: "op", Kind: ringi.Person}
	for _, sh := range open {
		switch {
		case sh.state.Paused != nil:
			w.crowd.send(op, sh.key.Run, ringi.Resume{Reason: "helped"}, nil)
		case len(sh.state.Incidents) > 0:
			w.crowd.resolve(sh, op)
		}
		for _, st := range sh.state.Steps {
			switch {
			case st.Outcome != ringi.Open:
			case st.Approval != nil:
				w.helpVote(sh, st)
			case st.Wait != nil && st.Wait.Event != "" && w.actors.Hit(0.5):
				w.crowd.event(st.Wait.Event, st.Wait.Key)
			}
		}
	}
}

// helpVote lets everybody vote who has not.
func (w *world) helpVote(sh *shadow, st *ringi.Step) {
	for _, p := range draw.People() {
		voted := slices.ContainsFunc(st.Approval.Votes, func(v ringi.Vote) bool { return v.Person == p.ID })
		if p.Kind == ringi.Person && p.ID != "erin" && !voted && w.actors.Hit(0.6) {
			w.crowd.send(p, sh.key.Run, ringi.DecideApproval{Step: st.ID, Approve: true, Digest: st.Approval.Digest}, nil)
		}
	}
}

// drain waits until reports, events and messages have arrived.
func (w *world) drain(limit int) {
	for !w.done() {
		stats, err := w.db.Outbox().Stats(context.Background())
		if err != nil {
			w.fail("store", "the outbox cannot be read: %v", err)
		}
		busy := slices.ContainsFunc(w.hands, func(h *hand) bool { return h.up && h.shift.Open() > 0 })
		if stats.Pending+stats.Claimed == 0 && !busy && len(w.openRuns()) == 0 {
			return
		}
		if w.steps > limit {
			w.fail("liveness", "after all: %d messages and %d runs are not at their end, a worker is busy: %v", stats.Pending+stats.Claimed, len(w.openRuns()), busy)
		}
		w.step()
	}
}

// audit looks at the whole when all is over.
func (w *world) audit() {
	if w.done() {
		return
	}
	ctx := context.Background()
	replayed, err := replay.Run(ctx, w.db, replay.Query{Now: w.now.Add(24 * time.Hour)})
	if err != nil && len(w.watch.all()) > 0 {
		w.fail("replay", "it cannot be done: %v", err)
	}
	for _, m := range replayed.Mismatches {
		w.fail("replay", "%s", m)
	}
	if pairs, err := w.db.Pairs(ctx, store.PairQuery{Limit: 10}); err != nil || len(pairs) > 0 {
		w.fail("event", "events and waits that belong together: %v %v", pairs, err)
	}
	keys, repairs := map[string]ringi.RunID{}, map[string]ringi.RunID{}
	for _, sh := range w.watch.all() {
		w.auditEffects(sh)
		for _, u := range sh.state.Undos {
			if of := string(sh.state.RepairOf) + "/" + u.Step; sh.state.RepairOf != "" {
				if other, ok := repairs[of]; ok {
					w.fail("late_effect", "runs %s and %s both undo the effect of %s of run %s that was found late", short(other), short(sh.key.Run), u.Step, short(sh.state.RepairOf))
				}
				repairs[of] = sh.key.Run
			}
		}
		for _, id := range sh.sent {
			if !w.broker.has[id] {
				w.fail("message_lost", "message %s of run %s was committed and never delivered", id, short(sh.key.Run))
			}
		}
		if sh.state.Key == "" {
			continue
		}
		name := sh.state.Definition + "/" + sh.state.Key
		if other, ok := keys[name]; ok {
			w.fail("start_key", "runs %s and %s both have the key %s", short(other), short(sh.key.Run), name)
		}
		keys[name] = sh.key.Run
	}
}

// auditEffects holds the end of a run to the books of the services: what took
// place is done, or undone, or named as left standing.
func (w *world) auditEffects(sh *shadow) {
	s := sh.state
	if sh.rewound || s.End == nil {
		return
	}
	for _, st := range s.Steps {
		d := w.service.deeds[deedName{run: sh.key.Run, step: st.ID}]
		if d == nil || d.times == 0 || d.effect == string(workflow.Pure) || sh.ordered[st.ID] || sh.excused[st.ID] {
			continue
		}
		known := st.Outcome == ringi.Succeeded || st.Doubt
		undone := d.undone || w.undoneElsewhere(sh, st.ID)
		left := slices.Contains(s.End.EffectsLeft, st.ID)
		switch {
		case undone || left:
		case s.End.Status == ringi.Completed && known:
		default:
			w.fail("effect_forgotten", "%s took place, and run %s ended as %s without undoing or naming it (the log says %s, doubt %v)",
				d, short(sh.key.Run), s.End.Status, st.Outcome, st.Doubt)
		}
	}
}

// undoneElsewhere reports whether a repair run took care of the step.
func (w *world) undoneElsewhere(sh *shadow, step string) bool {
	for _, other := range w.watch.all() {
		if other.state.RepairOf == sh.key.Run && promise.UndoOf(other.state, step) != nil {
			return true
		}
	}
	return false
}
