package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// A wish is what a report wants with its answer. It stands in line while the
// report is decided, so that the tasks which that makes, and others meanwhile,
// are born under its lease, and it never waits beyond that. Unlike a poll it can
// be filled by several commits. Its fields from held on are the dispatcher's.
type wish struct {
	at     int                // of its command
	of     *ringi.PollRequest // as it stands in its command
	req    ringi.PollRequest
	line   *line
	ticket uint64
	done   chan struct{} // closed when it is out of line and nothing more is promised

	held     []handOut
	promised int  // tasks that a commit or a claim under way may add
	over     bool // out of line
	gone     bool // its caller went away

	until time.Time // of a rest: when it ends; else zero
}

// room is how many more tasks it can be promised.
func (w *wish) room() int { return w.req.Max - len(w.held) - w.promised }

// doWanting sends commands of which some want tasks with their answer.
func (e *Engine) doWanting(ctx context.Context, commands []ringi.Command) []ringi.Result {
	var wishes []*wish
	for i, cmd := range commands {
		if want := wantOf(cmd.Do); want != nil {
			if w := e.parts.dispatch.wish(cmd, want); w != nil {
				w.at = i
				wishes = append(wishes, w)
			}
		}
	}
	results := e.door.Do(ctx, commands...)
	for _, w := range wishes {
		results[w.at].Tasks = tasksOf(e.parts.dispatch.grant(ctx, w))
	}
	return results
}

// wantOf is what a command wants with its answer; nil for nothing.
func wantOf(do ringi.Action) *ringi.PollRequest {
	switch do := do.(type) {
	case ringi.CompleteActivity:
		return do.Want
	case ringi.FailActivity:
		return do.Want
	}
	return nil
}

func anyWants(commands []ringi.Command) bool {
	for _, cmd := range commands {
		if wantOf(cmd.Do) != nil {
			return true
		}
	}
	return false
}

// wish puts one into its line. It returns nil when there can be none: a report
// counts whatever becomes of the wish.
func (d *dispatcher) wish(cmd ringi.Command, of *ringi.PollRequest) *wish {
	req := *of
	req.Tenant, req.Actor, req.Wait = cmd.Tenant, cmd.Actor, 0
	if checkPoll(&req) != nil {
		return nil
	}
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining || d.waiting >= mostPolls {
		return nil
	}
	d.seen.Polled(req, now)
	d.ticket++
	w := &wish{of: of, req: req, line: d.line(req, now), ticket: d.ticket, done: make(chan struct{})}
	w.held = d.collect(w.line, req)
	w.line.wishes = append(w.line.wishes, w)
	d.waiting++
	return w
}

// grant ends a wish: it gets what was meant for it, and what stood ready before.
func (d *dispatcher) grant(ctx context.Context, w *wish) []handOut {
	d.top(context.WithoutCancel(ctx), w)
	if d.unwish(w) {
		select {
		case <-w.done:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := w.held
	w.held, w.gone = nil, ctx.Err() != nil
	if w.gone {
		d.putBack(held)
		return nil
	}
	return held
}

// top claims for the room that a wish has left, if there may be something. It
// stays in line meanwhile, so that what is made ready during the claim is not
// the next one's reason to claim.
func (d *dispatcher) top(ctx context.Context, w *wish) {
	if d.fleet.outdated() != nil {
		return
	}
	now := d.clock.Now()
	d.mu.Lock()
	n := w.line.ready.Bound(w.room())
	if n <= 0 || d.draining || !w.line.ready.MayHold(now) {
		d.mu.Unlock()
		return
	}
	w.promised += n
	d.mu.Unlock()
	req := w.req
	req.Max = n
	outs, err := d.claim(ctx, w.line, req)
	d.mu.Lock()
	defer d.mu.Unlock()
	w.promised -= n
	if err == nil { // else the next poll shows what is wrong; the reports were taken
		w.held = append(w.held, outs...)
	}
}

// unwish takes a wish out of its line, with its rest in its place, and reports
// whether something is still promised to it.
func (d *dispatcher) unwish(w *wish) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(w.line.wishes, w); i >= 0 {
		w.line.wishes = slices.Delete(w.line.wishes, i, i+1)
		d.waiting--
	}
	w.over = true
	d.leave(w.line, w.req, len(w.held)+w.promised)
	return w.promised > 0
}

// fulfil gives a wish what a commit has made true of so many promised tasks. The
// caller holds the lock.
func (d *dispatcher) fulfil(w *wish, promised int, outs []handOut) {
	w.promised -= promised
	if w.gone {
		d.putBack(outs)
	} else {
		w.held = append(w.held, outs...)
	}
	if w.rest() {
		w.req.Max -= promised - len(outs)
		d.forward(w)
	}
	if w.over && w.promised == 0 {
		close(w.done)
	}
}
