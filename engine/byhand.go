package engine

import (
	"context"

	"github.com/ringiflow/ringi"
)

// What a caller needs who calls the rounds of the parts itself, from one
// goroutine: the calls of the waist that wait, without waiting. A simulator
// stands on it; whatever it sees is what Do and Poll do, in smaller pieces.

// Submit is Do for one command. It returns at once; then is called with the
// result when that is durable, from within Submit or a later round. If the
// engine is dropped before, it is never called.
func (e *Engine) Submit(ctx context.Context, cmd ringi.Command, then func(ringi.Result)) {
	want := wantOf(cmd.Do)
	if want == nil {
		e.door.send(ctx, []ringi.Command{cmd}, func(_ int, r ringi.Result) { then(r) })
		return
	}
	d := e.parts.dispatch
	w := d.wish(cmd, want)
	e.door.send(ctx, []ringi.Command{cmd}, func(_ int, r ringi.Result) {
		if w != nil {
			r.Tasks = tasksOf(d.grantNow(ctx, w))
		}
		then(r)
	})
}

// grantNow is grant without waiting for what a commit in doubt may still bring:
// that is given back.
func (d *dispatcher) grantNow(ctx context.Context, w *wish) []handOut {
	d.top(ctx, w)
	d.unwish(w)
	d.mu.Lock()
	defer d.mu.Unlock()
	held := w.held
	w.held, w.gone = nil, true
	return held
}

// An Asked is a poll whose caller looks from time to time whether it was
// answered, instead of waiting for it.
type Asked struct {
	d    *dispatcher
	poll *poll
	outs []handOut
	done bool
}

// Ask is Poll without waiting: what is there is in the answer at once, and
// else it stands in line as long as its caller lets it.
func (e *Engine) Ask(ctx context.Context, req ringi.PollRequest) (*Asked, error) {
	if err := e.parts.touch(ctx); err != nil {
		return nil, err
	}
	if err := checkPoll(&req); err != nil {
		return nil, err
	}
	d := e.parts.dispatch
	p, claim, err := d.join(req)
	if err != nil {
		return nil, err
	}
	a := &Asked{d: d, poll: p}
	if !claim {
		return a, nil
	}
	if a.outs, err = d.claimFor(ctx, p); err != nil {
		return nil, err
	}
	d.answered(p, a.outs)
	a.done = len(a.outs) > 0 || req.Wait <= 0
	if !a.done && !d.park(p) {
		return nil, draining()
	}
	return a, nil
}

// Tasks returns what came; done is false while the poll still stands in line.
// An answered poll answers the same again.
func (a *Asked) Tasks() (tasks []ringi.Task, done bool) {
	if !a.done {
		select {
		case a.outs = <-a.poll.got:
			a.done = true
		default:
		}
	}
	return tasksOf(a.outs), a.done
}

// End ends the poll: because its time is over, or with gone because its caller
// went away; what was meant for that one is given back. A poll that is about
// to be filled is answered a little later, see Tasks.
func (a *Asked) End(gone bool) {
	if _, done := a.Tasks(); done {
		if gone {
			a.d.giveBack(a.outs)
			a.outs = nil
		}
		return
	}
	a.done = a.d.quit(a.poll, gone) || gone
}
