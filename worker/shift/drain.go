package shift

import "time"

// LastWord is how long calls have to end after their contexts were ended by a
// worker that stops, and how long their reports then have.
const LastWord = 2 * time.Second

// Stop ends the taking of tasks: nothing more is asked for, and what comes with
// answers under way is still performed. Drain says how it goes on.
func (s *Shift) Stop(now time.Time) {
	if !s.stopped {
		s.stopped, s.stop = true, now
	}
}

// A Phase is how far a worker is that stops.
type Phase int

// The phases, in their order.
const (
	Finishing Phase = iota // calls go on and are reported
	Hurrying               // their contexts end, with ErrStopping
	Over                   // nothing is open, or the time is up
)

// Drain says how far a stopped shift is, and after how long that changes unless
// the last attempt is closed before. It ends all contexts after the time that the
// configuration leaves them, and itself LastWord later.
func (s *Shift) Drain(now time.Time) (p Phase, in time.Duration) {
	end := s.stop.Add(s.config.Drain)
	switch {
	case s.open == 0 || !now.Before(end.Add(LastWord)):
		return Over, 0
	case now.Before(end):
		return Finishing, end.Sub(now)
	}
	return Hurrying, end.Add(LastWord).Sub(now)
}
