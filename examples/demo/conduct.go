package demo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

const (
	// settleWithin is how long orders may take to end after the last one went in:
	// a run that is held up by every kill needs about twenty seconds, and feeding
	// and settling together stay below three minutes.
	settleWithin = 100 * time.Second
	// progressEvery is the time between two lines about how far it is.
	progressEvery = 10 * time.Second
	// leaseLook is how often the demo asks whether tasks are under lease, once
	// the moment of a kill has come.
	leaseLook = 5 * time.Millisecond
	// leasePatience is how long it waits for one. Orders come in all the
	// time, so this passes only where nearly all have ended.
	leasePatience = 10 * time.Second
	// databaseAway is how long the database stays away after its crash, on top of
	// its recovery: long enough for every server to notice.
	databaseAway = 1500 * time.Millisecond

	// meanCall is how long a call of a service takes on average, as over a real
	// network. With few orders it is longer, up to longCall, so that there
	// is work to hit; an attempt may take three seconds.
	meanCall = 250 * time.Millisecond
	longCall = time.Second
	// callsPerOrder is about how many calls an order makes.
	callsPerOrder = 8
)

// callOf is how long a call takes on average: long enough for the orders to
// fill the time that they are given, within limits.
func callOf(p plan) time.Duration {
	return min(max(p.every/callsPerOrder, meanCall), longCall)
}

// A conduct feeds the orders, and kills servers, workers and the database meanwhile.
type conduct struct {
	world *world
	plan  plan
	kills []kill
	story *teller
	now   func() time.Time

	began time.Time

	mu       sync.Mutex
	fed      int
	ended    int
	runs     []order.Run
	open     map[string]string // orders under way, with what went wrong about them
	tally    trail
	killed   map[kind]int
	inFlight int // tasks under lease at kills
}

// run returns when every order has ended and every kill was done, or when the
// time is over, which is not an error: the books will tell.
func (c *conduct) run(ctx context.Context) error {
	c.began, c.open, c.killed = c.now(), map[string]string{}, map[kind]int{}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithTimeout(ctx, c.plan.span+settleWithin)
	defer cancel()

	over := make(chan struct{})
	killed := make(chan error, 1)
	go func() {
		err := c.killAll(ctx, over)
		if err != nil {
			stop(err) // without its processes no order would ever end
		}
		killed <- err
	}()
	go c.tellProgress(ctx, over)
	go c.world.count.watch(ctx)
	c.feedAll(limited)
	close(over)
	if err := <-killed; err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i := range c.world.servers {
		c.world.count.read(ctx, i)
	}
	c.tellOpen()
	return nil
}

