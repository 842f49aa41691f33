package sim

import (
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/worker"
)

// A hand is a worker of the world. It keeps to what package worker does, in
// pieces that a single goroutine can step through: it polls for as many tasks
// as it has slots, asks to begin where a call must not repeat, confirms a
// hand-over early and extends its leases three times each, ends a call at the
// attempt's time, and reports until it is heard, all that has finished in one
// batch that asks for the next tasks. What fails it reports as that package
// does. A crash takes all of it away; a stall makes it stand still.
type hand struct {
	*sender
	queue   string
	slots   int
	life    int
	up      bool
	stalled time.Time // until then it stands still
	jobs    []*job
	polling bool
	telling bool // a batch of reports is under way
}

// A job is one task in the hands of a worker.
type job struct {
	h       *hand
	life    int
	task    ringi.Task
	started time.Time
	lease   time.Duration // between two heartbeats
	over    bool          // the call has ended: there is a report
	out     bool          // the call goes out, if not at once
	called  bool          // it has gone out
	deaf    bool          // its function does not look at its context
	report  ringi.Action
	dropped bool
}

// The rhythm of a worker, as in package worker.
const (
	firstBeat     = 1500 * time.Millisecond
	beatsPerLease = 3
	longPoll      = 20 * time.Second
)

// engineHandover is the length of a hand-over lease.
const engineHandover = promise.Handover

func newHand(w *world, name, queue string, slots int) *hand {
	h := &hand{sender: newSender(w, name), queue: queue, slots: slots}
	h.gone = func() bool { return false }
	return h
}

// start begins a life of the worker.
func (h *hand) start() {
	if h.up {
		return
	}
	h.life++
	h.up, h.jobs, h.polling, h.telling, h.stalled = true, nil, false, false, time.Time{}
	h.w.tell("%s is up", h.name)
	h.later(0, "poll", h.poll)
}

// name tells the lives of a worker apart, as production does.
func (h *hand) process() string { return fmt.Sprintf("%s-%d", h.name, h.life) }

// crash ends this life: whatever was in memory is gone.
func (h *hand) crash() {
	if !h.up {
		return
	}
	h.up, h.jobs = false, nil
	h.life++
	h.w.after(h.w.order.Span(time.Second, 20*time.Second), "restart of "+h.name, h.start)
}

// later does something in this life of the worker, once it does not stand still.
func (h *hand) later(d time.Duration, what string, do func()) { h.at(h.w.after, d, what, do) }

func (h *hand) at(agenda func(time.Duration, string, func()), d time.Duration, what string, do func()) {
	life := h.life
	var run func()
	run = func() {
		switch {
		case h.life != life || !h.up:
		case h.stalled.After(h.w.now):
			h.w.after(h.stalled.Sub(h.w.now), what+" of "+h.name, run)
		default:
			do()
		}
	}
	agenda(d, what+" of "+h.name, run)
}

// living returns a sender for this life only.
func (h *hand) living() *sender {
	s, life := *h.sender, h.life
	s.gone = func() bool { return h.life != life || !h.up }
	return &s
}

// free counts the slots that nothing is in.
func (h *hand) free() int {
	n := h.slots
	for _, j := range h.jobs {
		if !j.over {
			n--
		}
	}
	if len(h.jobs) >= 2*h.slots {
		return 0
	}
	return max(n, 0)
}

func (h *hand) request(wait time.Duration) ringi.PollRequest {
	return ringi.PollRequest{Worker: h.process(), Queue: h.queue, Activities: draw.Activities(), Max: h.free(), Wait: wait}
}

// poll asks for tasks and waits for them.
func (h *hand) poll() {
	if h.polling || h.free() == 0 {
		return
	}
	h.polling = true
	s, life, answered := h.living(), h.life, false
	arrived := func(tasks []ringi.Task) {
		if answered {
			return
		}
		answered, h.polling = true, false
		h.take(tasks)
		pause := time.Duration(0)
		if len(tasks) == 0 {
			pause = h.w.order.Span(100*time.Millisecond, 2*time.Second)
		}
		h.at(h.w.idly, pause, "poll", h.poll)
	}
	s.send(draw.One(h.w.order, h.w.nodes...), "poll", func(n *node) {
		n.poll(h.request(longPoll), func(tasks []ringi.Task) {
			w := h.w
			if len(tasks) > 0 && w.strikes(fault.PollAnswerLost, 0.05) {
				w.struck(fault.PollAnswerLost, "with %d tasks for %s", len(tasks), h.name)
				return
			}
			s.back(n, "poll", func() { h.awake(life, func() { arrived(tasks) }) })
		})
	})
	h.at(h.w.idly, longPoll+5*time.Second, "end of a poll", func() { arrived(nil) })
}

