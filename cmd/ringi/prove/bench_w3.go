package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

const benchW3Long = `Measures W3: runs of three activities in sequence, from their start until the
last step is durable, every step on disk before anything is answered, input of
about 200 bytes, outputs of about 100. The worker is in the same process, or with
--mode http in one of its own that talks HTTP over loopback.

Closed loop: --inflight runs are under way, the end of one begins the next. With
--rate so many runs are begun a second whatever becomes of those before, and each
is measured from when it was due. With --nodes 3 three engines share the database,
each with a worker of its own; runs are begun on them in turn, and conflicts counts
the transitions that one decided while another wrote the run.

In the same call it measures the floor: a tap counts the rows that the store was
asked to write, and the bare driver then writes the same rows with the same
settings on the same disk, in transactions of several sizes. floorRunsPerSecond is
the best of them (at floorBatch), floorSameBatch that of transactions as large as
the engine's own (meanBatch), floorP50Ms one run alone.

Nothing of the database is touched: everything is in a new file beside it, or in a
new schema, which is removed at the end. Memory file systems are refused. Exits
with 1 when anything that was run does not follow from its log.`

// benchW3Command is ringi bench w3.
func (p program) benchW3Command() *cobra.Command {
	var c bench.W3Config
	var cpu, mem string
	cmd := &cobra.Command{
		Use: "w3", Short: "Measure runs of three activities, and the floor of their rows", Args: cobra.NoArgs, Long: benchW3Long,
		Example: `  ringi bench w3 --database sqlite:./bench.db --inflight 64 --json
  ringi bench w3 --database postgres:///bench --mode http --rate 500 --for 20s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := p.w3(cmd.Context(), c, cpu, mem)
			if err != nil {
				return err
			}
			return p.Print(out, w3Table(out))
		},
	}
	w3Flags(cmd, &c)
	f := cmd.Flags()
	f.IntVar(&c.Inflight, "inflight", bench.DefaultInflight, "runs under way at a time in the closed loop")
	f.Float64Var(&c.Rate, "rate", 0, "runs that are begun a second, instead of the closed loop")
	f.IntVar(&c.Runs, "runs", 0, "end after so many runs; 0 is no bound")
	f.DurationVar(&c.FloorFor, "floor-for", bench.DefaultFloorFor, "how long each size of transaction is measured for the floor")
	f.StringVar(&cpu, "cpuprofile", "", "write a CPU profile of what is measured to this file, for go tool pprof")
	f.StringVar(&mem, "memprofile", "", "write a profile of all allocations to this file")
	return cmd
}

// w3Flags are the flags of all commands that measure W3.
func w3Flags(cmd *cobra.Command, c *bench.W3Config) {
	cli.SettingFlags(cmd, cli.SetDatabase)
	f := cmd.Flags()
	f.StringVar(&c.Mode, "mode", bench.ModeEmbedded, "where the worker is: "+bench.ModeEmbedded+", or "+bench.ModeHTTP+" in a process of its own")
	f.DurationVar(&c.For, "for", 0, fmt.Sprintf("end after so long; without --for and --runs after %v", bench.DefaultFor))
	f.DurationVar(&c.Warm, "warm", 0, "how long nothing counts in the beginning; 0 is 1s, or 6s with several nodes")
	f.IntVar(&c.Committers, "committers", 0, "batches that the engine makes at a time; 0 is its default")
	f.IntVar(&c.Nodes, "nodes", 1, "engines that share the database, each with a worker of its own")
	f.IntVar(&c.Steps, "steps", 0, "activities of a run in sequence; 0 is three")
	f.IntVar(&c.Branches, "branches", 0, "activities of a run side by side, instead of in sequence")
	f.IntVar(&c.Payload, "payload", 0, "bytes of the input beside the 200 of the measure")
}

// w3 measures once. cpu and mem are files for profiles; "" is none.
func (p program) w3(ctx context.Context, c bench.W3Config, cpu, mem string) (out bench.W3Result, err error) {
	switch {
	case c.Mode != bench.ModeEmbedded && c.Mode != bench.ModeHTTP:
		return out, cli.Usage("take "+bench.ModeEmbedded+" or "+bench.ModeHTTP, "there is no mode %q", c.Mode)
	case c.Inflight < 1 || c.Rate < 0 || c.Runs < 0 || c.For < 0 || c.Warm < 0 || c.Payload < 0 || c.Committers < 0 || c.Nodes < 1 || c.Steps < 0 || c.Branches < 0:
		return out, cli.Usage("", "--inflight and --nodes are above 0, and --rate, --runs, --for, --warm, --payload, --committers, --steps and --branches are not below it")
	case c.Steps > 0 && c.Branches > 0:
		return out, cli.Usage("", "activities are in sequence or side by side: give --steps or --branches")
	}
	c.Database, c.Worker, c.Now = p.benchDatabase(), p.startWorker, p.Now
	c.Told = func(text string) { p.Say("%s", text) }
	end, err := p.profiles(map[string]*io.Writer{cpu: &c.CPUProfile, mem: &c.Allocs})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return bench.W3(ctx, c)
}

// profiles makes the files that are named for profiles; "" is none.
func (p program) profiles(files map[string]*io.Writer) (end func() error, err error) {
	var made []*os.File
	end = func() error {
		var errs []error
		for _, f := range made {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	for name, to := range files {
		if name == "" {
			continue
		}
		file, err := os.Create(p.Path(name))
		if err != nil {
			return nil, errors.Join(err, end())
		}
		made, *to = append(made, file), file
	}
	return end, nil
}

// benchDatabase is the database that the setting names, beside which is measured.
func (p program) benchDatabase() string {
	named := p.Get(cli.SetDatabase)
	if path, file := strings.CutPrefix(named, "sqlite:"); file {
		return "sqlite:" + p.Path(path)
	}
	return named
}

func w3Table(r bench.W3Result) cli.Table {
	t := cli.Table{Head: []string{"STORE", "MODE", "IN FLIGHT", "PER SECOND", "P50 MS", "P95 MS", "P99 MS", "CPU MS", "ROWS", "BATCH", "FLOOR", "AT", "SAME BATCH", "RATIO", "FLOOR P50 MS"}}
	t.Row(r.Store, r.Mode, fmt.Sprint(r.Inflight), fmt.Sprintf("%.0f", r.RunsPerSecond),
		fmt.Sprintf("%.2f", r.P50MS), fmt.Sprintf("%.2f", r.P95MS), fmt.Sprintf("%.2f", r.P99MS), fmt.Sprintf("%.3f", r.CPUMSPerRun),
		fmt.Sprintf("%.2f", r.RowsPerRun), fmt.Sprintf("%.1f", r.MeanBatch), fmt.Sprintf("%.0f", r.FloorRunsPerSecond), fmt.Sprint(r.FloorBatch),
		fmt.Sprintf("%.0f", r.FloorSameBatch), fmt.Sprintf("%.2f", r.RunsPerSecond/r.FloorSameBatch), fmt.Sprintf("%.2f", r.FloorP50MS))
	return t
}
