package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/examples/order"
)

const demoLong = `Runs the order process of examples/order to its end through kill -9.

A server, a worker and four services (stock, payment, shipping, mail) run as
processes of their own. Orders go in; cards are declined, answers get lost,
services are down, people approve, reject and change their minds. Meanwhile the
server and the worker are killed with SIGKILL at least five times each, while
tasks are under lease, and started again. In the end the books of the services,
which know nothing of ringi, must say exactly what each order's line asks for.

The seed decides the moments and the order of the kills. Tasks in flight are
those under lease when a process was killed; delivered again counts the attempts
and hand-outs that followed one that nobody answered for; late results came from
attempts that had been given up; approvals are the orders that people decided.

With --keep DIR the books stay: DIR/*.db, DIR/orders.jsonl and DIR/runs.json are
all that "ringi demo verify DIR" reads, and sqlite3 alone gives the same sums
(see examples/order/README.md). Exit code 0 says that every order came out as its
line says, that nothing happened twice or got lost, and that the kills hit work.`

// demoOptions are the flags of ringi demo.
type demoOptions struct {
	orders int           // of the embedded ones; 0 is all
	seed   uint64        // of the kills
	keep   string        // the directory that stays; "" is a temporary one
	chaos  time.Duration // 0 feeds every order once
}

