package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/server"
	"github.com/ringiflow/ringi/examples/demo"
	"github.com/ringiflow/ringi/examples/order"
)

const demoLong = `Runs the order process of examples/order to its end through kill -9.

A server, a worker and four services (stock, payment, shipping, mail) run as
processes of their own. Orders go in; cards are declined, answers get lost,
services are down, people approve, reject and change their minds. Meanwhile the
server and the worker are killed with SIGKILL at least five times each, while
tasks are under lease, and started again. In the end the books of the services,
which know nothing of ringi, must say exactly what each order's line asks for.

With --nodes 3 three servers share one PostgreSQL database, each with a worker;
clients ask the next one while one is away. Without --database the demo starts a
PostgreSQL server of its own (installed programs, on Debian else apt-get; a
directory that it removes, a free port) and crashes that too. What each node
committed is shown at the end, and every log is folded again.

The seed decides the moments and the order of the kills. Tasks in flight are
those under lease when a process was killed; delivered again counts the attempts
and hand-outs that followed one that nobody answered for; late results came from
attempts that had been given up; approvals are the orders that people decided.

With --keep DIR the books stay: DIR/*.db, DIR/orders.jsonl and DIR/runs.json are
all that "ringi demo verify DIR" reads, and sqlite3 alone gives the same sums
(see examples/order/README.md). Exit code 0 says that every order came out as its
line says, that nothing happened twice or got lost, and that the kills hit work.`

// mostNodes is how many servers one machine can play with profit.
const mostNodes = 9

// demoOptions are the flags of ringi demo.
type demoOptions struct {
	orders int           // of the embedded ones; 0 is all
	seed   uint64        // of the kills
	keep   string        // the directory that stays; "" is a temporary one
	chaos  time.Duration // 0 feeds every order once
	runs   string        // PostgreSQL database; "" is a file of the demo, or a server of its own for several nodes
	nodes  int           // servers
	rate   int           // orders a second under chaos
}

