package outbox

import (
	"errors"
	"time"
)

// mostSuspects bounds the messages that a relay remembers failures of.
const mostSuspects = 1024

// suspects tell a message that its destination chokes on from a destination that is
// down, when no call says it by itself: in a call in which nothing was taken, a
// failure may be either. What is remembered saves attempts and nothing else; a relay
// that starts anew begins to doubt anew.
type suspects struct {
	took time.Time // when the destination last took something from this relay
	far  farSight  // what the other relays of the fleet saw

	// The last message that failed without a verdict, and when; and when the last
	// other than that one did.
	lastID          string
	lastAt, otherAt time.Time

	of map[string]suspect
}

// farSight is what other relays of the same destination know.
type farSight struct{ took, failed time.Time }

// suspect is a message that failed without a verdict.
type suspect struct {
	first, last time.Time
	tries       int
	turns       int // how often it failed after the destination had taken something since
}

// silent tells whether an error is no verdict about a message: no refusal, nothing
// that asks for patience, no message that was not sent.
func silent(err error) bool {
	return err != nil && !Refused(err) && !Excused(err) && !errors.Is(err, ErrHeld)
}

// note remembers a failure without a verdict.
func (s *suspects) note(id string, now time.Time) suspect {
	if s.lastID != id {
		s.otherAt, s.lastID = s.lastAt, id
	}
	s.lastAt = now
	if s.of == nil || len(s.of) >= mostSuspects {
		s.of = map[string]suspect{}
	}
	was := s.of[id]
	is := was
	if was.tries == 0 {
		is.first = now
	} else if s.took.After(was.last) {
		is.turns++
	}
	is.last, is.tries = now, was.tries+1
	s.of[id] = is
	return is
}

// forget drops a message that is settled.
func (s *suspects) forget(id string) { delete(s.of, id) }

// guilty tells whether a message that failed alone, in a call in which nothing was
// taken, is to be charged with the attempt.
//
// Whatever the error: when the destination took others between its failures, again
// and again. A message that breaks connections is found that way, and a destination
// that is up and down has each message fail once, not always the same.
//
// When the destination answered and failed at this very message (see Blame): when it
// took something after the first failure and nothing but this message failed since;
// or, if there was no other message to tell by, after so long a time that who
// answers must be expected to be well. That time is shorter if others were taken
// when the message failed first. An outage that answers nothing, or fails at several
// messages, never charges any.
func (s *suspects) guilty(id string, err error, now time.Time, attempts int, doubt time.Duration) bool {
	m := s.of[id]
	if m.turns >= 2 {
		return true
	}
	if !Blamed(err) || m.tries < 2 {
		return false
	}
	took := later(s.took, s.far.took)
	since := later(m.first, took)
	other := s.lastAt
	if s.lastID == id {
		other = s.otherAt
	}
	if other.After(since) || s.far.failed.After(since) {
		return false
	}
	switch {
	case took.After(m.first):
		return true
	case took.Equal(m.first):
		doubt /= besidesOthers
	}
	return m.tries >= attempts && now.Sub(m.first) >= doubt
}

// besidesOthers is how many times shorter a message is doubted that failed first
// in a call in which others got through.
const besidesOthers = 6

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
