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
	case ringi.LateEffectFound:
		w.echo(run, f.Step)
	case ringi.RunEnded:
		w.wake(run, 0.7, of(""))
	}
}

// hesitates reports whether a worker lets some time pass before it asks whether it may
// make an attempt. Then one that stands still with an attempt before may have its
// success first.
func (w *world) hesitates(j *job) bool {
	if j.Task.Direction != ringi.Forward || j.Task.Attempt == 1 || !w.strikes(fault.ZombieWoken, 0.5) {
		return false
	}
	w.wake(j.Task.Run, 1, func(z *job) bool {
		return z.Task.Step == j.Task.Step && z.Task.Direction == ringi.Forward && z.Task.Attempt < j.Task.Attempt
	})
	return true
}

// echo lets a second worker find out late that it succeeded, when the success of
// another one is being undone although its run has ended: with an attempt before,
// or with the same one.
func (w *world) echo(repair ringi.RunID, step string) {
	sh := w.watch.of(ringi.DefaultTenant, repair)
	if sh == nil || sh.state.RepairOf == "" || !w.strikes(fault.ZombieWoken, 0.5) && !(w.calm && w.shape.zombies) {
		return
	}
	of := w.watch.of(ringi.DefaultTenant, sh.state.RepairOf)
	if of == nil || of.rewound {
		return
	}
	var first *ringi.CallRef
	for seq, asks := range of.Asks {
		if asks.Step == step && asks.Direction == ringi.Forward && (first == nil || ringi.TokenSeq(first.Token) > seq) {
			first = &ringi.CallRef{Step: step, Attempt: asks.Attempt, Token: seq<<16 + 1}
		}
	}
	if first == nil {
		return
	}
	w.struck(fault.ZombieWoken, "with %s of run %s, which has ended", step, short(of.key.Run))
	late := ringi.CompleteActivity{CallRef: *first, Worker: "a late worker", Output: []byte(`{"id":"late","n":1}`)}
	w.crowd.send(ringi.Actor{ID: "a late worker", Kind: ringi.Machine}, of.key.Run, late, nil)
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
