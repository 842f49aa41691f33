// Package demo runs the order process of examples/order to its end through
// kill -9. It is what `ringi demo` is made of.
//
// Run starts processes: a server, a worker and the four services, all from one
// program, which has to understand the calls below. With several nodes there
// are as many servers, on one PostgreSQL database, and as many workers; each
// client is told of all servers and asks the next while one is away.
//
//	serve --database DATABASE --listen ADDRESS --keys FILE --outbox file:PATH
//	demo worker --server URL[,URL…] --key-file FILE --stock URL --payment URL --shipping URL --mail URL --seed N --call DURATION
//	demo service NAME --db FILE --orders FILE     (its first line on stdout is its URL)
//	replay --all --json --database DATABASE
//
// It then feeds orders over the API as a shop would, votes with each person's
// own key, cancels where an order's line says so, and kills servers, workers and
// its own database at moments drawn from a seed while tasks are under lease. Whatever it
// asks the server for it asks again while the server is away; each of its
// requests may be repeated. In the end everything stops, and the books of the
// services, which know nothing of ringi, say what came of it.
//
// world.go holds all of them, clerk.go
// takes one order through its process, conduct.go feeds and kills, plan.go and
// kill.go say when, node.go counts what each server did, trail.go reads what the
// histories tell, story.go tells it.
//
// A demo reads clocks and starts processes, so that two of them with one seed
// draw the same kills, and still differ in what the kills hit.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/examples/order"
)

// Config says what a demo does. Binary and Dir are required.
type Config struct {
	Binary string        // the ringi program
	Dir    string        // an empty directory, in which everything is left
	Orders int           // of the embedded ones; 0, and more than there are, is all
	Seed   uint64        // from which the kills are drawn
	Chaos  time.Duration // feed the orders again and again for so long; 0 feeds each once
	Rate   int           // orders a second under Chaos; 0 is 8
	// Nodes is how many servers share the database, each with a worker; 0 is 1.
	Nodes int
	// Database is where the servers keep their runs, as their setting says it. It
	// must hold none. "" is a file in Dir for one server, and for several a
	// PostgreSQL server that the demo starts, crashes and ends.
	Database string
	Story    io.Writer // is told what happens; nil is nobody

	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// EngineDir is the directory within Config.Dir that holds what the check of the
// books does not read: database, keys and logs.
const EngineDir = "ringi"

const (
	// killsNeeded is how often each kind of kill must have hit.
	killsNeeded = 5
	// crashesNeeded is how often the demo's own database must have crashed.
	crashesNeeded = 2
)

// A Result is how a demo went.
type Result struct {
	Orders        int     `json:"orders"`
	AsExpected    int     `json:"asExpected"`    // orders that ended as their line says
	DoubleEffects int     `json:"doubleEffects"` // effects that happened more often than allowed
	Lost          int     `json:"lost"`          // orders that did not end, or with an effect missing
	Seconds       float64 `json:"seconds"`
	Seed          uint64  `json:"seed"`
	ServerKills   int     `json:"serverKills"`
	WorkerKills   int     `json:"workerKills"`

	// DatabaseKills is how often the database crashed; only when the demo
	// started it.
	DatabaseKills *int `json:"databaseKills,omitempty"`
	// Nodes is what each server did, when there are several.
	Nodes []Node `json:"nodes,omitempty"`

	// TasksInFlightAtKills are the tasks that were under lease when a process
	// was killed, all kills together.
	TasksInFlightAtKills int `json:"tasksInFlightAtKills"`
	// Redelivered counts the attempts and hand-outs that followed one that
	// nobody answered for.
	Redelivered int `json:"redelivered"`
	// LateResults counts the results of attempts that had been given up.
	LateResults int `json:"lateResults"`
	// Approvals counts the orders that people decided about.
	Approvals int `json:"approvals"`

	// Mismatches is how many rows do not follow from the log they stand beside;
	// only with Config.Chaos or several nodes.
	Mismatches *int `json:"mismatches,omitempty"`
}

// Failings says what keeps the demo from having proved what it is to prove:
// nothing, if all went well.
func (r Result) Failings() []string {
	var all []string
	for _, f := range []struct {
		failed bool
		text   string
	}{
		{r.AsExpected != r.Orders, fmt.Sprintf("%d of %d orders did not end as their line says", r.Orders-r.AsExpected, r.Orders)},
		{r.DoubleEffects > 0, amount(r.DoubleEffects, "effect") + " happened too often"},
		{r.Lost > 0, amount(r.Lost, "order") + " got lost"},
		{r.ServerKills < killsNeeded, fmt.Sprintf("servers were killed %d times, and at least %d are needed", r.ServerKills, killsNeeded)},
		{r.WorkerKills < killsNeeded, fmt.Sprintf("workers were killed %d times, and at least %d are needed", r.WorkerKills, killsNeeded)},
		{r.DatabaseKills != nil && *r.DatabaseKills < crashesNeeded, "the database did not crash as often as planned"},
		{slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Commits == 0 }), "a node committed nothing"},
		{r.TasksInFlightAtKills == 0, "no task was under lease when a process was killed; feed more orders"},
		{r.Redelivered == 0, "nothing had to be delivered again; feed more orders"},
		{r.Mismatches != nil && *r.Mismatches > 0, "the log of a run and its rows disagree"},
	} {
		if f.failed {
			all = append(all, f.text)
		}
	}
	return all
}

