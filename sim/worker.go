package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/worker/shift"
)

// A hand is a worker of the world. What it does and when is decided by the shift
// of production; the hand is the network and the functions around it, in pieces
// that a single goroutine can step through. A crash takes all of it away; a stall
// makes it stand still; told to stop it finishes what it has.
type hand struct {
	*sender
	queue    string
	slots    int
	life     int
	up       bool
	stopping bool
	stalled  time.Time // until then it stands still
	shift    *shift.Shift
	jobs     []*job
	turns    map[string]time.Time // when it looks next for what is due, by what
}

// A job is one attempt in the hands of a worker, with its function.
type job struct {
	*shift.Attempt
	h      *hand
	life   int
	asking bool // for permission
	over   bool // the call has ended, or there will be none
	out    bool // the call goes out, if not at once
	called bool // it has gone out
	deaf   bool // its function does not look at its context
}

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
	h.up, h.stopping, h.jobs, h.turns, h.stalled = true, false, nil, map[string]time.Time{}, time.Time{}
	h.shift = shift.New(shift.Config{
		Worker: h.process(), Tenant: ringi.DefaultTenant, Actor: ringi.Actor{ID: h.name, Kind: ringi.Machine}, Drain: 30 * time.Second,
		Queues: []shift.Queue{{Name: h.queue, Slots: h.slots, Activities: draw.Activities()}},
	})
	h.w.tell("%s is up", h.name)
	h.later(0, "begin", h.turn)
}

// process tells the lives of a worker apart, as production does.
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

// crashes draws whether the worker dies at this point of a task.
func (h *hand) crashes(f fault.Kind, p float64) bool {
	if !h.up || !h.w.strikes(f, p) {
		return false
	}
	h.w.struck(f, "%s", h.name)
	h.crash()
	return true
}

// stop tells the worker to finish what it has and to end.
func (h *hand) stop() {
	if !h.up || h.stopping || h.shift.Open() == 0 || h.stalled.After(h.w.now) || !h.w.strikes(fault.WorkerStopped, 0.8) {
		return
	}
	h.w.struck(fault.WorkerStopped, "%s", h.name)
	h.stopping = true
	h.shift.Stop(h.w.now)
	h.turn()
}

// later does something in this life of the worker, once it does not stand still.
func (h *hand) later(d time.Duration, what string, do func()) { h.at(h.w.after, d, what, do) }

func (h *hand) at(agenda func(time.Duration, string, func()), d time.Duration, what string, do func()) {
	life := h.life
	agenda(d, what+" of "+h.name, func() { h.awake(life, what, do) })
}

// awake does something when the worker of that life does not stand still.
func (h *hand) awake(life int, what string, do func()) {
	switch {
	case h.life != life || !h.up:
	case h.stalled.After(h.w.now):
		h.w.after(h.stalled.Sub(h.w.now), what+" of "+h.name, func() { h.awake(life, what, do) })
	default:
		do()
	}
}

// living returns a sender for this life only.
func (h *hand) living() *sender {
	s, life := *h.sender, h.life
	s.gone = func() bool { return h.life != life || !h.up }
	return &s
}

// once makes one of two things happen to a call: its answer comes, or the patience
// with it ends. Both are to be heard by a worker that is awake.
func (h *hand) once() func(what string, do func()) {
	done, life := false, h.life
	return func(what string, do func()) {
		h.awake(life, what, func() {
			if !done {
				done = true
				do()
				h.turn()
			}
		})
	}
}

// turn does all that is due by the shift, and looks again when more will be.
func (h *hand) turn() {
	if !h.up {
		return
	}
	now := h.w.now
	h.jobs = slices.DeleteFunc(h.jobs, func(j *job) bool { return !j.Open() })
	for {
		b, in := h.shift.Report(now)
		if b == nil {
			h.again(h.w.after, "report", in)
			break
		}
		h.report(b)
	}
	if r, in := h.shift.Beat(now); r != nil {
		h.beat(r)
	} else {
		h.again(h.w.after, "heartbeat", in)
	}
	if req, in := h.shift.Poll(0, now); req.Max > 0 {
		h.poll(req)
	} else {
		h.again(h.w.idly, "poll", in)
	}
	if h.stopping {
		h.end()
	}
}

