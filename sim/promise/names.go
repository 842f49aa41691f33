package promise

import (
	"strconv"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

// Incident finds an open incident by its id, or nil.
func Incident(s *ringi.State, id int64) *ringi.Incident {
	for _, i := range s.Incidents {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// StepOf finds the record of a step, or nil.
func StepOf(s *ringi.State, id string) *ringi.Step {
	for _, st := range s.Steps {
		if st.ID == id {
			return st
		}
	}
	return nil
}

// UndoOf finds what the state holds about the undo of a step, or nil.
func UndoOf(s *ringi.State, step string) *ringi.UndoEntry {
	for _, u := range s.Undos {
		if u.Step == step {
			return u
		}
	}
	return nil
}

// Calls lists the open calls of a step in a direction: one or none.
func Calls(s *ringi.State, step string, d ringi.Direction) []*ringi.Call {
	if d == ringi.Undo {
		for _, u := range s.Undos {
			if u.Step == step && u.Call != nil {
				return []*ringi.Call{u.Call}
			}
		}
		return nil
	}
	for _, st := range s.Steps {
		if st.ID != step {
			continue
		}
		if d == ringi.Probe && st.Probe != nil {
			return []*ringi.Call{st.Probe}
		}
		if d == ringi.Forward && st.Call != nil {
			return []*ringi.Call{st.Call}
		}
	}
	return nil
}

// Call names a call of a run.
func Call(step string, d ringi.Direction) string { return step + "/" + string(d) }

// DirectionText names a direction behind the name of a step.
func DirectionText(d ringi.Direction) string {
	if d == ringi.Forward {
		return ""
	}
	return " (" + string(d) + ")"
}

// TokenText writes a token as the event that scheduled it and the hand-out.
func TokenText(token int64) string {
	return Itoa(ringi.TokenSeq(token)) + "." + Itoa(token&0xffff)
}

// Later is the latest of several times.
func Later(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Itoa writes a number.
func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

// MustBegin reports whether a call needs a permission of its own.
func MustBegin(effect string) bool { return effect == "probeable" || effect == "at_most_once" }

// Afterwards reports whether a scope belongs to what follows a failure.
func Afterwards(scope string) bool { return strings.HasPrefix(scope, "on_failure") }