// demoCommand is ringi demo with its subcommands.
func demoCommand(p *Program) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run 100 orders through a server and a worker that get killed, and check the books",
		Long:  demoLong,
		Example: `  ringi demo
  ringi demo --orders 25 --seed 7 --keep /tmp/books && ringi demo verify /tmp/books
  ringi demo --chaos 10m --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.seed = rand.Uint64N(1_000_000)
			}
			if o.orders < 0 || o.chaos < 0 {
				return usage("", "--orders and --chaos cannot be negative")
			}
			p.drains.Store(true)
			return p.demo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.orders, "orders", 0, "how many of the 100 orders to feed; 0 is all")
	f.Uint64Var(&o.seed, "seed", 0, "from which the moments of the kills are drawn (default: drawn, and told)")
	f.StringVar(&o.keep, "keep", "", "directory for the books, the orders and the runs; new or empty")
	f.DurationVar(&o.chaos, "chaos", 0, "feed the orders again and again, and kill, for so long; then check every run's log too")
	cmd.AddCommand(demoVerifyCommand(p), demoWorkerCommand(p), demoServiceCommand(p))
	return cmd
}

// demoResult is what --json prints at the end.
type demoResult struct {
	Orders               int     `json:"orders"`
	AsExpected           int     `json:"asExpected"`
	DoubleEffects        int     `json:"doubleEffects"`
	Lost                 int     `json:"lost"`
	Seconds              float64 `json:"seconds"`
	Seed                 uint64  `json:"seed"`
	ServerKills          int     `json:"serverKills"`
	WorkerKills          int     `json:"workerKills"`
	TasksInFlightAtKills int     `json:"tasksInFlightAtKills"`
	Redelivered          int     `json:"redelivered"`
	LateResults          int     `json:"lateResults"`
	Approvals            int     `json:"approvals"`

	// Mismatches is how many rows are not what the log says; only with --chaos.
	Mismatches *int `json:"mismatches,omitempty"`
}

// demoKillsNeeded is how often each kind of kill must have hit.
const demoKillsNeeded = 5

// failings says what keeps a demo from having proved what it is to prove.
func (r demoResult) failings() []string {
	var all []string
	for _, f := range []struct {
		failed bool
		text   string
	}{
		{r.AsExpected != r.Orders, fmt.Sprintf("%d of %d orders did not end as their line says", r.Orders-r.AsExpected, r.Orders)},
		{r.DoubleEffects > 0, demoCount(r.DoubleEffects, "effect") + " happened too often"},
		{r.Lost > 0, demoCount(r.Lost, "order") + " got lost"},
		{r.ServerKills < demoKillsNeeded, fmt.Sprintf("the server was killed %d times, and at least %d are needed", r.ServerKills, demoKillsNeeded)},
		{r.WorkerKills < demoKillsNeeded, fmt.Sprintf("the worker was killed %d times, and at least %d are needed", r.WorkerKills, demoKillsNeeded)},
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

// demo runs the whole demo.
func (p *Program) demo(ctx context.Context, o demoOptions) (err error) {
	feed, err := demoFeedOf(o.orders, o.chaos)
	if err != nil {
		return err
	}
	dir, err := p.demoDirectory(o.keep)
	if err != nil {
		return err
	}
	story := newDemoStory(p.Stderr, p.Now)
	result, report, err := p.demoRun(ctx, o, feed, dir, story)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	var failed string
	if err == nil {
		result.Seconds = math.Round(story.seconds()*10) / 10
		if err := p.demoEnd(story, result, report); err != nil {
			return err
		}
		for _, f := range result.failings() {
			story.plain("FAILED: %s", f)
			failed = "the demo did not prove what it is to prove"
		}
	}
	switch {
	case o.keep != "":
		story.plain("books, orders and runs: %s (database and logs: %s)", dir, filepath.Join(dir, demoEngineDir))
	case err == nil && failed == "", errors.Is(err, errInterrupted):
		err = errors.Join(err, os.RemoveAll(dir))
	default:
		story.plain("everything is left in %s", dir)
	}
	if failed != "" {
		return &ending{code: exitFailed, message: failed, hint: fmt.Sprintf("the same kills again: ringi demo --seed %d", o.seed)}
	}
	return err
}

// demoDirectory makes the directory of the demo.
func (p *Program) demoDirectory(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "ringi-demo-")
	}
	dir, err := filepath.Abs(p.path(keep))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory to keep: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look into the directory to keep: %w", err)
	}
	if len(entries) > 0 {
		return "", usage("name one that does not exist yet", "the directory %s is not empty", dir)
	}
	return dir, nil
}

// demoRun starts the world, conducts the demo, ends the world and reads what it
// left behind.
func (p *Program) demoRun(ctx context.Context, o demoOptions, feed demoFeed, dir string, story *demoStory) (result demoResult, report order.Report, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer func() { // what made it fail tells more than the request that noticed
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // so that also after Ctrl-C one stops after the other
	defer end()
	world, err := newDemoWorld(life, p.Now(), dir, feed.file, fail)
	if err != nil {
		return result, report, err
	}
	defer func() { err = errors.Join(err, world.stop()) }() // for the ways out that are errors
	story.plain("ringi demo: %s, seed %d", feed, o.seed)
	if err := world.start(ctx, o.seed, demoCallOf(feed)); err != nil {
		return result, report, err
	}
	story.tell("%d services, a server and a worker are up, each a process of its own; the server is %s", len(world.services), world.url())
	if err := world.publish(ctx, story); err != nil {
		return result, report, err
	}
	c := &demoConduct{world: world, feed: feed, story: story, kills: demoKills(o.seed, demoKillsWithin(feed.span), feed.span), now: p.Now}
	if err := c.run(ctx); err != nil {
		return result, report, err
	}
	if err := world.stop(); err != nil {
		return result, report, err
	}
	result = c.result(o.seed)
	if o.chaos > 0 {
		if result.Mismatches, err = world.replay(ctx, story); err != nil {
			return result, report, err
		}
	}
	if err := c.save(dir); err != nil {
		return result, report, err
	}
	if report, err = order.Verify(ctx, dir); err != nil {
		return result, report, fmt.Errorf("check the books: %w", err)
	}
	result.Orders, result.AsExpected, result.DoubleEffects, result.Lost = report.Orders, report.AsExpected, report.DoubleEffects, report.Lost
	return result, report, nil
}

// publish publishes the order process.
func (w *demoWorld) publish(ctx context.Context, story *demoStory) error {
	published, err := demoInsist(ctx, func() (ringi.Published, error) {
		return w.clerk.shop.Publish(ctx, ringi.Publication{
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

// demoEnd prints how the demo ended: the table for people, the object for
// programs.
func (p *Program) demoEnd(story *demoStory, r demoResult, report order.Report) error {
	story.tell("done; the books say:\n")
	if !p.json() {
		t := demoTable(report)
		if err := t.write(p.Stdout, p.colours()); err != nil {
			return err
		}
		story.plain("")
	}
	story.plain("%s", demoVerdict(report))
	story.plain("killed the server %d times and the worker %d times, with %d tasks under lease in all; %s delivered again,\n%s came too late; people decided about %s",
		r.ServerKills, r.WorkerKills, r.TasksInFlightAtKills, demoCount(r.Redelivered, "task"), demoCount(r.LateResults, "result"), demoCount(r.Approvals, "order"))
	if p.json() {
		return p.printJSON(r)
	}
	return nil
}
