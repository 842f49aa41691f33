package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/skip"
	"github.com/ringiflow/ringi/store"
)

// Config says what is simulated. Its zero value plays seed 0 once.
type Config struct {
	Seed  uint64 // the first seed
	Seeds int    // how many, one after the other; 0 is 1, below 0 is until the context ends

	// Faults may strike; nil draws some of all for each seed, an empty list is
	// none. Skip leaves perturbations out by their number, as a shrunk program
	// says.
	Faults []fault.Kind
	Skip   skip.List

	// Nodes, Workers, Starts and Steps set what is otherwise drawn; 0 draws.
	// Steps are those until all faults end.
	Nodes, Workers, Starts, Steps int

	// Parallel is how many seeds are played at the same time; 0 is one for each
	// processor. It does not change what comes out.
	Parallel int

	// First ends the simulation with the first violation.
	First bool

	// Shrink makes the smallest program that a violation is found with, and
	// tells its story.
	Shrink bool

	// Progress is told the sums so far after every seed; nil tells nobody.
	Progress func(Report)

	// Smaller is told how often a program that breaks a promise has been played
	// to make it smaller, before each play; nil tells nobody. It may be called by
	// several goroutines at once.
	Smaller func(seed uint64, plays, most int)

	// Rules and Store stand in for the rules and for the store, to plant a
	// fault that must be found; nil is ringi.Decide and the store itself. They
	// may be called from several goroutines.
	Rules rules
	Store func(store.Store) store.Store

	// Open makes the store of each world, whose clock is now; nil is the one in
	// memory. A world closes what it opened. Only the one in memory can be
	// restored to an earlier state.
	Open func(now func() time.Time) (Driver, error)
}

// A Report is what a simulation came to.
type Report struct {
	Seeds       int              `json:"seeds"`
	Steps       int64            `json:"steps"`
	Faults      map[string]int64 `json:"faults"`
	Commands    map[string]int64 `json:"commands"`
	Events      map[string]int64 `json:"events"`
	TraceDigest string           `json:"traceDigest"`
	Violations  int              `json:"violations"`
	Found       []Violation      `json:"found,omitempty"`
}

// A Violation is a promise that was broken.
type Violation struct {
	Seed    uint64 `json:"seed"`
	What    string `json:"what"`    // the promise, in one word
	Message string `json:"message"` // what happened
	Step    int    `json:"step"`
	Command string `json:"command"` // repeats it
	Story   string `json:"-"`       // how it came to it, for a person
}

// played is the outcome of one seed.
type played struct {
	index     int
	steps     int
	count     *counters
	digest    string
	violation *Violation
}

// Run plays seeds until all are played or ctx ends: then those that have begun are
// played to their end, and what was found is made no smaller. Violations are in the
// report; a seed ends with its first. The report of the same Config is the same
// every time, whatever the machine.
func Run(ctx context.Context, c Config) Report {
	r := &runner{config: c, report: Report{Faults: map[string]int64{}, Commands: map[string]int64{}, Events: map[string]int64{}}}
	for _, f := range fault.Kinds() {
		r.report.Faults[string(f)] = 0
	}
	return r.run(ctx)
}

// A runner plays seeds side by side and adds them up in their order.
type runner struct {
	config Config
	report Report
	chain  [32]byte // the digest of all digests so far
	next   int      // the seed whose outcome is to be added
	early  map[int]played
	stop   func()
}

func (r *runner) run(ctx context.Context) Report {
	c := r.config
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	many := c.Parallel
	if many <= 0 {
		many = runtime.GOMAXPROCS(0)
	}
	seeds := c.Seeds
	if seeds == 0 {
		seeds = 1
	}
	jobs, done := make(chan int), make(chan played)
	var workers sync.WaitGroup
	for range many {
		workers.Go(func() {
			for i := range jobs {
				done <- playSeed(ctx, c, i)
			}
		})
	}
	go func() {
		defer close(jobs)
		for i := 0; seeds < 0 || i < seeds; i++ {
			select {
			case jobs <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		workers.Wait()
		close(done)
	}()
	r.early = map[int]played{}
	for p := range done {
		r.early[p.index] = p
		r.addReady()
	}
	r.report.TraceDigest = hex.EncodeToString(r.chain[:])
	return r.report
}

// addReady adds the outcomes that are next in order.
func (r *runner) addReady() {
	for {
		p, ok := r.early[r.next]
		if !ok || r.config.First && r.report.Violations > 0 {
			return
		}
		delete(r.early, r.next)
		r.next++
		r.add(p)
	}
}

func (r *runner) add(p played) {
	r.report.Seeds++
	r.report.Steps += int64(p.steps)
	for _, sum := range []struct{ to, from map[string]int64 }{
		{r.report.Faults, p.count.faults}, {r.report.Commands, p.count.commands}, {r.report.Events, p.count.events},
	} {
		for k, n := range sum.from {
			sum.to[k] += n
		}
	}
	r.chain = sha256.Sum256(append(r.chain[:], p.digest...))
	if p.violation != nil {
		r.report.Violations++
		r.report.Found = append(r.report.Found, *p.violation)
		if r.config.First {
			r.stop()
		}
	}
	if r.config.Progress != nil {
		copied := r.report
		copied.Faults, copied.Commands, copied.Events = maps.Clone(copied.Faults), maps.Clone(copied.Commands), maps.Clone(copied.Events)
		r.config.Progress(copied)
	}
}

// playSeed plays the i-th seed.
func playSeed(ctx context.Context, c Config, i int) played {
	o := options{Config: c, Seed: c.Seed + uint64(i)}
	w := newWorld(o)
	w.play()
	p := played{index: i, steps: w.steps, count: w.count, digest: w.digest(), violation: w.violation}
	if p.violation != nil {
		small := o
		if c.Shrink {
			small = shrink(ctx, o, w)
		}
		p.violation = tellStory(small, w.violation)
	}
	return p
}

// tellStory plays a program again and writes its story down.
func tellStory(o options, was *Violation) *Violation {
	o.Tell = true
	w := newWorld(o)
	w.play()
	v := *was
	if w.violation != nil {
		v = *w.violation
	}
	v.Command = o.command()
	v.Story = w.story(&v)
	return &v
}

// command repeats a program.
func (o options) command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ringi sim --seed %d", o.Seed)
	if o.Faults != nil {
		names := fault.Join(o.Faults)
		switch len(o.Faults) {
		case 0:
			names = "none"
		case len(fault.Kinds()):
			names = "every"
		}
		fmt.Fprintf(&b, " --faults %s", names)
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"nodes", o.Nodes}, {"workers", o.Workers}, {"starts", o.Starts}, {"steps", o.Steps}} {
		if f.n > 0 {
			fmt.Fprintf(&b, " --%s %d", f.name, f.n)
		}
	}
	if len(o.Skip) > 0 {
		fmt.Fprintf(&b, " --skip %s", o.Skip)
	}
	return b.String()
}
