package shift

import (
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// BeatTimeout ends a heartbeat that is not answered, so that the next still
	// comes in time.
	BeatTimeout = 5 * time.Second
	// firstBeat is when a task that still runs is confirmed: the engine wants it
	// within two seconds of the hand-over.
	firstBeat = 1500 * time.Millisecond
	// beatsPerLease leaves room for two that get lost.
	beatsPerLease = 3
	// beatsTogether is how much earlier than due a beat may go along with others.
	beatsTogether = 250 * time.Millisecond
	// beatAgain is the pause after a heartbeat that failed.
	beatAgain = time.Second
	// defaultLease is the lease of a task that names none.
	defaultLease = 30 * time.Second
)

// beatEvery is the time between two heartbeats of a task.
func beatEvery(t ringi.Task) time.Duration {
	if t.Heartbeat <= 0 {
		return defaultLease / beatsPerLease
	}
	return t.Heartbeat / beatsPerLease
}

// handOver is when a hand-over is confirmed.
func handOver(lease time.Duration) time.Duration {
	if lease <= 0 {
		return firstBeat
	}
	return min(firstBeat, lease/beatsPerLease)
}

// hold begins to extend the lease of an attempt. One that was permitted to begin
// is confirmed already; another is confirmed by its first beat.
func (s *Shift) hold(a *Attempt, due time.Time) {
	a.every, a.due, a.held = beatEvery(a.Task), due, true
	if a.prev = s.last; s.last == nil {
		s.first = a
	} else {
		s.last.next = a
	}
	s.last = a
}

// release ends it.
func (s *Shift) release(a *Attempt) {
	if !a.held {
		return
	}
	if a.prev == nil {
		s.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		s.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.prev, a.next, a.held, a.due = nil, nil, false, time.Time{}
}

// A Round is one heartbeat for several attempts.
type Round struct {
	Beats    []ringi.Beat // to send, within BeatTimeout
	attempts []*Attempt
}

// Beat says whose leases to extend now: all that are due or nearly so, in one
// call. If there are none (nil), it is to be called again after in, and when an
// attempt has come that is due before. One round is under way at a time.
func (s *Shift) Beat(now time.Time) (r *Round, in time.Duration) {
	in = Never
	if s.beating {
		return nil, in
	}
	for a := s.first; a != nil; a = a.next {
		in = min(in, a.due.Sub(now))
	}
	if in > 0 {
		return nil, in
	}
	r = &Round{}
	for a := s.first; a != nil; a = a.next {
		if a.due.Sub(now) <= min(beatsTogether, a.every/2) {
			r.attempts = append(r.attempts, a)
			r.Beats = append(r.Beats, ringi.Beat{Tenant: a.Task.Tenant, Run: a.Task.Run, CallRef: a.Task.CallRef, Worker: s.config.Worker})
		}
	}
	s.beating = true
	return r, 0
}

// An Ending says that the context of a call is to end, and why.
type Ending struct {
	Attempt *Attempt
	Cause   error // ErrLeaseLost or ErrCancelled
}

// Beaten takes in the answers to a round, one for each beat, or why there are
// none. It returns whose contexts end: the lease of one that is no longer its
// worker's is not extended again, and nobody but the server says that it is lost.
func (s *Shift) Beaten(r *Round, answers []ringi.BeatAnswer, err error, now time.Time) (endings []Ending) {
	s.beating = false
	for i, a := range r.attempts {
		switch {
		case !a.held: // its report was taken meanwhile
		case err != nil:
			a.due = now.Add(min(a.every, beatAgain))
		case answers[i].Outcome == ringi.Stale:
			s.release(a)
			endings = append(endings, Ending{a, ErrLeaseLost})
		default:
			a.due = now.Add(a.every)
			if answers[i].Cancel {
				endings = append(endings, Ending{a, ErrCancelled})
			}
		}
	}
	return endings
}