// again takes a turn after some time, unless one comes before.
func (h *hand) again(agenda func(time.Duration, string, func()), what string, in time.Duration) {
	at := h.w.now.Add(in)
	if next := h.turns[what]; in == shift.Never || next.After(h.w.now) && !next.After(at) {
		return
	}
	h.turns[what] = at
	h.at(agenda, in, what, h.turn)
}

// end is how far a worker is that was told to stop.
func (h *hand) end() {
	phase, in := h.shift.Drain(h.w.now)
	switch phase {
	case shift.Over:
		h.w.tell("%s ends, with %d attempts open", h.name, h.shift.Open())
		h.crash()
		return
	case shift.Hurrying:
		for _, j := range h.jobs {
			j.interrupt(shift.ErrStopping)
		}
	}
	h.again(h.w.after, "stop", in)
}

// poll asks for tasks and waits for them.
func (h *hand) poll(req ringi.PollRequest) {
	w, s, began, once := h.w, h.living(), h.w.now, h.once()
	answered := func(tasks []ringi.Task, err error) {
		once("poll", func() { h.take(h.shift.Polled(0, req.Max, tasks, err, began, w.now)) })
	}
	s.send(draw.One(w.order, w.nodes...), "poll", func(n *node) {
		n.poll(req, func(tasks []ringi.Task) {
			if len(tasks) > 0 && w.strikes(fault.PollAnswerLost, 0.05) {
				w.struck(fault.PollAnswerLost, "with %d tasks for %s", len(tasks), h.name)
				return
			}
			s.back(n, "poll", func() { answered(tasks, nil) })
		})
	})
	h.at(w.idly, shift.LongPoll+5*time.Second, "end of a poll", func() { answered(nil, errUnheard) })
}

// errUnheard is what became of a call that nobody answered in time.
//
// constant: only read
var errUnheard error = &ringi.Error{Code: ringi.CodeUnavailable, Message: "no answer"}

// ask sends commands once, and hears their results or, after some time, none.
func (h *hand) ask(what string, commands []ringi.Command, then func([]ringi.Result)) {
	s, once := h.living(), h.once()
	s.send(draw.One(h.w.order, h.w.nodes...), what, func(n *node) {
		n.do(commands, func(results []ringi.Result) {
			s.back(n, what, func() { once(what, func() { then(results) }) })
		})
	})
	h.later(patience, "patience with "+what, func() { once(what, func() { then(nil) }) })
}

// report sends what has finished.
func (h *hand) report(b *shift.Batch) {
	h.ask("report", b.Commands, func(results []ringi.Result) {
		attempts, _ := h.shift.Reported(b, results, h.w.now)
		h.take(attempts)
	})
}

// beat extends leases.
func (h *hand) beat(r *shift.Round) {
	s, once := h.living(), h.once()
	answered := func(answers []ringi.BeatAnswer, err error) {
		once("heartbeat", func() {
			for _, e := range h.shift.Beaten(r, answers, err, h.w.now) {
				e.Attempt.End(e.Cause)
			}
		})
	}
	s.send(draw.One(h.w.order, h.w.nodes...), "heartbeat", func(n *node) {
		n.beat(r.Beats, func(answers []ringi.BeatAnswer) {
			s.back(n, "heartbeat", func() { answered(answers, nil) })
		})
	})
	h.later(shift.BeatTimeout, "end of a heartbeat", func() { answered(nil, errUnheard) })
}

