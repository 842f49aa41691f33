package sim

import (
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/fault"
)

// wake lets workers that stand still with calls of a run go on at a bad moment.
func (w *world) wake(run ringi.RunID, likely float64, is func(*job) bool) {
	for _, h := range w.hands {
		if !h.up || !h.stalled.After(w.now) {
			continue
		}
		for _, j := range h.jobs {
			if j.Task.Run != run || j.called || !is(j) || !w.strikes(fault.ZombieWoken, likely) && !(w.calm && w.shape.zombies) {
				continue
			}
			w.after(w.faults.Span(0, 2*time.Second), "waking of "+h.name, func() {
				if h.life == j.life && h.up {
					h.stalled = w.now
					w.struck(fault.ZombieWoken, "%s with %s of run %s", h.name, j.Task.Step, short(run))
					j.call()
				}
			})
		}
	}
}

// tempting wakes workers at the moments at which a late success does most: an
// attempt is made once more, a step has ended otherwise, a person is asked about
// an undo, and the run is at its end.
func (w *world) tempting(run ringi.RunID, f ringi.Fact) {
	of := func(step string) func(*job) bool {
		return func(j *job) bool {
			return j.Task.Direction == ringi.Forward && (step == "" || j.Task.Step == step)
		}
	}
	switch f := f.(type) {
	case ringi.ActivityRetried:
		w.wake(run, 0.7, func(j *job) bool { return j.Task.Step == f.Step && j.Task.Direction == f.Direction })
	case ringi.StepEnded:
		if f.Outcome != ringi.Succeeded {
			w.wake(run, 0.3, of(f.Step))
		}
	case ringi.IncidentOpened:
		if f.Incident.Kind == ringi.IncidentUndo {
			w.wake(run, 0.7, of(""))
		}
	case ringi.RunEnded:
		w.wake(run, 0.7, of(""))
	}
}

// likelyStall is how likely a worker stands still between its permission and the
// call. In a world of zombies most do where others may decide meanwhile what
// became of it.
func (w *world) likelyStall(t ringi.Task) float64 {
	if w.shape.zombies && t.Begin && t.Direction == ringi.Forward {
		return 0.7
	}
	return 0.03
}