// awake does something when the worker of that life does not stand still.
func (h *hand) awake(life int, do func()) {
	if h.life != life || !h.up {
		return
	}
	if h.stalled.After(h.w.now) {
		h.later(h.stalled.Sub(h.w.now), "message", do)
		return
	}
	do()
}

// take begins with tasks.
func (h *hand) take(tasks []ringi.Task) {
	for _, t := range tasks {
		j := &job{h: h, life: h.life, task: t, started: h.w.now, lease: t.Heartbeat / beatsPerLease, deaf: !h.w.calm && h.w.actors.Hit(0.15)}
		h.jobs = append(h.jobs, j)
		if t.Timeout > 0 {
			h.later(t.Timeout, "time-out of "+t.Step, func() { j.give(worker.CodeTimedOut, "the attempt's time is up") })
		}
		if h.crashes(fault.WorkerCrashBefore, 0.03) {
			return
		}
		if !t.Begin {
			h.later(min(firstBeat, engineHandover/beatsPerLease), "first heartbeat", j.beat)
			h.later(h.w.actors.Span(0, 20*time.Millisecond), "call of "+t.Step, j.call)
			continue
		}
		j.begin()
	}
}

// crashes draws whether the worker dies at this point of a task.
func (h *hand) crashes(f fault.Kind, p float64) bool {
	if !h.up || !h.w.strikes(f, p) {
		return false
	}
	h.w.struck(f, "%s", h.name)
	h.crash()
	return true
}

// begin asks for permission until it is answered.
func (j *job) begin() {
	h, life := j.h, j.life
	cmd := ringi.Command{Tenant: j.task.Tenant, Run: j.task.Run, Actor: h.actor(), Do: ringi.BeginActivity{CallRef: j.task.CallRef, Worker: h.process()}}
	h.living().do("begin", []ringi.Command{cmd}, func(results []ringi.Result) {
		h.awake(life, func() {
			if j.dropped || j.over {
				return
			}
			if results == nil || results[0].Err != nil || results[0].Answer.Outcome == ringi.Stale {
				j.drop()
				return
			}
			if h.crashes(fault.WorkerCrashBefore, 0.03) {
				return
			}
			h.later(j.lease, "heartbeat", j.beat)
			h.later(0, "call of "+j.task.Step, j.call)
		})
	})
}

func (h *hand) actor() ringi.Actor { return ringi.Actor{ID: h.name, Kind: ringi.Machine} }

// drop forgets a task that is not performed.
func (j *job) drop() {
	j.dropped = true
	j.h.forget(j)
}

func (h *hand) forget(j *job) {
	for i, other := range h.jobs {
		if other == j {
			h.jobs = append(h.jobs[:i:i], h.jobs[i+1:]...)
			break
		}
	}
	h.later(0, "poll", h.poll)
}

// call makes the call. Once it is out it reaches the service whatever becomes
// of the worker, unless nobody waits for it any more.
func (j *job) call() {
	if j.over || j.dropped || j.called {
		return
	}
	h, w := j.h, j.h.w
	if !j.out && w.strikes(fault.WorkerStalled, w.likelyStall(j.task)) { // at the worst moment: with permission, before the call
		j.out = true
		j.deaf = j.deaf || w.faults.Hit(0.6) // it goes on where it stood, whatever happened meanwhile
		w.standStill(h, w.faults.Span(5*time.Second, draw.One(w.faults, time.Minute, 5*time.Minute)))
		h.later(0, "call of "+j.task.Step, j.call)
		return
	}
	j.out, j.called = true, true
	until, back := w.service.length(j.task)
	w.after(until, "service of "+j.task.Step, func() {
		if j.over && j.task.Effect != "idempotent" {
			return // its caller gave up and hung up
		}
		o := w.service.call(j.task)
		w.after(back, "answer to "+h.name, func() {
			h.awake(j.life, func() { j.returned(o) })
		})
	})
	if h.life == j.life {
		h.crashes(fault.WorkerCrashDuring, 0.04)
	}
}

