package sim

import (
	"time"

	"github.com/ringiflow/ringi/sim/promise"
)

// An entry is something that will happen in the world once its time has come:
// a message arrives, a worker's call returns, a person looks at the list.
type entry struct {
	due  time.Time
	what string
	do   func()
	idle bool // nobody minds when it happens: a leap passes over it
}

// after puts something on the agenda.
func (w *world) after(d time.Duration, what string, do func()) {
	w.agenda = append(w.agenda, &entry{due: w.now.Add(d), what: what, do: do})
}

// idly puts something on the agenda that finds nothing to do when nothing else
// happens.
func (w *world) idly(d time.Duration, what string, do func()) {
	w.agenda = append(w.agenda, &entry{due: w.now.Add(d), what: what, do: do, idle: true})
}

// A choice is one thing that can happen now: an entry, or a round of a part.
type choice struct {
	entry int // index, or -1
	part  *part
}

// step lets one thing happen: any of those that are due, in an order that only
// the seed knows. If none is, time goes on.
func (w *world) step() {
	w.steps++
	w.pairs()
	w.overslept()
	w.choices = w.choices[:0]
	for i, e := range w.agenda {
		if !e.due.After(w.now) {
			w.choices = append(w.choices, choice{entry: i})
		}
	}
	for _, n := range w.nodes {
		for _, p := range n.parts {
			if n.awake() && !p.busy && !p.due.After(w.now) {
				w.choices = append(w.choices, choice{entry: -1, part: p})
			}
		}
	}
	if len(w.choices) == 0 {
		w.pass()
		return
	}
	if w.depth == 0 && w.order.Hit(0.04) { // everything takes its time
		w.now = w.now.Add(w.order.Span(0, 400*time.Millisecond))
		return
	}
	c := w.choices[w.order.Below(len(w.choices))]
	if c.part != nil {
		c.part.round()
		return
	}
	e := w.agenda[c.entry]
	w.agenda = append(w.agenda[:c.entry], w.agenda[c.entry+1:]...)
	w.trace("> ", e.what)
	e.do()
}

// leap is how far away the next event must be for the world to be asleep until
// then.
const leap = 4 * time.Second

// pass lets time go on: to what comes next, or in one leap to the next thing of
// interest when nothing but idle rounds lies between.
func (w *world) pass() {
	next := w.now.Add(24 * time.Hour)
	soon := next
	for _, e := range w.agenda {
		if e.due.After(w.now) {
			soon = earlier(soon, e.due)
			if !e.idle {
				next = earlier(next, e.due)
			}
		}
	}
	for _, n := range w.nodes {
		for _, p := range n.parts {
			if n.up {
				soon = earlier(soon, promise.Later(p.due, n.asleep, w.now.Add(time.Millisecond)))
			}
		}
	}
	if next.Sub(w.now) > leap && w.depth == 0 {
		if at, ok := w.db.nextInterest(next); ok && at.Sub(w.now) > leap {
			w.now = at.Truncate(time.Microsecond)
			w.trace("leap ", clockText(w.now.Sub(epoch)))
			return
		}
	}
	if soon.After(w.now) {
		w.now = soon
	}
}

// meanwhile lets others act while somebody waits for the store.
func (w *world) meanwhile(steps int) {
	if w.depth >= deepest || w.done() {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for range steps {
		if w.step(); w.done() {
			return
		}
	}
}

// deepest is how many calls may wait for the store inside each other.
const deepest = 3
