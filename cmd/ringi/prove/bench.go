package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/relay"
)

func (p program) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure, beside the floor of the same machine", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(p.benchW3Command(), p.benchWorkerCommand(), p.benchOutboxCommand(),
		p.benchLoadCommand(), p.benchStartCommand(), p.benchNodeCommand(), p.benchCompareCommand(), p.benchPlotCommand(),
		p.benchChaosCommand(), p.benchChaosMemberCommand())
	return cmd
}

func (p program) benchOutboxCommand() *cobra.Command {
	var c bench.OutboxConfig
	var cpu string
	var delays bench.DelayConfig
	cmd := &cobra.Command{
		Use: "outbox", Short: "Measure an outbox from the commit to the destination", Args: cobra.NoArgs,
		Long: `Writes messages through a unit of work, relays the whole backlog, and prints how
many a second that makes: messagesPerSecond. p50Ms and p99Ms are from the commit
of a single message beside an idle relay until the destination has acknowledged
it. floorMessagesPerSecond is what the same machine does without an outbox: the
same rows inserted in the same batches, read and published. On the way it says on
standard error what the library costs a business transaction with one message.

With --rate it measures instead how long messages take from their commit to the
destination while so many are written a second, beside a relay that gets no hint:
by polling, from the write-ahead log, or both in turn (--sources poll,wal).

Nothing of the database is touched: the messages are in a new file beside it, or
in a new schema, which is removed at the end. The destination gets them all.`,
		Example: "  ringi bench outbox --database sqlite:./bench.db --sink file:events.ndjson --json\n" +
			"  ringi bench outbox --database postgres://… --sink file:events.ndjson --sources poll,wal --rate 1,100,5000 --for 30s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Messages < 1 || c.Batch < 1 {
				return cli.Usage("", "--messages and --batch are above 0")
			}
			if c.Sink == "" || c.Sink == cli.OutboxStdout {
				return cli.Usage("name one with --sink, as in file:events.ndjson; standard output is for the result", "there is no destination to measure with")
			}
			c.Database = p.benchDatabase()
			c.Open = relay.Opener{Path: p.Path, Ringi: p.RingiSink}
			c.Now, c.Told = p.Now, func(text string) { p.Say("%s", text) }
			if len(delays.Rates) > 0 {
				delays.Database, delays.Sink, delays.Open, delays.Now, delays.Told = c.Database, c.Sink, c.Open, c.Now, c.Told
				return p.delays(cmd.Context(), delays)
			}
			end, err := p.profiles(map[string]*io.Writer{cpu: &c.CPUProfile})
			if err != nil {
				return err
			}
			cli.CollectLess() // as ringi relay does; the floor has it too
			out, err := bench.Outbox(cmd.Context(), c)
			if err = errors.Join(err, end()); err != nil {
				return err
			}
			t := cli.Table{Head: []string{"STORE", "SINK", "MESSAGES", "PER SECOND", "FLOOR", "RATIO", "P50 MS", "P99 MS"}}
			t.Row(out.Store, out.Sink, fmt.Sprint(out.Messages), fmt.Sprintf("%.0f", out.MessagesPerSecond), fmt.Sprintf("%.0f", out.FloorMessagesPerSecond),
				fmt.Sprintf("%.2f", out.MessagesPerSecond/out.FloorMessagesPerSecond), fmt.Sprintf("%.2f", out.P50MS), fmt.Sprintf("%.2f", out.P99MS))
			return p.Print(out, t)
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	f := cmd.Flags()
	f.StringVar(&c.Sink, "sink", "", "where the messages go: "+relay.Forms)
	f.IntVar(&c.Messages, "messages", bench.DefaultMessages, "how many")
	f.IntVar(&c.Batch, "batch", bench.DefaultBatch, "messages in one transaction, and in one claim")
	f.IntSliceVar(&delays.Rates, "rate", nil, "messages a second, one or several: measure their delays instead")
	f.StringSliceVar(&delays.Sources, "sources", []string{bench.SourcePoll}, "with --rate, how messages are found: poll, wal or both")
	f.DurationVar(&delays.For, "for", bench.DefaultDelayFor, "with --rate, how long each is measured")
	f.DurationVar(&delays.PollMost, "poll", 0, "with --rate, the longest pause between two polls; 0 is that of ringi relay")
	f.StringVar(&cpu, "cpuprofile", "", "write a CPU profile of the writing and the relaying to this file, for go tool pprof")
	return cmd
}

// delays measures from the commit to the destination.
func (p program) delays(ctx context.Context, c bench.DelayConfig) error {
	for _, source := range c.Sources {
		if source != bench.SourcePoll && source != bench.SourceWAL {
			return cli.Usage("", "--sources %s is neither %s nor %s", source, bench.SourcePoll, bench.SourceWAL)
		}
	}
	if slices.Min(c.Rates) < 1 || c.For <= 0 || len(c.Sources) == 0 {
		return cli.Usage("", "--rate and --for are above 0, and there is one of --sources")
	}
	cli.CollectLess()
	out, err := bench.Delays(ctx, c)
	if err != nil {
		return err
	}
	t := cli.Table{Head: []string{"SOURCE", "RATE", "MESSAGES", "P50 MS", "P99 MS", "MAX MS", "TRANSACTIONS/S", "TOLD BY LOG"}}
	for _, d := range out.Delays {
		t.Row(d.Source, fmt.Sprint(d.Rate), fmt.Sprint(d.Messages), fmt.Sprintf("%.1f", d.P50MS), fmt.Sprintf("%.1f", d.P99MS), fmt.Sprintf("%.1f", d.MaxMS),
			fmt.Sprintf("%.1f", d.RelayTransactionsPerSecond), fmt.Sprintf("%.2f", d.ToldByLog))
	}
	return p.Print(out, t)
}
