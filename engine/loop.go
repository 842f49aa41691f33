package engine

import (
	"context"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/sense"
	"github.com/ringiflow/ringi/store"
)

// A Part is one part of an engine. Its Round does one bounded piece of work
// and must not be called concurrently with itself; different parts may run at
// once. An error says that the store failed; the next round goes on.
type Part struct {
	Name  string
	Round func(ctx context.Context) (worked bool, err error)

	pause func() time.Duration  // until the next round when nothing was done
	wake  <-chan struct{}       // ends the pause
	again func(context.Context) // waits before the next round when something was done; nil does not
}

// Parts lists the parts of the engine, the committers first. Start loops them;
// a simulator that never calls Start may call their rounds in any order.
func (e *Engine) Parts() []Part {
	every := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	list := make([]Part, 0, len(e.parts.committers)+6)
	mine := e.parts.fleet.unlessOutdated
	for _, c := range e.parts.committers {
		list = append(list, Part{Name: "committer", Round: c.Round, pause: every(time.Hour), wake: c.in.wake, again: c.gather})
	}
	if e.parts.Config.Fleet != nil {
		list = append(list, Part{Name: "roster", Round: e.parts.dispatch.tell, pause: every(sense.RosterTold)})
	}
	return append(list,
		Part{Name: "pulse", Round: e.pulse, pause: every(pulse)},
		Part{Name: "dispatcher", Round: mine(e.parts.dispatch.Round), pause: e.parts.dispatch.pause, wake: e.parts.dispatch.wake},
		Part{Name: "leases", Round: mine(e.leases.Round), pause: every(leaseScan)},
		Part{Name: "timers", Round: mine(e.timers.Round), pause: every(timerScan)},
		Part{Name: "waits", Round: mine(e.parts.waits.Round), pause: every(waitScan), wake: e.parts.waits.wake},
		Part{Name: "fleet", Round: e.parts.fleet.Round, pause: every(meetEvery)},
	)
}

func (e *Engine) pulse(ctx context.Context) (bool, error) {
	err := e.parts.contact(ctx)
	if e.parts.reach.InVain() {
		if what, err := e.parts.Locks(ctx); err == nil {
			e.parts.reach.Holds(what)
		}
	}
	return false, err
}

// By how much the heap seems larger than it is while an engine runs. One large
// block would now and then be cleared, and with that be in memory, because a
// little of where it lies was in use before.
const (
	calmBlocks = 64
	calmBlock  = 1 << 20
)

// Start begins to loop the parts. Call it once; Close ends it.
//
// While it runs it holds 64 MiB that nobody ever touches: they take address space
// and no memory. The collector of garbage begins when the heap has doubled, and
// that of an engine is so small that under load it would run all the time; with
// these it takes turns of 64 MiB at least.
func (e *Engine) Start() {
	for range calmBlocks {
		e.calm = append(e.calm, make([]byte, calmBlock))
	}
	all, kill := context.WithCancel(context.Background())
	sweeps, stop := context.WithCancel(all)
	e.kill, e.stop = kill, stop
	never := func() bool { return false }
	for i, p := range e.Parts() {
		if i < len(e.parts.committers) {
			e.writing.Go(func() { e.loop(all, p, e.parts.closed.Load) })
		} else {
			e.running.Go(func() { e.loop(sweeps, p, never) })
		}
	}
}

// loop calls a part's rounds until ctx ends, or until nothing is left to do
// once it is the last round. After a failure it waits, longer each time, and
// goes on without help when the store is back.
func (e *Engine) loop(ctx context.Context, p Part, last func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	retry := retryFirst
	for ctx.Err() == nil {
		worked, err := p.Round(ctx)
		var pause time.Duration
		wake := p.wake
		switch {
		case err != nil && ctx.Err() == nil:
			if retry == retryFirst && e.parts.reach.Lost() == nil && !e.parts.reach.InVain() { // else the reach says so
				e.parts.log.Warn("a part failed", "part", p.Name, "err", err)
			}
			pause, retry, wake = retry, min(2*retry, retryLast), nil
		case worked:
			retry = retryFirst
			if p.again != nil {
				p.again(ctx)
			}
			continue
		case last():
			return
		default:
			retry, pause = retryFirst, p.pause()
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
	}
}

// Close drains: nothing new is taken in or handed out, what was taken in is
// committed and answered, for at most Config.Drain. The store stays open; it
// belongs to the caller. Close is idempotent and returns nil.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.parts.closed.Store(true)
		e.parts.dispatch.drain()
		if e.stop != nil {
			e.stop()
			e.running.Wait()
			e.finishCommits()
		}
		for _, c := range e.parts.committers {
			c.abandon()
		}
		e.parts.fleet.leave()
	})
	return nil
}

// finishCommits waits for the committers, and ends them when it takes too long.
func (e *Engine) finishCommits() {
	for _, c := range e.parts.committers {
		signal(c.in.wake)
	}
	limit := time.AfterFunc(e.drainIn, e.kill)
	e.writing.Wait()
	limit.Stop()
	e.kill()
}

// abandon answers what could not be finished. Nobody knows what became of a
// batch in doubt.
func (c *committer) abandon() {
	if b := c.doubt; b != nil {
		c.doubt = nil
		c.drop(b, &ringi.Error{
			Code: ringi.CodeUnavailable, Message: "nobody knows whether the command was carried out",
			Hint: "send it again to learn its outcome", Err: store.ErrDoubt,
		})
	}
	refuseAll(c.in.close(), draining())
}
