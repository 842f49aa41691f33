package sim

import (
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
)

// A sender is somebody outside of the nodes who talks to them over a network.
type sender struct {
	w        *world
	name     string
	received map[string]int // by node: the largest number that arrived
	gone     func() bool    // the process that sent is no more; nil: it lives
}

func newSender(w *world, name string) *sender {
	return &sender{w: w, name: name, received: map[string]int{}}
}

func (s *sender) alive() bool { return s.gone == nil || !s.gone() }

// travel is how long a message is under way.
func (w *world) travel() time.Duration {
	if w.strikes(fault.MessageReordered, 0.08) {
		return w.faults.Span(0, 9*time.Second)
	}
	return w.order.Span(200*time.Microsecond, 20*time.Millisecond)
}

// send brings something to a node: once, never, or twice.
func (s *sender) send(n *node, what string, arrive func(*node)) {
	w := s.w
	w.messages++
	number, times := w.messages, 1
	switch {
	case w.strikes(fault.RequestLost, 0.04):
		w.struck(fault.RequestLost, "%s of %s to %s", what, s.name, n.name)
		return
	case w.strikes(fault.RequestRepeated, 0.04):
		times = 2
		w.struck(fault.RequestRepeated, "%s of %s to %s", what, s.name, n.name)
	}
	for range times {
		w.arrive(n, w.travel(), what+" of "+s.name+" at "+n.name, func() {
			if number < s.received[n.name] {
				w.struck(fault.MessageReordered, "%s of %s to %s", what, s.name, n.name)
			}
			s.received[n.name] = max(s.received[n.name], number)
			arrive(n)
		})
	}
}

// arrive lets something arrive at a node: nobody listens at a dead one, and one
// that stands still takes it in when it goes on.
func (w *world) arrive(n *node, d time.Duration, what string, do func()) {
	w.after(d, what, func() {
		switch {
		case !n.up:
		case !n.awake():
			w.arrive(n, n.asleep.Sub(w.now), what, do)
		default:
			do()
		}
	})
}

// back brings an answer to the sender: once, never, or twice.
func (s *sender) back(n *node, what string, arrive func()) {
	w := s.w
	times := 1
	switch {
	case w.strikes(fault.AnswerLost, 0.04):
		w.struck(fault.AnswerLost, "to %s of %s from %s", what, s.name, n.name)
		return
	case w.strikes(fault.AnswerRepeated, 0.02):
		times = 2
		w.struck(fault.AnswerRepeated, "to %s of %s from %s", what, s.name, n.name)
	}
	for range times {
		w.after(w.travel(), "answer to "+what+" of "+s.name, func() {
			if s.alive() {
				arrive()
			}
		})
	}
}

// patience is how long a sender waits for an answer before it asks again,
// perhaps elsewhere.
const patience = 6 * time.Second

// do sends commands until they are answered, as a good client does: the same
// ones, to any node, for as long as the sender lives. then is called once.
func (s *sender) do(what string, commands []ringi.Command, then func([]ringi.Result)) {
	answered := false
	tries := 0
	var try func()
	try = func() {
		if answered || !s.alive() {
			return
		}
		if tries++; tries > mostTries {
			then(nil)
			answered = true
			return
		}
		mine := tries
		s.send(draw.One(s.w.order, s.w.nodes...), what, func(n *node) {
			n.do(commands, func(results []ringi.Result) {
				s.back(n, what, func() {
					if answered {
						return
					}
					if unavailable(results) {
						if mine == tries { // else it is asked again already
							mine = 0
							s.w.after(s.w.order.Span(100*time.Millisecond, 2*time.Second), what+" again of "+s.name, try)
						}
						return
					}
					answered = true
					then(results)
				})
			})
		})
		s.w.after(patience, "patience of "+s.name+" with "+what, func() {
			if mine == tries {
				try()
			}
		})
	}
	try()
}

// mostTries ends the patience of a sender whom nobody can ever answer.
const mostTries = 400

// unavailable reports whether nobody decided at least one of the commands.
func unavailable(results []ringi.Result) bool {
	for _, r := range results {
		if ringi.ErrorCode(r.Err) == ringi.CodeUnavailable {
			return true
		}
	}
	return false
}