// Run runs a demo and returns how it went and what the books say. That an order
// did not come out as it should is no error: it is in the result. When ctx ends,
// the processes are stopped one after the other, and its cause is returned with
// what was done so far.
func Run(ctx context.Context, c Config) (result Result, report order.Report, err error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Story == nil {
		c.Story = io.Discard
	}
	plan, err := planOf(c.Orders, c.Chaos, c.Rate)
	if err != nil {
		return result, report, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer func() { // what made it fail tells more than the request that noticed
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // so that also after Ctrl-C one stops after the other
	defer end()
	w, err := newWorld(life, c, plan.file, fail)
	if err != nil {
		return result, report, err
	}
	defer func() { err = errors.Join(err, w.stop(), w.endDatabase()) }() // for the ways out that are errors
	story := newTeller(c.Story, c.Now)
	story.plain("ringi demo: %s, seed %d", plan, c.Seed)
	if err := w.open(ctx, c, callOf(plan), story); err != nil {
		return result, report, err
	}
	who := cast{nodes: len(w.servers), database: w.own != nil}
	conducted := &conduct{world: w, plan: plan, story: story, kills: drawKills(c.Seed, who, killsWithin(plan.span), plan.span), now: c.Now}
	if err := conducted.run(ctx); err != nil {
		conducted.tellCount()
		return conducted.result(c.Seed), report, err
	}
	if err := w.stop(); err != nil {
		return result, report, err
	}
	return conducted.judge(ctx, c, story)
}

// open starts everything, the database first, and publishes the order process.
func (w *world) open(ctx context.Context, c Config, call time.Duration, story *teller) error {
	if c.Nodes > 1 && c.Database == "" {
		var err error
		if w.own, err = startDatabase(ctx); err != nil {
			return fmt.Errorf("start a PostgreSQL for the demo: %w", err)
		}
		w.runs = w.own.url
		story.tell("a PostgreSQL of the demo's own is up: %s", w.runs)
	}
	if err := w.start(ctx, c.Seed, call); err != nil {
		return err
	}
	if w.cluster() {
		story.tell("%d services, %d nodes on one database and a worker for each are up, each a process of its own; the nodes are %s",
			len(w.services), len(w.servers), w.urls(0))
	} else {
		story.tell("%d services, a server and a worker are up, each a process of its own; the server is %s", len(w.services), w.urls(0))
	}
	return w.publish(ctx, story)
}

// judge reads what everything left behind, once it has stopped.
func (c *conduct) judge(ctx context.Context, config Config, story *teller) (r Result, report order.Report, err error) {
	r = c.result(config.Seed)
	if config.Chaos > 0 || c.world.cluster() {
		if r.Mismatches, err = c.world.replay(ctx, story); err != nil {
			return r, report, err
		}
	}
	if err := c.save(config.Dir); err != nil {
		return r, report, err
	}
	if report, err = order.Verify(ctx, config.Dir); err != nil {
		return r, report, fmt.Errorf("check the books: %w", err)
	}
	r.Orders, r.AsExpected, r.DoubleEffects, r.Lost = report.Orders, report.AsExpected, report.DoubleEffects, report.Lost
	r.Seconds = math.Round(story.seconds()*10) / 10
	story.tell("done; the books say:\n")
	return r, report, nil
}

// publish publishes the order process.
func (w *world) publish(ctx context.Context, story *teller) error {
	published, err := insist(ctx, func() (ringi.Published, error) {
		return w.clerks[0].shop.Publish(ctx, ringi.Publication{
			Tenant: ringi.DefaultTenant, File: order.DefinitionName + ".yaml", Source: order.Definition(),
		})
	})
	if err != nil {
		return fmt.Errorf("publish the order process: %w", err)
	}
	if len(published.Problems) > 0 && published.Version == 0 {
		first := published.Problems[0]
		return fmt.Errorf("publish the order process: %s:%d:%d: %s %s", first.File, first.Line, first.Column, first.ID, first.Message)
	}
	story.tell("published %s, version %d: orders come in now, and processes begin to die", published.Name, published.Version)
	return nil
}
