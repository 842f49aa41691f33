package sim

import (
	"context"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A missed pair is an event and a wait that belong together and stand side by
// side in the store, with how many looks for such pairs each node had made by
// then.
type missed struct {
	run   store.Key
	step  string
	event string
	looks map[*node]look
	calm  bool // whether that was after all faults
	since time.Time
}

// A look is how often a life of a node has looked for pairs, or had to.
type look struct{ life, times int }

// mostLooks is after how many looks of one node a pair is taken for missed.
const mostLooks = 10

// missedTime is how long it must have stood there too: a burst of commands may
// wait before the delivery.
const missedTime = 20 * time.Second

// pairs looks now and then for an event and a wait that miss each other.
func (w *world) pairs() {
	if w.steps%64 != 0 {
		return
	}
	pairs, err := w.db.Pairs(context.Background(), store.PairQuery{Limit: 1})
	if err != nil || len(pairs) == 0 {
		w.missed = nil
		return
	}
	p := pairs[0]
	if sh := w.watch.runs[p.Key]; sh == nil || tooLate(sh.state, p) {
		return
	}
	if m := w.missed; m == nil || m.run != p.Key || m.step != p.Step || m.event != p.Event.ID || m.calm != w.calm {
		w.missed = &missed{run: p.Key, step: p.Step, event: p.Event.ID, looks: map[*node]look{}, calm: w.calm, since: w.now}
	}
	for _, n := range w.nodes {
		now := look{n.life, n.looks}
		if w.calm { // nothing keeps it from looking in every round
			now.times = n.sweeps
		}
		first, ok := w.missed.looks[n]
		if !ok || first.life != n.life {
			w.missed.looks[n] = now
		} else if now.times-first.times > mostLooks && w.now.Sub(w.missed.since) > missedTime {
			w.fail("event", "event %s and the wait %s of run %s have missed each other", p.Event.ID, p.Step, short(p.Key.Run))
		}
	}
}

// tooLate reports whether an event was sent after its wait was over, though its
// timer has not fired yet.
func tooLate(s *ringi.State, p store.Pair) bool {
	for _, tm := range s.Timers {
		if tm.Step == p.Step && p.Event.SentAt.After(tm.FireAt) {
			return true
		}
	}
	return false
}
