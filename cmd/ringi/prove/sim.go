package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/sim"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/skip"
)

const simLong = `Plays ringi in a world of its own that breaks everything: several nodes,
workers, services, people and clients around one store, under a clock that is
not the machine's, with definitions drawn from the grammar. Nodes and workers
crash at any point, messages get lost, repeated and overtaken, commits end in
doubt, leases run out, clocks jump, the store is away or comes back as it was
before. What the design promises is checked at every step, and in the end every
run must have come to its end.

A seed decides everything: the same one gives the same steps on any machine.
What is found is told as a story, made as small as it gets, with the command
that repeats it. Exits with 1 when something was found.`

// simOptions are the flags of ringi sim.
type simOptions struct {
	config sim.Config
	faults string
	skip   string
	shrink bool
}

// numbers refuses what no world can have.
func (o simOptions) numbers() error {
	for _, f := range []struct {
		name string
		n    int
		zero string
	}{
		{"steps", o.config.Steps, "draws"},
		{"nodes", o.config.Nodes, "draws"},
		{"workers", o.config.Workers, "draws"},
		{"starts", o.config.Starts, "draws"},
		{"parallel", o.config.Parallel, "takes all processors"},
	} {
		if f.n < 0 {
			return cli.Usage(fmt.Sprintf("give a number from 1 on, or 0, which %s", f.zero), "--%s %d: there is no world of that many", f.name, f.n)
		}
	}
	return nil
}

// simCommand is ringi sim.
func (p program) simCommand() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play worlds in which everything breaks, and check what is promised",
		Long:  simLong,
		Example: `  ringi sim --seeds 200
  ringi sim --seeds -1
  ringi sim --seed 7 --faults node_crash,commit_doubt_done --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.config.Seed = rand.Uint64N(1_000_000)
			}
			var err error
			if o.config.Faults, err = fault.Parse(o.faults); err != nil {
				return cli.Usage("name one or several of these, separated by commas", "%v", err)
			}
			if o.config.Skip, err = skip.Parse(o.skip); err != nil {
				return cli.Usage("", "%v", err)
			}
			if o.config.Seeds == 0 {
				return cli.Usage("--seeds -1 plays until it is stopped", "--seeds 0 plays nothing")
			}
			if err := o.numbers(); err != nil {
				return err
			}
			o.config.Shrink = o.shrink && o.skip == ""
			p.Drain()
			return p.sim(cmd.Context(), o.config)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.config.Seed, "seed", 0, "the first seed (default: drawn, and told)")
	f.IntVar(&o.config.Seeds, "seeds", 1, "how many seeds to play, one after the other; below 0 is until stopped")
	f.StringVar(&o.faults, "faults", "all", "what may break: all (some for each seed), every (all at once), none, or a list of faults")
	f.IntVar(&o.config.Steps, "steps", 0, "steps of a seed until all faults end; 0 is drawn")
	f.IntVar(&o.config.Nodes, "nodes", 0, "nodes; 0 is drawn")
	f.IntVar(&o.config.Workers, "workers", 0, "workers; 0 is drawn")
	f.IntVar(&o.config.Starts, "starts", 0, "how many runs are started at most; 0 is drawn")
	f.IntVar(&o.config.Parallel, "parallel", 0, "seeds at the same time; 0 is one for each processor")
	f.StringVar(&o.skip, "skip", "", "numbers of what does not take place, such as 3,5-9, as a story says")
	f.BoolVar(&o.config.First, "first", false, "end with the first violation")
	f.BoolVar(&o.shrink, "shrink", true, "make what is found as small as it gets")
	return cmd
}

func (p program) sim(ctx context.Context, c sim.Config) error {
	p.Say("playing from seed %d on", c.Seed)
	began, told := p.Now(), p.Now()
	var mu sync.Mutex // seeds are made smaller while others are played
	c.Progress = func(r sim.Report) {
		mu.Lock()
		defer mu.Unlock()
		now := p.Now()
		if now.Sub(told) >= progressEvery && (p.Terminal.Err || c.Seeds < 0) {
			told = now
			p.Say("%d seeds, %d steps, %.0f steps a second, %d violations", r.Seeds, r.Steps, float64(r.Steps)/now.Sub(began).Seconds(), r.Violations)
		}
	}
	shrunk := began
	c.Smaller = func(seed uint64, plays, most int) {
		mu.Lock()
		defer mu.Unlock()
		if now := p.Now(); now.Sub(shrunk) >= progressEvery {
			shrunk = now
			p.Say("seed %d breaks a promise; making its story shorter, which takes up to %d plays: this is number %d", seed, most, plays)
		}
	}
	r := sim.Run(ctx, c)
	seconds := p.Now().Sub(began).Seconds()
	for _, v := range r.Found {
		p.Say("%s", v.Story)
	}
	p.Say("%d seeds, %d steps, %.0f steps a second", r.Seeds, r.Steps, float64(r.Steps)/seconds)
	if ctx.Err() != nil && c.Seeds > r.Seeds {
		p.Say("stopped: %d of %d seeds were played", r.Seeds, c.Seeds)
	}
	if err := p.Print(r, simTable(r)); err != nil {
		return err
	}
	if r.Violations == 0 {
		return nil
	}
	return &cli.Ending{
		Code: cli.ExitFailed, Message: fmt.Sprintf("%d of %d seeds break a promise", r.Violations, r.Seeds),
		Hint: "the story above ends with the command that repeats it",
	}
}

// simTable shows what happened, most frequent last.
func simTable(r sim.Report) cli.Table {
	t := cli.Table{Head: []string{"WHAT", "KIND", "TIMES"}}
	for _, part := range []struct {
		what  string
		kinds map[string]int64
	}{{"fault", r.Faults}, {"command", r.Commands}, {"event", r.Events}} {
		var names []string
		for name := range part.kinds {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			t.Row(part.what, name, strconv.FormatInt(part.kinds[name], 10))
		}
	}
	return t
}
