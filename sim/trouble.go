package sim

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/store"
)

// trouble lets one of the larger things break.
func (w *world) trouble() {
	d := w.faults
	n := w.nodes[d.Below(len(w.nodes))]
	h := w.busyHand()
	if w.strength[fault.RestoreOverslept] > 0 && d.Hit(0.15) {
		w.restore()
	}
	switch d.Below(14) {
	case 0:
		if n.up && w.strikes(fault.NodeCrash, 0.8) {
			w.struck(fault.NodeCrash, "%s", n.name)
			n.crash()
		}
	case 1, 11, 12, 13:
		w.stall(h)
	case 2:
		w.jump()
	case 3:
		w.rest(n)
	case 4:
		if w.strikes(fault.ClockDrift, 0.7) {
			w.struck(fault.ClockDrift, "%s", n.name)
			n.clock.set(0, draw.One(d, 0.96, 1.04, 1))
		}
	case 5:
		if w.strikes(fault.StoreOutage, 0.7) && !w.storeDown() {
			w.outage(fault.StoreOutage, d.Span(100*time.Millisecond, 8*time.Second))
		}
	case 6:
		if w.strikes(fault.StoreOutageLong, 0.5) && !w.storeDown() {
			w.outage(fault.StoreOutageLong, d.Span(35*time.Second, 3*time.Minute))
		}
	case 7:
		if n.up && w.strikes(fault.StoreCut, 0.7) {
			w.struck(fault.StoreCut, "%s", n.name)
			n.cut = true
			life := n.life
			w.after(d.Span(time.Second, 50*time.Second), "end of the cut of "+n.name, func() {
				if n.life == life {
					n.cut = false
				}
			})
		}
	case 8:
		w.restore()
	case 9:
		if w.depth == 0 && w.shape.batch > 100 && w.count.faults[string(fault.EvidenceFlood)] == 0 && w.strikes(fault.EvidenceFlood, 0.3) {
			w.crowd.flood()
		}
	case 10:
		h.stop()
		h.crashes(fault.WorkerCrashBefore, 0.3)
	}
}

// busyHand is a worker that has something in its hands, if there is one.
func (w *world) busyHand() *hand {
	h := w.hands[w.faults.Below(len(w.hands))]
	for range len(w.hands) {
		if h.up && len(h.jobs) > 0 {
			break
		}
		h = w.hands[w.faults.Below(len(w.hands))]
	}
	return h
}

func (w *world) outage(f fault.Kind, length time.Duration) {
	w.struck(f, "for %s", clockText(length))
	w.downUntil = w.now.Add(length)
}

// rest lets a node stand still, with or without its clock.
func (w *world) rest(n *node) {
	if !n.up || w.depth > 0 || n.asleep.After(w.now) {
		return
	}
	length := w.faults.Span(time.Second, draw.One(w.faults, 4*time.Second, 30*time.Second, 3*time.Minute))
	switch {
	case w.strikes(fault.NodeStalled, 0.6):
		w.struck(fault.NodeStalled, "%s for %s", n.name, clockText(length))
		n.asleep = w.now.Add(length)
	case w.strikes(fault.NodeSuspended, 0.6):
		w.struck(fault.NodeSuspended, "%s for %s", n.name, clockText(length))
		n.asleep = w.now.Add(length)
		n.clock.set(-length, n.clock.speed)
	}
}

// stall lets a worker stand still with what it has in its hands.
func (w *world) stall(h *hand) {
	if !h.up || len(h.jobs) == 0 || !w.strikes(fault.WorkerStalled, 0.9) {
		return
	}
	w.standStill(h, w.faults.Span(time.Second, draw.One(w.faults, 10*time.Second, time.Minute, 4*time.Minute)))
}

// standStill stops a worker for some time, and looks what it wakes up to.
func (w *world) standStill(h *hand, length time.Duration) {
	w.struck(fault.WorkerStalled, "%s for %s", h.name, clockText(length))
	h.stalled = w.now.Add(length)
	life, jobs := h.life, append([]*job(nil), h.jobs...)
	w.after(length, "waking of "+h.name, func() {
		if h.life != life || !h.up {
			return
		}
		for _, j := range jobs {
			if sh := w.watch.of(j.Task.Tenant, j.Task.Run); sh != nil && !w.service.permitted(j.Task) {
				w.struck(fault.ZombieWoken, "%s with %s of run %s", h.name, j.Task.Step, short(j.Task.Run))
				return
			}
		}
	})
}

// jump sets the database's clock.
func (w *world) jump() {
	if !w.strikes(fault.ClockJump, 0.7) {
		return
	}
	d := w.faults
	by := draw.One(d, d.Span(0, 1900*time.Millisecond), d.Span(3*time.Second, 2*time.Minute), d.Span(0, time.Hour))
	if d.Hit(0.5) {
		by = -by
	}
	w.struck(fault.ClockJump, "of the database by %s", by)
	w.db.clock.set(by, 1)
	if by.Abs() > 2*time.Second { // less is taken for a reading that was under way
		w.db.jumped = w.now
	}
}

