package prove

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// benchLoadCommand is ringi bench load.
func (p program) benchLoadCommand() *cobra.Command {
	var c bench.LoadConfig
	cmd := &cobra.Command{
		Use: "load", Short: "Measure how long a run with a long history takes to load", Args: cobra.NoArgs,
		Long: `Makes a run with so many events and an input of 200 kB in a new database beside
the one that is named, and measures how long a node takes to show it that has
nothing of it in memory: loadMs, the middle of several times. The run is then
replayed, and the new database removed.`,
		Example: "  ringi bench load --database sqlite:./bench.db --events 50000 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Events < 2 || c.Events > ringi.MaxHistory-1000 {
				return cli.Usage("", "--events is from 2 to %d", ringi.MaxHistory-1000)
			}
			c.Database, c.Now, c.Told = p.benchDatabase(), p.Now, func(text string) { p.Say("%s", text) }
			out, err := bench.Load(cmd.Context(), c)
			if err != nil {
				return err
			}
			t := cli.Table{Head: []string{"EVENTS", "LOAD MS"}}
			t.Row(fmt.Sprint(out.Events), fmt.Sprintf("%.2f", out.LoadMS))
			return p.Print(out, t)
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	cmd.Flags().IntVar(&c.Events, "events", 50_000, "how many events the run has")
	return cmd
}

// benchStartCommand is ringi bench start.
func (p program) benchStartCommand() *cobra.Command {
	var c bench.StartConfig
	cmd := &cobra.Command{
		Use: "start", Short: "Measure how a node starts on a database full of runs", Args: cobra.NoArgs,
		Long: `Fills a new database beside the one that is named with finished and waiting runs,
starts a node on it as a process of its own, and prints how long that took to
answer (readySeconds), how much memory and processor time it takes when nothing
happens (rssBytes, idleCpuPercent of one processor), and how long polls take that
claim one task each (claimP99Ms). Half of the waiting runs wait for a timer, half
for an approval.`,
		Example: "  ringi bench start --database sqlite:./bench.db --finished 1000000 --waiting 100000 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Finished < 0 || c.Waiting < 0 {
				return cli.Usage("", "--finished and --waiting are not below 0")
			}
			c.Database, c.Now, c.Told, c.Node = p.benchDatabase(), p.Now, func(text string) { p.Say("%s", text) }, p.startNode
			out, err := bench.Start(cmd.Context(), c)
			if err != nil {
				return err
			}
			t := cli.Table{Head: []string{"READY S", "RSS MB", "IDLE CPU %", "CLAIM P99 MS"}}
			t.Row(fmt.Sprintf("%.2f", out.ReadySeconds), fmt.Sprintf("%.1f", float64(out.RSSBytes)/1e6), fmt.Sprintf("%.2f", out.IdleCPUPercent), fmt.Sprintf("%.2f", out.ClaimP99MS))
			return p.Print(out, t)
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	f := cmd.Flags()
	f.IntVar(&c.Finished, "finished", 100_000, "runs of three activities that have completed")
	f.IntVar(&c.Waiting, "waiting", 10_000, "runs that wait")
	return cmd
}

// benchNodeCommand is the node of bench start as a process of its own: a line
// when it is ready, and one with what it measured.
func (p program) benchNodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "node", Short: "The node of bench start; that starts it", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := bench.ServeNode(cmd.Context(), p.benchDatabase(), p.Now, func() {
				_, _ = fmt.Fprintln(p.Stdout, "ready") // who does not hear it does not hear the rest
			})
			if err != nil {
				return err
			}
			return json.NewEncoder(p.Stdout).Encode(out)
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	return cmd
}

// startNode starts that process.
func (p program) startNode(ctx context.Context, database string) (bench.NodeProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.NodeProcess{}, err
	}
	child := exec.CommandContext(ctx, self, "bench", "node", "--"+cli.SetDatabase, database)
	child.Stderr = p.Stderr
	answers, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return bench.NodeProcess{}, fmt.Errorf("start the node: %w", err)
	}
	lines := bufio.NewScanner(answers)
	if !lines.Scan() {
		return bench.NodeProcess{}, errors.Join(errors.New("the node has ended before it was ready"), child.Wait())
	}
	return bench.NodeProcess{Report: func() (out bench.NodeReport, err error) {
		if !lines.Scan() {
			return out, errors.Join(errors.New("the node has ended before it had measured"), child.Wait())
		}
		err = json.Unmarshal(lines.Bytes(), &out)
		return out, errors.Join(err, child.Wait())
	}}, nil
}

// sweepOptions are the flags of the commands that measure at several levels.
type sweepOptions struct {
	w3     bench.W3Config
	levels []int
}

func (p program) sweepFlags(cmd *cobra.Command, o *sweepOptions) {
	w3Flags(cmd, &o.w3)
	cmd.Flags().IntSliceVar(&o.levels, "levels", []int{1, 8, 64, 256, 512}, "runs in flight, one measurement each")
}

