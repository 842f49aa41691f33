package scenario

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// settle lets the run go as far as it comes by itself.
func (p *play) settle() {
	for !p.stuck && p.once(time.Time{}) {
	}
}

// pass lets time go by.
func (p *play) pass(d time.Duration) {
	until := p.now.Add(d)
	for !p.stuck && p.once(until) {
	}
	p.now = until
}

// once does the next thing that is due, and reports whether there was one. With
// an instant it does what is due until then; without, only what needs neither
// people nor timers: those stand until somebody lets time pass.
func (p *play) once(until time.Time) bool {
	if p.commands > mostCommands {
		p.differ(p.sc.At, "the run does not come to rest: %d commands and no end", mostCommands)
		p.stuck = true
		return false
	}
	rows := ringi.Standing(p.state)
	if p.deliver(rows.Waits) || p.handOut(rows.Tasks) {
		return true
	}
	ready, flight, timer := p.nextReady(rows.Tasks), p.nextFlight(false), nextTimer(rows.Timers)
	if until.IsZero() {
		until = earliest(ready, instant(p.nextFlight(true)))
	}
	at := earliest(ready, instant(flight))
	if timer != nil {
		at = earliest(at, timer.FireAt)
	}
	if at.IsZero() || at.After(until) {
		return false
	}
	if at.After(p.now) {
		p.now = at
	}
	switch {
	case flight != nil && flight.at.Equal(at):
		p.land(*flight)
	case timer != nil && timer.FireAt.Equal(at):
		p.must(ringi.FireTimer{Timer: timer.ID, Generation: timer.Generation})
	}
	return true
}