// take performs attempts.
func (h *hand) take(attempts []*shift.Attempt) {
	for _, a := range attempts {
		j := &job{Attempt: a, h: h, life: h.life, deaf: !h.w.calm && h.w.actors.Hit(0.15)}
		h.jobs = append(h.jobs, j)
		a.End = j.interrupt
		if at, ok := a.Deadline(); ok {
			h.later(at.Sub(h.w.now), "time-out of "+a.Task.Step, func() { j.interrupt(shift.ErrTimeout) })
		}
		switch {
		case h.crashes(fault.WorkerCrashBefore, 0.03):
			return
		case a.Asks() && h.w.hesitates(j):
			j.asking = true
			h.later(h.w.faults.Span(0, 3*time.Second), "begin", j.stillAsks)
		case a.Asks():
			j.begin()
		default:
			h.later(h.w.actors.Span(0, 20*time.Millisecond), "call of "+a.Task.Step, j.call)
		}
	}
}

// begin asks for permission.
func (j *job) begin() {
	j.asking = true
	j.h.ask("begin", []ringi.Command{j.h.shift.Begin(j.Attempt)}, func(results []ringi.Result) {
		if j.asking {
			j.begun(append(results, ringi.Result{Err: errUnheard})[0], false)
		}
	})
}

// begun is the answer, or the end of the context in which it was asked for.
func (j *job) begun(res ringi.Result, ended bool) {
	h := j.h
	switch verdict, in, _ := h.shift.Begun(j.Attempt, res, ended, h.w.now); verdict {
	case shift.Call:
		j.asking = false
		if !h.crashes(fault.WorkerCrashBefore, 0.03) {
			h.later(0, "call of "+j.Task.Step, j.call)
		}
	case shift.Forget:
		j.asking, j.over = false, true
	case shift.Again:
		h.later(in, "begin again", j.stillAsks)
	}
}

// stillAsks asks unless the context ended meanwhile.
func (j *job) stillAsks() {
	if j.asking {
		j.begin()
	}
}

// call makes the call. Once it is out it reaches the service whatever becomes
// of the worker, unless nobody waits for it any more.
func (j *job) call() {
	if j.over || j.called {
		return
	}
	h, w := j.h, j.h.w
	if !j.out && w.strikes(fault.WorkerStalled, w.likelyStall(j.Task)) { // at the worst moment: with permission, before the call
		j.out = true
		j.deaf = j.deaf || w.faults.Hit(0.6) // it goes on where it stood, whatever happened meanwhile
		w.standStill(h, w.faults.Span(5*time.Second, draw.One(w.faults, time.Minute, 5*time.Minute)))
		h.later(0, "call of "+j.Task.Step, j.call)
		return
	}
	j.out, j.called = true, true
	until, back := w.service.length(j.Task)
	w.after(until, "service of "+j.Task.Step, func() {
		if j.over && j.Task.Effect != "idempotent" {
			return // its caller gave up and hung up
		}
		o := w.service.call(j.Task)
		w.after(back, "answer to "+h.name, func() {
			h.awake(j.life, "answer", func() { j.returned(o) })
		})
	})
	if h.life == j.life {
		h.crashes(fault.WorkerCrashDuring, 0.04)
	}
}

// returned is the answer of the service.
func (j *job) returned(o outcome) {
	if j.over || j.h.crashes(fault.WorkerCrashAfter, 0.04) {
		return
	}
	j.over = true
	if o.failure != nil {
		j.h.shift.Failed(j.Attempt, *o.failure)
	} else {
		j.h.shift.Succeeded(j.Attempt, o.output)
	}
	j.h.turn()
}

// interrupt ends the context of a call. Whether it took place nobody knows; a
// function that does not look at its context goes on.
func (j *job) interrupt(cause error) {
	switch {
	case j.over || j.deaf && j.out:
		return
	case j.asking:
		j.begun(ringi.Result{Err: errUnheard}, true)
	default:
		j.over = true
		j.h.shift.Failed(j.Attempt, shift.Unexplained("context canceled", cause))
	}
	j.h.later(0, "turn", j.h.turn)
}