// feedAll starts the orders at their pace and waits until all have ended. The
// end of the time ends it too. Orders that are repeated stop to come in once the
// feeding has lasted long enough; others all go in, however late it is.
func (c *conduct) feedAll(ctx context.Context) {
	var playing sync.WaitGroup
	defer playing.Wait()
	room := make(chan struct{}, c.plan.open)
	for i, line := range c.plan.lines {
		if pause(ctx, time.Duration(i)*c.plan.every-c.now().Sub(c.began)) != nil {
			return
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if c.plan.repeats && c.now().Sub(c.began) > c.plan.span {
			return
		}
		c.change(func() { c.fed++; c.open[line.Order.OrderID] = "" })
		playing.Go(func() {
			defer func() { <-room }()
			c.play(ctx, c.world.clerks[i%len(c.world.clerks)], line)
		})
	}
}

func (c *conduct) play(ctx context.Context, by *clerk, line order.Line) {
	run, tally, err := by.play(ctx, line)
	c.change(func() {
		if err != nil {
			c.open[line.Order.OrderID] = err.Error()
			return
		}
		delete(c.open, line.Order.OrderID)
		c.ended++
		c.runs = append(c.runs, run)
		c.tally.add(tally)
	})
}

func (c *conduct) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// killAll kills at the drawn moments, or later where nothing is under lease. Once
// all orders have ended it does not wait for work any more.
func (c *conduct) killAll(ctx context.Context, over <-chan struct{}) error {
	for _, k := range c.kills {
		if err := c.until(ctx, over, k.at); err != nil {
			return err
		}
		if err := pause(ctx, killRest); err != nil {
			return err
		}
		leased, err := c.awaitLease(ctx, over)
		if err != nil {
			return err
		}
		if err := c.kill(ctx, k, leased); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a moment of the feeding, or its end.
func (c *conduct) until(ctx context.Context, over <-chan struct{}, at time.Duration) error {
	timer := time.NewTimer(at - killRest - c.now().Sub(c.began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// awaitLease waits until tasks are under lease and returns how many.
func (c *conduct) awaitLease(ctx context.Context, over <-chan struct{}) (int, error) {
	for began := c.now(); ; {
		n, err := insist(ctx, func() (int, error) { return c.world.leased(ctx) })
		if err != nil || n > 0 || c.now().Sub(began) > leasePatience {
			return n, err
		}
		select {
		case <-over:
			return 0, nil
		default:
		}
		if err := pause(ctx, leaseLook); err != nil {
			return 0, err
		}
	}
}

// kill kills one of them and starts it again.
func (c *conduct) kill(ctx context.Context, k kill, leased int) error {
	if k.what == theDatabase {
		return c.crash(ctx, leased)
	}
	target := c.world.workers[k.nth]
	if k.what == aServer {
		target = c.world.servers[k.nth]
		c.world.count.read(ctx, k.nth)
	}
	pid := target.PID()
	if !target.Kill() {
		return fmt.Errorf("%s had ended before it was killed; see %s", target.Name, target.Log)
	}
	died := c.now()
	if k.what == aServer {
		c.world.count.killed(k.nth)
	}
	if _, err := target.Start(ctx); err != nil {
		return err
	}
	back := "started again"
	if k.what == aServer {
		if err := c.world.ready(ctx, k.nth); err != nil {
			return err
		}
		back = fmt.Sprintf("it answers again after %.1f s", c.now().Sub(died).Seconds())
	}
	c.tellKill(k.what, fmt.Sprintf("kill -9 %s %d", target.Name, pid), leased, back)
	return nil
}

// crash ends all processes of the database at once, leaves it away for a while,
// and starts it again. The servers go on by themselves.
func (c *conduct) crash(ctx context.Context, leased int) error {
	if err := c.world.own.crash(); err != nil {
		return err
	}
	died := c.now()
	if err := pause(ctx, databaseAway); err != nil {
		return err
	}
	if err := c.world.own.resume(ctx); err != nil {
		return err
	}
	for i := range c.world.servers {
		if err := c.world.ready(ctx, i); err != nil {
			return err
		}
	}
	c.tellKill(theDatabase, "kill -QUIT the database", leased, fmt.Sprintf("all answer again, in the same processes, after %.1f s", c.now().Sub(died).Seconds()))
	return nil
}

// tellKill counts a kill and tells of it.
func (c *conduct) tellKill(what kind, text string, leased int, back string) {
	of := 0
	for _, k := range c.kills {
		if k.what == what {
			of++
		}
	}
	var nth int
	c.change(func() { c.killed[what]++; c.inFlight += leased; nth = c.killed[what] })
	c.story.tell("%s (%d of %d) with %s under lease; %s", text, nth, of, amount(leased, "task"), back)
}

// tellProgress tells now and then how far it is.
func (c *conduct) tellProgress(ctx context.Context, over <-chan struct{}) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.tellCount()
		case <-over:
			c.tellCount()
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *conduct) tellCount() {
	c.change(func() { c.story.tell("%s in, %d of them ended", amount(c.fed, "order"), c.ended) })
}

// tellOpen tells of orders that did not end in time.
func (c *conduct) tellOpen() {
	c.change(func() {
		for _, id := range slices.Sorted(maps.Keys(c.open)) {
			c.story.tell("order %s did not end: %s", id, c.open[id])
		}
	})
}

// result is what the demo did; what came of it the books say.
func (c *conduct) result(seed uint64) Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Result{
		Seed: seed, ServerKills: c.killed[aServer], WorkerKills: c.killed[aWorker], TasksInFlightAtKills: c.inFlight,
		Redelivered: c.tally.redelivered, LateResults: c.tally.lateResults, Approvals: c.tally.decided,
	}
	if c.world.cluster() {
		r.Nodes = c.world.count.tell()
	}
	if c.world.own != nil {
		crashes := c.killed[theDatabase]
		r.DatabaseKills = &crashes
	}
	return r
}

// save writes what the check of the books needs beside them.
func (c *conduct) save(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.WriteFile(filepath.Join(dir, order.OrdersName), firstLines(c.plan.file, c.fed), 0o600); err != nil {
		return fmt.Errorf("keep the orders: %w", err)
	}
	return order.SaveRuns(dir, c.runs)
}
