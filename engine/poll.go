package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A poll is one call that waits for tasks.
type poll struct {
	req    ringi.PollRequest
	line   *line
	ticket uint64
	taken  bool           // a claim or a commit is about to fill it
	late   bool           // its time was over while it was taken: an empty answer is one
	gone   bool           // its caller went away while it was taken
	got    chan []handOut // capacity 1
}

// A handOut is a task under its lease, and how it is given back.
type handOut struct {
	task ringi.Task
	back store.Lapse
}

func tasksOf(outs []handOut) []ringi.Task {
	tasks := make([]ringi.Task, len(outs))
	for i, o := range outs {
		tasks[i] = o.task
	}
	return tasks
}

// Poll implements the waist's method.
func (d *dispatcher) Poll(ctx context.Context, req ringi.PollRequest) ([]ringi.Task, error) {
	if err := checkPoll(&req); err != nil {
		return nil, err
	}
	p, claim, err := d.join(req)
	if err != nil {
		return nil, err
	}
	if claim {
		outs, err := d.claimFor(context.WithoutCancel(ctx), p)
		if ctx.Err() != nil {
			d.giveBack(outs)
			outs, err = nil, ctx.Err()
		}
		if err != nil || len(outs) > 0 || req.Wait <= 0 {
			d.answered(p, outs)
			return tasksOf(outs), err
		}
		if !d.park(p) {
			return nil, draining()
		}
	}
	outs, err := d.wait(ctx, p)
	return tasksOf(outs), err
}

// answered notes that a poll was answered which did not stand in line.
func (d *dispatcher) answered(p *poll, outs []handOut) {
	if len(outs) == 0 || p.req.Wait <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leave(p.line, p.req, len(outs))
}

func checkPoll(req *ringi.PollRequest) error {
	var check doorCheck
	check.name("queue", req.Queue)
	check.name("worker", req.Worker)
	for _, a := range req.Activities {
		check.name("activity", a)
	}
	if req.Queue == "" {
		check.fail("a poll needs a queue", "name one")
	}
	if check.err != nil {
		return check.err
	}
	if !req.Actor.Serves(req.Queue) {
		return &ringi.Error{
			Code:    ringi.CodeForbidden,
			Message: fmt.Sprintf("the queue %q belongs to the engine, as all whose names begin with %q: only its own workers take their tasks", req.Queue, workflow.ReservedPrefix),
			Hint:    "serve a queue of another name",
		}
	}
	req.Tenant = tenantOr(req.Tenant)
	req.Max = min(max(req.Max, 1), mostPerPoll)
	req.Wait = min(req.Wait, longestPoll)
	if len(req.Activities) == 0 {
		req.Activities = nil
	}
	req.Activities = slices.Clone(req.Activities)
	slices.Sort(req.Activities)
	return nil
}

// join makes the poll. It says to claim first when the queue may hold
// something, and else the poll stands in line.
func (d *dispatcher) join(req ringi.PollRequest) (p *poll, claim bool, err error) {
	now := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return nil, false, draining()
	}
	if d.waiting >= mostPolls {
		return nil, false, &ringi.Error{Code: ringi.CodeLimit, Message: "too many polls wait on this server", Hint: "use fewer, larger polls"}
	}
	d.seen.Polled(req, now)
	l := d.line(req, now)
	d.ticket++
	p = &poll{req: req, line: l, ticket: d.ticket, got: make(chan []handOut, 1)}
	if outs := d.collect(l, req); len(outs) > 0 {
		p.taken = true
		d.fill(p, outs)
		return p, false, nil
	}
	if req.Wait <= 0 || l.ready.MayHold(now) {
		p.taken = true
		return p, true, nil
	}
	d.stand(p)
	return p, false, nil
}

// stand puts a poll into its line, at the place of its ticket.
func (d *dispatcher) stand(p *poll) {
	p.taken = false
	at, _ := slices.BinarySearchFunc(p.line.polls, p.ticket, func(q *poll, t uint64) int {
		return cmp.Compare(q.ticket, t)
	})
	p.line.polls = slices.Insert(p.line.polls, at, p)
	d.waiting++
}

