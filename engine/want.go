package engine

import (
	"context"

	"github.com/ringiflow/ringi"
)

// A wish is a poll that came along with a report: it stands in line while the
// report is decided, so that the task which the report makes is born under its
// lease, and it never waits beyond that.
type wish struct {
	at   int // of its command
	poll *poll
}

// doWanting sends commands of which some want tasks with their answer.
func (e *Engine) doWanting(ctx context.Context, commands []ringi.Command) []ringi.Result {
	var wishes []wish
	for i, cmd := range commands {
		if want := wantOf(cmd.Do); want != nil {
			if p := e.parts.dispatch.wish(cmd.Tenant, *want); p != nil {
				wishes = append(wishes, wish{at: i, poll: p})
			}
		}
	}
	results := e.door.Do(ctx, commands...)
	for _, w := range wishes {
		results[w.at].Tasks = tasksOf(e.parts.dispatch.grant(ctx, w.poll))
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

// wish puts a poll into its line. It returns nil when there can be none: a
// report counts whatever becomes of the wish.
func (d *dispatcher) wish(tenant ringi.Tenant, req ringi.PollRequest) *poll {
	req.Tenant, req.Wait = tenant, 0
	if checkPoll(&req) != nil {
		return nil
	}
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining || d.waiting >= mostPolls {
		return nil
	}
	d.seen.polled(req, now)
	d.ticket++
	p := &poll{req: req, line: d.line(req, now), ticket: d.ticket, got: make(chan []handOut, 1)}
	d.stand(p)
	return p
}

// grant ends a wish: it gets what was meant for it, or else what is ready.
func (d *dispatcher) grant(ctx context.Context, p *poll) []handOut {
	outs, err := d.wait(ctx, p)
	if len(outs) > 0 || err != nil || d.fleet.outdated() != nil || !d.mayHold(p.line) {
		return outs
	}
	outs, err = d.claim(context.WithoutCancel(ctx), p)
	if err != nil {
		return nil // the reports were taken; the next poll shows what is wrong
	}
	if ctx.Err() != nil {
		d.giveBack(outs)
		return nil
	}
	return outs
}

// mayHold reports whether a claim for the line may find something.
func (d *dispatcher) mayHold(l *line) bool {
	now := d.clock.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.draining && l.mayHold(now)
}