// restore takes a backup, or comes back to the one that was taken.
func (w *world) restore() {
	memory, ok := w.db.Driver.(*store.Memory)
	switch {
	case w.strength[fault.StoreRestored]+w.strength[fault.RestoreOverslept] == 0 || !ok:
	case w.db.backup == nil || w.faults.Hit(0.5):
		w.db.backup = memory.Copy("backup")
	case w.depth == 0 && (w.strikes(fault.StoreRestored, 0.5) || w.strikes(fault.RestoreOverslept, 0.5)):
		s := w.oversleep()
		w.db.restore()
		w.timers.seen = nil // who found them knows that it was in another database
		w.sleepOn(s)
	}
}

// A sleeper is a node that sleeps through a restore, with what it knows of runs.
type sleeper struct {
	node *node
	life int
	ends map[store.Key]int64 // where each run ended before
}

// oversleep chooses a node that sleeps through what comes now, or none.
func (w *world) oversleep() *sleeper {
	n := draw.One(w.faults, w.nodes...)
	if len(w.nodes) < 2 || !n.awake() || !w.strikes(fault.RestoreOverslept, 0.9) {
		return nil
	}
	s := &sleeper{node: n, life: n.life, ends: map[store.Key]int64{}}
	for _, sh := range w.watch.all() {
		s.ends[sh.key] = sh.state.Seq
	}
	return s
}

// sleepOn puts the sleeper to sleep if runs have lost events meanwhile.
func (w *world) sleepOn(s *sleeper) {
	if s == nil {
		return
	}
	for _, sh := range w.watch.all() {
		if sh.state.Seq >= s.ends[sh.key] {
			delete(s.ends, sh.key)
		}
	}
	if len(s.ends) > 0 {
		w.sleeper, s.node.asleep = s, w.now.Add(10*time.Minute)
	}
}

// overslept wakes the sleeper by a command for a run that has become as long
// again as it was, by another history.
func (w *world) overslept() {
	s := w.sleeper
	if s == nil {
		return
	}
	if s.node.life != s.life || !s.node.up || s.node.awake() {
		w.sleeper = nil
		return
	}
	i := slices.IndexFunc(w.watch.order, func(sh *shadow) bool { return sh.state.Seq == s.ends[sh.key] && sh.state.End == nil })
	if i < 0 {
		return
	}
	sh := w.watch.order[i]
	w.sleeper = nil
	w.struck(fault.RestoreOverslept, "node %s, which knows another history of run %s", s.node.name, short(sh.key.Run))
	s.node.asleep = w.now
	op := ringi.Actor{ID: "op", Kind: ringi.Machine}
	cmd := ringi.Command{Tenant: sh.key.Tenant, Run: sh.key.Run, Actor: op, Do: ringi.Pause{Reason: "just then"}}
	s.node.do([]ringi.Command{cmd}, func([]ringi.Result) {})
	for _, p := range s.node.parts {
		if p.name == "committer" && !p.busy {
			p.round()
		}
	}
}

// tempt lets a worker extend its lease just as a sweep takes it for lost, and an
// operator do something just then.
func (w *world) tempt(d store.DueTask) {
	w.meddle(d.Key.Run)
	if !d.Leased || !w.strikes(fault.HeartbeatRace, 0.8) {
		return
	}
	for _, h := range w.hands {
		for _, j := range h.jobs {
			if j.Task.Run == d.Key.Run && j.Task.Token == d.Token {
				w.after(0, "heartbeat at the last moment", func() { w.lastBeat(j) })
			}
		}
	}
}

func (w *world) lastBeat(j *job) {
	n := draw.One(w.order, w.nodes...)
	if !n.awake() || !j.Open() {
		return
	}
	b := ringi.Beat{Tenant: j.Task.Tenant, Run: j.Task.Run, CallRef: j.Task.CallRef, Worker: j.h.process()}
	n.beat([]ringi.Beat{b}, func(answers []ringi.BeatAnswer) {
		if answers[0].Outcome == ringi.Accepted {
			w.struck(fault.HeartbeatRace, "%s of run %s", j.Task.Step, short(j.Task.Run))
		}
	})
}

// meddle lets an operator do something to a run at this very moment.
func (w *world) meddle(run ringi.RunID) {
	if !w.strikes(fault.OperatorRace, 0.25) {
		return
	}
	w.struck(fault.OperatorRace, "run %s", short(run))
	op := ringi.Actor{ID: "op", Kind: ringi.Machine}
	hasten := func(d time.Duration, do ringi.Action) {
		cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: run, Actor: op, Do: do}
		w.after(d, "operator at that moment", func() {
			if n := draw.One(w.order, w.nodes...); n.awake() {
				n.do([]ringi.Command{cmd}, func([]ringi.Result) {})
			}
		})
	}
	if w.faults.Hit(0.2) {
		hasten(0, ringi.Cancel{Reason: "just then"})
		return
	}
	hasten(0, ringi.Pause{Reason: "just then"})
	if w.faults.Hit(0.6) {
		hasten(0, ringi.Resume{Reason: "just then"})
	}
}