func (p program) sweep(o *sweepOptions) error {
	if len(o.levels) == 0 {
		return cli.Usage("as in --levels 1,64", "there are no --levels to measure at")
	}
	for _, n := range o.levels {
		if n < 1 {
			return cli.Usage("", "--levels are above 0")
		}
	}
	if o.w3.For < 0 || o.w3.Warm < 0 || o.w3.Payload < 0 || o.w3.Committers < 0 || o.w3.Nodes < 1 || o.w3.Steps < 0 || o.w3.Branches < 0 {
		return cli.Usage("", "--nodes is above 0, and --for, --warm, --payload, --committers, --steps and --branches are not below it")
	}
	if o.w3.For == 0 {
		o.w3.For = bench.DefaultFor
	}
	o.w3.Worker, o.w3.Now, o.w3.Told = p.startWorker, p.Now, func(text string) { p.Say("%s", text) }
	return nil
}

// benchCompareCommand is ringi bench compare.
func (p program) benchCompareCommand() *cobra.Command {
	var o sweepOptions
	peers, also := "", ""
	cmd := &cobra.Command{
		Use: "compare", Short: "Measure W3 beside other engines", Args: cobra.NoArgs,
		Long: `Measures W3 at several levels of concurrency, and then other engines by the
harness in the directory of --peers: a program run.sh that takes the name of a
directory beside it, -levels, -dur and -open, and ends with "results: FILE", an
object per point in each line of it. What is not there is named, not an error.
Measure on a machine that does nothing else.`,
		Example: "  ringi bench compare --database sqlite:./bench.db --also postgres:///bench --peers ../peers --levels 1,32,512 --for 15s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.sweep(&o); err != nil {
				return err
			}
			c := bench.CompareConfig{W3: o.w3, Databases: []string{p.benchDatabase()}, Levels: o.levels, For: o.w3.For}
			if also != "" {
				c.Databases = append(c.Databases, also)
			}
			if peers != "" {
				c.Peers = p.Path(peers)
			}
			out, err := bench.Compare(cmd.Context(), c)
			if err != nil {
				return err
			}
			t := cli.Table{Head: []string{"ENGINE", "IN FLIGHT", "PER SECOND", "P50 MS", "P99 MS", "CPU MS"}}
			for _, r := range out.Points {
				t.Row(r.Engine, fmt.Sprint(r.Inflight), fmt.Sprintf("%.0f", r.RunsPerSecond), fmt.Sprintf("%.2f", r.P50MS), fmt.Sprintf("%.2f", r.P99MS), fmt.Sprintf("%.3f", r.CPUMSPerRun))
			}
			for _, m := range out.Missing {
				p.Say("missing: %s", m)
			}
			return p.Print(out, t)
		},
	}
	p.sweepFlags(cmd, &o)
	cmd.Flags().StringVar(&peers, "peers", "", "directory with the harness of the others")
	cmd.Flags().StringVar(&also, "also", "", "a second database to measure on, as in --database")
	return cmd
}

// benchPlotCommand is ringi bench plot.
func (p program) benchPlotCommand() *cobra.Command {
	var o sweepOptions
	svg := ""
	cmd := &cobra.Command{
		Use: "plot", Short: "Draw throughput and p99 of W3 over the runs in flight", Args: cobra.NoArgs,
		Example: "  ringi bench plot --database sqlite:./bench.db --levels 1,4,16,64,256 --svg w3.svg",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if svg == "" {
				return cli.Usage("as in --svg w3.svg", "there is no file for the drawing")
			}
			if err := p.sweep(&o); err != nil {
				return err
			}
			points, err := bench.Sweep(cmd.Context(), o.w3, p.benchDatabase(), o.levels, o.w3.For)
			if err != nil {
				return err
			}
			title := fmt.Sprintf("W3 on %s, %s, %v each", points[0].Store, points[0].Mode, o.w3.For.Round(time.Second))
			if err := os.WriteFile(p.Path(svg), []byte(bench.SVG(title, points)), 0o644); err != nil {
				return err
			}
			t := cli.Table{Head: []string{"IN FLIGHT", "PER SECOND", "P50 MS", "P99 MS"}}
			for _, r := range points {
				t.Row(fmt.Sprint(r.Inflight), fmt.Sprintf("%.0f", r.RunsPerSecond), fmt.Sprintf("%.2f", r.P50MS), fmt.Sprintf("%.2f", r.P99MS))
			}
			return p.Print(struct {
				Name   string           `json:"name"`
				Points []bench.W3Result `json:"points"`
			}{"plot", points}, t)
		},
	}
	p.sweepFlags(cmd, &o)
	cmd.Flags().StringVar(&svg, "svg", "", "the file for the drawing")
	return cmd
}
