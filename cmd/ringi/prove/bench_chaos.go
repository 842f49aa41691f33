package prove

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/bench/chaos"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// benchChaosCommand is ringi bench chaos-outbox.
func (p program) benchChaosCommand() *cobra.Command {
	var c chaos.Config
	cmd := &cobra.Command{
		Use: "chaos-outbox", Short: "Break everything around an outbox and an inbox, and count what got lost", Args: cobra.NoArgs,
		Long: `Runs 4 producers, 3 relays and 4 consumers as processes of their own, on a
PostgreSQL server and a broker. While they work they are killed with SIGKILL,
stopped past their leases and continued, and starved of the processor; broker and
database are killed and started again. All of this is drawn from a seed.

Producers write a change and its message in one unit of work, and a file of the
commits that they know of; the rows tell of those whose outcome they never learnt.
Consumers have an effect for each message in a transaction of their own, through
an inbox. In the end everything has to drain, and one more change of each key
follows it. Then lost are changes without an effect, duplicateEffects those above
one of a change, outOfOrder those that came behind a later one of their key, and
stuck the messages that are not delivered. Any of them makes it exit with 1.

Without --database it starts a PostgreSQL server of its own (installed programs,
on Debian else apt-get), without --sink a NATS server with JetStream that needs
nothing installed. What is named is used and not restarted; a schema in the
database is made and removed, and the stream of a NATS sink has to take
outbox.event.> and is named: nats://HOST?stream=S.`,
		Example: `  ringi bench chaos-outbox --for 60s --json
  ringi bench chaos-outbox --for 1h --seed 7
  ringi bench chaos-outbox --sink redis://127.0.0.1:6379 --database postgres://ringi@127.0.0.1/chaos`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				c.Seed = rand.Uint64N(1_000_000)
			}
			if c.For <= 0 || c.Rate < 1 || c.Drain <= 0 {
				return cli.Usage("", "--for, --rate and --drain are above 0")
			}
			if c.Database != "" && !cli.IsPostgres(c.Database) {
				return cli.Usage("leave --database out to have a server started", "the rig needs PostgreSQL, postgres://…, and not %s", c.Database)
			}
			p.Drain()
			return p.chaos(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&c.For, "for", chaos.DefaultFor, "how long faults happen")
	f.Uint64Var(&c.Seed, "seed", 0, "from which the faults are drawn (default: drawn, and told)")
	f.IntVar(&c.Rate, "rate", chaos.DefaultRate, "changes a second")
	f.DurationVar(&c.Drain, "drain", chaos.DefaultDrain, "how long everything may take to drain in the end")
	f.StringVar(&c.Database, cli.SetDatabase, "", "PostgreSQL database, postgres://…, in which a schema is made and removed")
	f.StringVar(&c.Sink, "sink", "", "broker, as ringi relay takes it: kafka://, nats://, amqp:// or redis://")
	return cmd
}

// chaos runs the rig, and keeps what it left only when something was wrong.
func (p program) chaos(ctx context.Context, c chaos.Config) (err error) {
	if c.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program, which the rig starts several times: %w", err)
	}
	if c.Dir, err = os.MkdirTemp("", "ringi-chaos-"); err != nil {
		return err
	}
	c.Story, c.Now = p.Stderr, p.Now
	r, err := chaos.Run(ctx, c)
	if ctx.Err() != nil {
		return errors.Join(cli.ErrInterrupted, os.RemoveAll(c.Dir))
	}
	if err != nil {
		p.Say("logs and ledgers are left in %s", c.Dir)
		return err
	}
	t := cli.Table{Head: []string{"PRODUCED", "EFFECTS", "LOST", "DUPLICATE", "OUT OF ORDER", "STUCK", "KILLS"}}
	t.Row(fmt.Sprint(r.Produced), fmt.Sprint(r.Effects), fmt.Sprint(r.Lost), fmt.Sprint(r.DuplicateEffects), fmt.Sprint(r.OutOfOrder), fmt.Sprint(r.Stuck), fmt.Sprint(r.Kills))
	for _, relay := range r.Relays() {
		p.Say("%s published %d", relay, r.PublishedByRelay[relay])
	}
	p.Say("%d kills, %d stops, %d starved, %d restarts of the broker and %d of the database; of %d commits whose outcome was unknown %d had happened; %d repeats were dropped",
		r.Kills, r.Stops, r.Starved, r.BrokerRestarts, r.DatabaseRestarts, r.UnknownCommits, r.UnknownCommitted, r.Repeats)
	if err := p.Print(r, t); err != nil {
		return err
	}
	failings := r.Failings()
	if len(failings) == 0 {
		return os.RemoveAll(c.Dir)
	}
	for _, f := range failings {
		p.Say("FAILED: %s", f)
	}
	p.Say("logs and ledgers are left in %s", c.Dir)
	return &cli.Ending{Code: cli.ExitFailed, Message: "the outbox did not keep what it promises", Hint: fmt.Sprintf("the same faults again: ringi bench chaos-outbox --for %s --seed %d", c.For, c.Seed)}
}

// benchChaosMemberCommand is one of the rig's processes.
func (p program) benchChaosMemberCommand() *cobra.Command {
	var m chaos.Member
	cmd := &cobra.Command{
		Use: "chaos-member ROLE", Short: "One of the processes of bench chaos-outbox, which starts it", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Drain()
			m.Role, m.Now = args[0], p.Now
			m.Told = func(line string) { fmt.Fprintln(p.Stdout, line) }
			return m.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.Name, "name", "", "what it is called")
	f.StringVar(&m.Database, cli.SetDatabase, "", "the database with the rig's schema")
	f.StringVar(&m.Family, "family", "", "how the aggregate types begin")
	f.StringVar(&m.Ledger, "ledger", "", "the file in which it writes what only it knows")
	f.DurationVar(&m.Every, "every", 0, "the pause of a producer between two changes")
	f.StringVar(&m.Sink, "sink", "", "where a consumer's messages went")
	f.StringVar(&m.Dir, "dir", "", "where the broker keeps its streams")
	f.IntVar(&m.Port, "port", 0, "where the broker listens")
	return cmd
}