// earliest is the earliest of the instants that are not zero.
func earliest(instants ...time.Time) time.Time {
	var first time.Time
	for _, t := range instants {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func instant(f *flight) time.Time {
	if f == nil {
		return time.Time{}
	}
	return f.at
}

func nextTimer(timers []ringi.TimerRow) *ringi.TimerRow {
	var first *ringi.TimerRow
	for i, t := range timers {
		if first == nil || t.FireAt.Before(first.FireAt) {
			first = &timers[i]
		}
	}
	return first
}

// must sends what the engine sends; a refusal would be a fault of this package.
func (p *play) must(do ringi.Action) {
	if _, err := p.send(ringi.Engine(), do); err != nil {
		p.differ(p.sc.At, "%s was refused: %v", ringi.ActionName(do), err)
		p.stuck = true
	}
}

// keepEvents is how long an event that came early is kept for its wait.
const keepEvents = 24 * time.Hour

// deliver gives a sent event to a wait that it fits.
func (p *play) deliver(waits []ringi.WaitRow) bool {
	for _, w := range waits {
		for _, e := range p.sent {
			name := e.ID + " " + w.Step
			if e.Name != w.Event || e.Key != w.Key || p.delivered[name] || e.SentAt.Add(keepEvents).Before(w.OpenedAt) {
				continue
			}
			p.delivered[name] = true
			p.must(ringi.DeliverEvent{Step: w.Step, Event: e})
			return true
		}
	}
	return false
}

// A flight is something that will become of an attempt: its answer, or the end
// of its lease.
type flight struct {
	at     time.Time
	ref    ringi.CallRef
	answer *answer      // nil: nobody answers
	why    ringi.Expiry // then
	slow   bool         // it stands still until somebody lets time pass
}

// handOut gives a task to a worker that has time for it.
func (p *play) handOut(tasks []ringi.TaskRow) bool {
	for _, t := range tasks {
		if t.Held || t.ReadyAt.After(p.now) || p.flies(t) {
			continue
		}
		ref := ringi.CallRef{Step: t.Step, Direction: t.Direction, Attempt: t.Attempt, Token: t.Token(1)}
		if !t.GiveUpAt.IsZero() && !t.GiveUpAt.After(p.now) {
			ref.Token = t.Token(0)
			p.must(ringi.ExpireLease{CallRef: ref, Why: ringi.ExpiryTotal})
			return true
		}
		a, ok := p.answerOf(t)
		if !ok {
			p.differ(p.sc.At, "step %s calls %s, attempt %d, and no answer is scripted for it", callName(t.Step, t.Direction), t.Activity, t.Attempt)
			p.stuck = true
			return true
		}
		p.calls = append(p.calls, call{t.Activity, p.inputs[t.InputSeq]})
		p.handed[t.Seq] = true
		if t.Begin {
			p.must(ringi.BeginActivity{CallRef: ref, Worker: worker})
		}
		p.fly(t, ref, a)
		return true
	}
	return false
}

const worker = "scenario"

func (p *play) flies(t ringi.TaskRow) bool {
	for _, f := range p.flights {
		if f.ref.Step == t.Step && f.ref.Direction == t.Direction && f.ref.Attempt == t.Attempt && ringi.TokenSeq(f.ref.Token) == t.Seq {
			return true
		}
	}
	return false
}

// fly says what becomes of an attempt, and when. Its worker sends heartbeats as
// long as it is there: a lost one sends its first and no other.
func (p *play) fly(t ringi.TaskRow, ref ringi.CallRef, a answer) {
	end := p.now.Add(t.Timeout)
	if !t.TotalAt.IsZero() && t.TotalAt.Before(end) {
		end = t.TotalAt
	}
	switch lease := p.now.Add(t.Heartbeat); {
	case a.lost && lease.Before(end):
		p.flights = append(p.flights, flight{at: lease, ref: ref, why: ringi.ExpiryLease})
	case a.lost:
		p.flights = append(p.flights, flight{at: end, ref: ref, why: ringi.ExpiryAttempt})
	case p.now.Add(a.takes).After(end):
		p.flights = append(p.flights, flight{at: end, ref: ref, why: ringi.ExpiryAttempt, slow: true})
		fallthrough
	default:
		p.flights = append(p.flights, flight{at: p.now.Add(a.takes), ref: ref, answer: &a, slow: a.takes > 0})
	}
}

// nextFlight is the next attempt that something becomes of; with alone, of those
// for which nobody has to let time pass.
func (p *play) nextFlight(alone bool) *flight {
	var first *flight
	for i, f := range p.flights {
		if (first == nil || f.at.Before(first.at)) && !(alone && f.slow) {
			first = &p.flights[i]
		}
	}
	return first
}

// nextReady is when the next task can be handed out, or is given up.
func (p *play) nextReady(tasks []ringi.TaskRow) time.Time {
	var first time.Time
	for _, t := range tasks {
		if !t.Held && !p.flies(t) {
			first = earliest(first, t.ReadyAt, t.GiveUpAt)
		}
	}
	return first
}

// land tells the run what became of an attempt.
func (p *play) land(f flight) {
	p.flights = slices.DeleteFunc(p.flights, func(x flight) bool { return x == f })
	var do ringi.Action
	switch a := f.answer; {
	case a == nil:
		do = ringi.ExpireLease{CallRef: f.ref, Why: f.why, LeaseEnd: f.at}
	case a.failure != nil:
		do = ringi.FailActivity{CallRef: f.ref, Worker: worker, Failure: *a.failure}
	default:
		do = ringi.CompleteActivity{CallRef: f.ref, Worker: worker, Output: a.output}
	}
	by := ringi.Actor{ID: worker, Kind: ringi.System} // it plays the engine's own workers, too
	if f.answer == nil {
		by = ringi.Engine()
	}
	if _, err := p.send(by, do); err != nil {
		p.differ(p.sc.At, "the answer of %s was refused: %v", callName(f.ref.Step, f.ref.Direction), err)
		p.stuck = true
	}
}

// answerOf takes the next answer to a call: by its step, else by its activity.
func (p *play) answerOf(t ringi.TaskRow) (answer, bool) {
	name := callName(t.Step, t.Direction)
	s, ok := p.sc.steps[name]
	if !ok {
		name = t.Activity
		s, ok = p.sc.answers[name]
		name += " of " + t.Step // each step has the list for itself
	}
	if !ok {
		return answer{output: []byte("null")}, t.Direction == ringi.Undo
	}
	i := min(p.used[name], len(s.answers)-1)
	p.used[name]++
	return s.answers[i], true
}

func callName(step string, d ringi.Direction) string {
	if d == ringi.Forward {
		return step
	}
	return step + "/" + string(d)
}