// wake lets a worker that stands still with an earlier attempt of a call go on
// just as the next one is put into its queue.
func (w *world) wake(run ringi.RunID, f ringi.ActivityRetried) {
	for _, h := range w.hands {
		if !h.up || !h.stalled.After(w.now) {
			continue
		}
		for _, j := range h.jobs {
			if j.task.Run != run || j.task.Step != f.Step || j.task.Direction != f.Direction || j.called || !w.strikes(fault.ZombieWoken, 0.7) && !(w.calm && w.shape.zombies) {
				continue
			}
			w.after(w.faults.Span(0, 2*time.Second), "waking of "+h.name, func() {
				if h.life == j.life && h.up {
					h.stalled = w.now
					w.struck(fault.ZombieWoken, "%s with %s of run %s", h.name, f.Step, short(run))
					j.call()
				}
			})
		}
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

// returned is the answer of the service.
func (j *job) returned(o outcome) {
	if j.over || j.dropped {
		return
	}
	if j.h.crashes(fault.WorkerCrashAfter, 0.04) {
		return
	}
	if o.failure != nil {
		j.end(ringi.FailActivity{CallRef: j.task.CallRef, Worker: j.h.process(), Failure: *o.failure})
		return
	}
	j.end(ringi.CompleteActivity{CallRef: j.task.CallRef, Worker: j.h.process(), Output: o.output})
}

// give ends a call whose context has ended. Whether it took place nobody knows,
// unless it never went out.
func (j *job) give(code, message string) {
	switch {
	case j.over || j.dropped || j.deaf && j.out:
		return
	case j.task.Begin && !j.out: // it was never permitted: there is nothing to report
		j.drop()
		return
	}
	f := ringi.Failure{Code: code, Message: message, Retryable: true}
	j.end(ringi.FailActivity{CallRef: j.task.CallRef, Worker: j.h.process(), Failure: f})
}

func (j *job) end(report ringi.Action) {
	j.over, j.report = true, report
	j.h.tellAll()
}

// tellAll reports all that has finished, one batch at a time.
func (h *hand) tellAll() {
	if h.telling {
		return
	}
	var batch []*job
	var commands []ringi.Command
	for _, j := range h.jobs {
		if j.over && !j.dropped {
			batch = append(batch, j)
			commands = append(commands, ringi.Command{Tenant: j.task.Tenant, Run: j.task.Run, Actor: h.actor(), Do: j.report})
		}
	}
	if len(batch) == 0 {
		return
	}
	if free := h.free(); free > 0 && !h.polling {
		want := h.request(0)
		commands[len(commands)-1].Do = wanting(commands[len(commands)-1].Do, &want)
	}
	h.telling = true
	life := h.life
	h.living().do("report", commands, func(results []ringi.Result) {
		h.awake(life, func() {
			h.telling = false
			for i, j := range batch {
				if results != nil {
					h.take(results[i].Tasks)
				}
				j.drop()
			}
			h.tellAll()
		})
	})
}

func wanting(do ringi.Action, want *ringi.PollRequest) ringi.Action {
	switch do := do.(type) {
	case ringi.CompleteActivity:
		do.Want = want
		return do
	case ringi.FailActivity:
		do.Want = want
		return do
	}
	return do
}

// beat extends the lease of a task, until its report was taken.
func (j *job) beat() {
	if j.dropped {
		return
	}
	h, life := j.h, j.life
	s := h.living()
	b := ringi.Beat{Tenant: j.task.Tenant, Run: j.task.Run, CallRef: j.task.CallRef, Worker: h.process()}
	s.send(draw.One(h.w.order, h.w.nodes...), "heartbeat", func(n *node) {
		n.beat([]ringi.Beat{b}, func(answers []ringi.BeatAnswer) {
			s.back(n, "heartbeat", func() {
				h.awake(life, func() { j.beaten(answers[0]) })
			})
		})
	})
	h.later(j.lease, "heartbeat", j.beat)
}

func (j *job) beaten(a ringi.BeatAnswer) {
	switch {
	case j.dropped || j.over:
	case a.Outcome == ringi.Stale:
		j.give(worker.CodeInterrupted, "the attempt is no longer ours")
	case a.Cancel:
		j.give(worker.CodeInterrupted, "the run is being undone or has ended")
	}
}