// step takes a poll out of its line, because it is about to be filled or its
// caller left.
func (d *dispatcher) step(p *poll) {
	if i := slices.Index(p.line.polls, p); i >= 0 {
		p.line.polls = slices.Delete(p.line.polls, i, i+1)
		d.waiting--
	}
}

func (d *dispatcher) park(p *poll) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return false
	}
	d.stand(p)
	if !p.line.ready.Empty() { // something was made ready while the claim came back empty
		signal(d.wake)
	}
	return true
}

// wait waits for tasks. A poll that is about to be filled is waited for beyond
// its time; a caller who leaves gets nothing, and what was meant for it is
// given back.
func (d *dispatcher) wait(ctx context.Context, p *poll) ([]handOut, error) {
	timer := time.NewTimer(p.req.Wait)
	defer timer.Stop()
	select {
	case outs := <-p.got:
		return outs, nil
	case <-timer.C:
		if d.quit(p, false) {
			return nil, nil
		}
		select {
		case outs := <-p.got:
			return outs, nil
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	if !d.quit(p, true) {
		select {
		case outs := <-p.got:
			d.giveBack(outs)
		default:
		}
	}
	return nil, ctx.Err()
}

// quit takes the poll out of its line; false when it is about to be filled,
// or was.
func (d *dispatcher) quit(p *poll, gone bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.taken {
		p.late, p.gone = true, gone
		return false
	}
	d.step(p)
	return true
}

// fill gives tasks to a poll that was taken, or returns it to its line. The
// caller holds the lock.
func (d *dispatcher) fill(p *poll, outs []handOut) {
	switch {
	case p.gone:
		d.putBack(outs)
	case len(outs) > 0 || d.draining || p.late:
		d.leave(p.line, p.req, len(outs))
		p.got <- outs
	default:
		d.stand(p)
	}
}

// putBack keeps hand-outs that reached nobody for the next round. The caller
// holds the lock.
func (d *dispatcher) putBack(outs []handOut) {
	now := d.clock.Now()
	for _, o := range outs {
		o.back.ReadyAt = now
		d.back = append(d.back, o.back)
	}
	if len(outs) > 0 {
		signal(d.wake)
	}
}

func (d *dispatcher) giveBack(outs []handOut) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.putBack(outs)
}

// logRows are the log rows of one claim, read once each: the branches of a parallel
// have their inputs in the same one.
type logRows map[logRow][]ringi.Event

type logRow struct {
	key   store.Key
	first int64
}

// task makes the task that a worker is told of.
func (rows logRows) task(c store.Claimed) (ringi.Task, error) {
	row := logRow{c.Key, c.InputFirst}
	events, known := rows[row]
	if !known {
		var err error
		if events, err = ringi.DecodeEvents(c.InputFirst, c.InputBody); err != nil {
			return ringi.Task{}, err
		}
		rows[row] = events
	}
	return taskOf(c.Key, c.Definition, c.Version, c.Row, c.Token, events)
}

// taskOf makes a task of its row and the event that holds its input, which is
// one of the events given.
func taskOf(key store.Key, definition string, version int, row ringi.TaskRow, token int64, events []ringi.Event) (ringi.Task, error) {
	i := slices.IndexFunc(events, func(e ringi.Event) bool { return e.Seq == row.InputSeq })
	if i < 0 {
		return ringi.Task{}, fmt.Errorf("engine: event %d with the input of step %s is not in its log row", row.InputSeq, row.Step)
	}
	in, ok := events[i].Fact.(ringi.ActivityScheduled)
	if !ok {
		return ringi.Task{}, fmt.Errorf("engine: event %d is %s, not the scheduling of step %s", row.InputSeq, ringi.KindOf(events[i].Fact), row.Step)
	}
	return ringi.Task{
		Tenant: key.Tenant, Run: key.Run,
		CallRef:  ringi.CallRef{Step: row.Step, Direction: row.Direction, Attempt: row.Attempt, Token: token},
		Activity: row.Activity, Queue: row.Queue, Definition: definition, Version: version,
		Input: in.Input, Key: in.Key, Effect: in.Effect, Begin: row.Begin,
		Lease: handover, Heartbeat: row.Heartbeat, Timeout: row.Timeout,
	}, nil
}