// demoCommand is ringi demo with its subcommands.
func (p program) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run 100 orders through a server and a worker that get killed, and check the books",
		Long:  demoLong,
		Example: `  ringi demo
  ringi demo --orders 25 --seed 7 --keep /tmp/books && ringi demo verify /tmp/books
  ringi demo --chaos 10m --json
  ringi demo --nodes 3
  ringi demo --nodes 3 --database postgres://ringi@127.0.0.1/demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.seed = rand.Uint64N(1_000_000)
			}
			lines, err := order.Lines(0)
			if err != nil {
				return err
			}
			if o.orders < 0 || o.orders > len(lines) || o.chaos < 0 || o.rate < 0 {
				return cli.Usage("--chaos feeds them again and again", "--orders is at most %d, and neither it nor --chaos nor --rate can be negative", len(lines))
			}
			if o.nodes < 1 || o.nodes > mostNodes {
				return cli.Usage("", "--nodes is between 1 and %d", mostNodes)
			}
			if err := server.CheckUnused(cmd.Context(), o.runs); err != nil {
				return err
			}
			p.Drain()
			return p.demo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.orders, "orders", 0, "how many of the 100 orders to feed; 0 is all")
	f.Uint64Var(&o.seed, "seed", 0, "from which the moments of the kills are drawn (default: drawn, and told)")
	f.StringVar(&o.keep, "keep", "", "directory for the books, the orders and the runs; new or empty")
	f.DurationVar(&o.chaos, "chaos", 0, "feed the orders again and again, and kill, for so long; then check every run's log too")
	f.IntVar(&o.rate, "rate", 0, "orders a second under --chaos (default 8)")
	f.IntVar(&o.nodes, "nodes", 1, "servers on one database, each with a worker; kills go round")
	f.StringVar(&o.runs, cli.SetDatabase, "", "PostgreSQL database without runs, postgres://…; without it the demo has a file, and for several nodes a PostgreSQL server of its own, which it crashes too")
	cmd.AddCommand(p.demoVerifyCommand(), p.demoWorkerCommand(), p.demoServiceCommand())
	return cmd
}

// demo runs the whole demo, tells how it ended, and removes what nobody needs.
func (p program) demo(ctx context.Context, o demoOptions) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which the demo starts several times: %w", err)
	}
	dir, err := p.demoDirectory(o.keep)
	if err != nil {
		return err
	}
	result, report, err := demo.Run(ctx, demo.Config{
		Binary: binary, Dir: dir, Orders: o.orders, Seed: o.seed, Chaos: o.chaos, Rate: o.rate,
		Nodes: o.nodes, Database: o.runs, Story: p.Stderr, Now: p.Now,
	})
	switch {
	case ctx.Err() != nil:
		if result.Kills() > 0 {
			p.Say("until it was interrupted it %s", result.Summary())
		}
		err = errors.Join(p.demoNodes(result), cli.ErrInterrupted)
	case err == nil:
		err = p.demoEnd(result, report)
	}
	switch {
	case o.keep != "":
		p.Say("books, orders and runs: %s (database and logs: %s)", dir, filepath.Join(dir, demo.EngineDir))
	case err == nil || errors.Is(err, cli.ErrInterrupted):
		err = errors.Join(err, os.RemoveAll(dir))
	default:
		p.Say("everything is left in %s", dir)
	}
	return err
}

// demoDirectory makes the directory of the demo.
func (p program) demoDirectory(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "ringi-demo-")
	}
	dir, err := filepath.Abs(p.Path(keep))
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
		return "", cli.Usage("name one that does not exist yet", "the directory %s is not empty", dir)
	}
	return dir, nil
}

// demoEnd tells how the demo ended: the table for people, the object for
// programs. It is an error if the demo did not prove what it is to prove.
func (p program) demoEnd(r demo.Result, report order.Report) error {
	if !p.JSON() {
		t := demoTable(report)
		if err := t.Write(p.Stdout, p.Colours()); err != nil {
			return err
		}
		p.Say("")
	}
	if err := p.demoNodes(r); err != nil {
		return err
	}
	p.Say("%s\n%s", demo.Verdict(report), r.Summary())
	failings := r.Failings()
	for _, f := range failings {
		p.Say("FAILED: %s", f)
	}
	if p.JSON() {
		if err := p.PrintJSON(r); err != nil {
			return err
		}
	}
	if len(failings) > 0 {
		return &cli.Ending{
			Code: cli.ExitFailed, Message: "the demo did not prove what it is to prove",
			Hint: fmt.Sprintf("the same kills again: ringi demo --seed %d", r.Seed),
		}
	}
	return nil
}

// demoNodes says, for people, what each of several servers did.
func (p program) demoNodes(r demo.Result) error {
	if len(r.Nodes) == 0 || p.JSON() {
		return nil
	}
	t := cli.Table{Head: []string{"NODE", "KILLED", "COMMITS", "RUNS STARTED", "RUNS ENDED"}}
	for _, n := range r.Nodes {
		t.Row(n.Name, strconv.Itoa(n.Kills), strconv.Itoa(n.Commits), strconv.Itoa(n.Started), strconv.Itoa(n.Ended))
	}
	err := t.Write(p.Stdout, p.Colours())
	p.Say("")
	return err
}

// demoTable is the table at the end: a row for each kind of order, and the sums.
func demoTable(report order.Report) cli.Table {
	t := cli.Table{Head: []string{"WHAT HAPPENS TO THE ORDERS", "ORDERS", "AS EXPECTED", "END", "RESERVED", "CHARGED", "SHIPPED", "MAILS", "REFUNDED", "RELEASED"}}
	row := func(title string, orders, good int, status string, b order.Books) {
		cells := []string{title, strconv.Itoa(orders), strconv.Itoa(good), status}
		for _, n := range []int{b.Reserved, b.Charged, b.Shipped, b.Mails, b.Refunded, b.Released} {
			cells = append(cells, strconv.Itoa(n))
		}
		t.Row(cells...)
	}
	for _, k := range report.Kinds {
		row(k.Title, k.Orders, k.AsExpected, k.Status, k.Books)
	}
	row("all of them", report.Orders, report.AsExpected, "", report.Books)
	row("what their lines ask for", report.Orders, report.Orders, "", report.Expected)
	return t
}
