package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/pprof"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/replay"
)

// The modes of W3: where its worker is.
const (
	ModeEmbedded = "embedded" // in the process of the engine
	ModeHTTP     = "http"     // in a process of its own, over HTTP on loopback
)

// The defaults of W3Config.
const (
	DefaultInflight = 64
	DefaultFor      = 10 * time.Second
	DefaultWarm     = time.Second
	DefaultFloorFor = 2 * time.Second

	// nodesMeet is until every node knows of those that started after it.
	nodesMeet = 6 * time.Second
)

// w3 is three activities in sequence.
const w3 = `
ringi: v1
name: w3
steps:
  - { id: a, activity: bench.a, with: { order: "${ input.order }" }, effect: idempotent }
  - { id: b, activity: bench.b, with: { order: "${ input.order }" }, effect: idempotent }
  - { id: c, activity: bench.c, with: { order: "${ input.order }" }, effect: idempotent }
`

// w3Activities are the activities of w3, which the worker has.
// constant: only read.
var w3Activities = []string{"bench.a", "bench.b", "bench.c"}

const (
	w3Input  = 170 // bytes of filling, which make an input of about 200
	w3Output = 90  // and an output of about 100
)

// W3Config says how runs of three activities in sequence are measured. Database
// and Now must be set.
type W3Config struct {
	// Database is sqlite:PATH or postgres://. Nothing that stands there is
	// touched: everything is in a new file beside PATH, or in a new schema of the
	// database, and goes when the measurement is over.
	Database string

	Mode       string // ModeEmbedded, which "" means, or ModeHTTP
	Inflight   int    // runs under way at a time in the closed loop, on all nodes together; 0 is DefaultInflight
	Committers int    // of the engine; 0 is what the store asks for
	Payload    int    // bytes of the input beside those of the measure; see DESIGN section 9

	// Nodes is how many engines share the database, each with connections, caches
	// and a worker of its own, among which runs are begun in turn; 0 is one. They
	// are in one process and know of each other only what the database tells, so
	// that more of them cost what sharing costs and bring no processors. SQLite
	// has one node.
	Nodes int

	// Steps is how many activities a run has in sequence, 0 being three; Branches is
	// how many it has side by side instead, 0 being none.
	Steps    int
	Branches int

	// Rate is how many runs are begun a second, whatever becomes of those before
	// (an open loop), each measured from when it was due. 0 is the closed loop,
	// in which the end of a run begins the next.
	Rate float64

	// Runs and For end the measurement, whichever comes first. 0 does not; when
	// neither does it is DefaultFor.
	Runs int
	For  time.Duration

	Warm     time.Duration // before anything counts; 0 is DefaultWarm, or with several nodes until they know each other, below 0 none
	FloorFor time.Duration // for each size of batch; 0 is DefaultFloorFor, below 0 no floor and no replay

	// Worker starts the worker of ModeHTTP: a process that serves that many slots
	// at the server, with the key in a file. It may be nil otherwise.
	Worker func(ctx context.Context, server, keyFile string, slots int) (WorkerProcess, error)

	// CPUProfile and Allocs get profiles of what was measured; nil gets none.
	CPUProfile, Allocs io.Writer

	Now  func() time.Time
	Told func(text string) // hears how far it is; it may be nil
}

// A WorkerProcess is a worker in a process of its own.
type WorkerProcess struct {
	CPU  func() (time.Duration, error) // that it has used
	Stop func() error                  // ends it and waits for that
}

// W3Result is what was measured. All but the floor is of the time after the
// warming up.
type W3Result struct {
	Name     string `json:"name"`
	Store    string `json:"store"`
	Mode     string `json:"mode"`
	Inflight int    `json:"inflight"`

	// Nodes, Steps and Branches are set when they are not those of W3: one node, three
	// activities in sequence.
	Nodes    int `json:"nodes,omitempty"`
	Steps    int `json:"steps,omitempty"`    // activities in sequence
	Branches int `json:"branches,omitempty"` // activities side by side instead

	Runs          int     `json:"runs"`
	Seconds       float64 `json:"seconds"`
	RunsPerSecond float64 `json:"runsPerSecond"`

	// P50MS, P95MS and P99MS are from the moment at which a run was sent (in the
	// open loop: was due) until its last step was durable.
	P50MS float64 `json:"p50Ms"`
	P95MS float64 `json:"p95Ms"`
	P99MS float64 `json:"p99Ms"`

	// CPUMSPerRun is the processor time of all processes of ringi: engine, worker
	// and load. That of a PostgreSQL server is its own.
	CPUMSPerRun float64 `json:"cpuMsPerRun"`

	// BytesPerRun and RowsPerRun are what the store was asked to write: rows
	// inserted, updated and deleted, and the bytes of their columns.
	BytesPerRun float64 `json:"bytesPerRun"`
	RowsPerRun  float64 `json:"rowsPerRun"`
	Commits     int64   `json:"commits"`
	MeanBatch   float64 `json:"meanBatch"` // transitions in a commit

	// Conflicts are transitions that were decided and not written, because another
	// node had written the run meanwhile; they were decided again. It is nil for one
	// node.
	Conflicts *int64 `json:"conflicts,omitempty"`

	FsyncP50MS float64 `json:"fsyncP50Ms"` // of a page appended to a file there; 0 where no file can be made
	FileSystem string  `json:"fileSystem"`

	// FloorRunsPerSecond is the bare driver writing the same rows in transactions
	// of FloorBatch, which of some sizes is the best; FloorSameBatch in those of
	// the engine's own mean; FloorP50MS is how long one run alone takes it.
	FloorRunsPerSecond float64 `json:"floorRunsPerSecond"`
	FloorBatch         int     `json:"floorBatch"`
	FloorSameBatch     float64 `json:"floorSameBatch"`
	FloorP50MS         float64 `json:"floorP50Ms"`
}

func (c *W3Config) setDefaults() error {
	if c.Mode == "" {
		c.Mode = ModeEmbedded
	}
	if c.Mode != ModeEmbedded && c.Mode != ModeHTTP {
		return fmt.Errorf("bench: there is no mode %q: take %s or %s", c.Mode, ModeEmbedded, ModeHTTP)
	}
	if c.Mode == ModeHTTP && c.Worker == nil {
		return errors.New("bench: over HTTP somebody has to start the worker")
	}
	if c.Rate < 0 || c.Runs < 0 || c.For < 0 || c.Inflight < 0 || c.Payload < 0 || c.Committers < 0 || c.Nodes < 0 || c.Steps < 0 || c.Branches < 0 || math.IsNaN(c.Rate) || math.IsInf(c.Rate, 0) {
		return errors.New("bench: rate, bounds, payload, nodes, steps, branches and runs in flight are not below 0")
	}
	if c.Inflight == 0 {
		c.Inflight = DefaultInflight
	}
	if c.Steps > 0 && c.Branches > 0 {
		return errors.New("bench: activities are in sequence or side by side: give steps or branches")
	}
	if c.Steps == 0 && c.Branches == 0 {
		c.Steps = w3Steps
	}
	c.Nodes = max(c.Nodes, 1)
	if c.Runs == 0 && c.For == 0 {
		c.For = DefaultFor
	}
	if c.Warm == 0 {
		if c.Warm = DefaultWarm; c.Nodes > 1 {
			c.Warm = nodesMeet
		}
	}
	c.Warm = max(c.Warm, 0)
	if c.FloorFor == 0 {
		c.FloorFor = DefaultFloorFor
	}
	if c.Told == nil {
		c.Told = func(string) {}
	}
	return nil
}

// W3 measures runs of three activities in sequence, and their floor on the same
// disk. It is an error when anything that it ran does not follow from its log.
func W3(ctx context.Context, cfg W3Config) (out W3Result, err error) {
	if err := cfg.setDefaults(); err != nil {
		return W3Result{}, err
	}
	p, err := newPlace(ctx, cfg.Database)
	if err != nil {
		return W3Result{}, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	if cfg.Nodes > 1 && p.kind == kindSQLite {
		return W3Result{}, errors.New("bench: a SQLite file has one node: name a PostgreSQL database to measure several")
	}
	out = W3Result{Name: "w3", Store: p.kind, Mode: cfg.Mode, Inflight: cfg.Inflight, Branches: cfg.Branches, FileSystem: p.fs}
	if cfg.Nodes > 1 {
		out.Nodes = cfg.Nodes
	}
	if cfg.Steps != w3Steps {
		out.Steps = cfg.Steps
	}
	// A directory that is not ours to write into tells nothing of its disk.
	if times, err := fsyncTimes(p.dir, cfg.Now); err == nil {
		out.FsyncP50MS = quantile(times, 50)
	}
	whole, err := measureW3(ctx, &cfg, p, &out)
	if err != nil || cfg.FloorFor < 0 {
		return out, err
	}
	floor, err := measureFloor(ctx, &cfg, whole, out.MeanBatch)
	out.FloorRunsPerSecond, out.FloorBatch, out.FloorSameBatch, out.FloorP50MS = floor.best, floor.batch, floor.same, quantile(floor.single, 50)
	return out, err
}

// measureW3 runs the nodes on a database, fills in what is measured and returns
// runs as they were written.
func measureW3(ctx context.Context, cfg *W3Config, p *place, out *W3Result) (whole []sample, err error) {
	l := newLoad(cfg)
	var nodes w3Nodes
	defer func() { err = errors.Join(err, nodes.close()) }()
	for range cfg.Nodes {
		n, err := openW3Node(ctx, cfg, p, l.ended)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if _, err := nodes[0].engine.Publish(ctx, ringi.Publication{Source: []byte(cfg.definition())}); err != nil {
		return nil, fmt.Errorf("bench: publish: %w", err)
	}
	if err := nodes.startWorkers(ctx, cfg); err != nil {
		return nil, err
	}
	l.nodes = nodes
	if err := errors.Join(l.run(ctx), nodes.stopWorkers()); err != nil {
		return nil, err
	}
	out.fill(l)
	cfg.Told(fmt.Sprintf("w3: %d runs in %.2f s, %.0f a second", out.Runs, out.Seconds, out.RunsPerSecond))
	if err := nodes.stop(); err != nil || cfg.FloorFor < 0 {
		return nil, err
	}
	return nodes.whole(), replayed(ctx, cfg, nodes[0].db)
}

func (out *W3Result) fill(l *load) {
	seconds := l.to.at.Sub(l.from.at).Seconds()
	out.Runs, out.Seconds = len(l.delays), seconds
	out.RunsPerSecond = float64(len(l.delays)) / seconds
	out.P50MS, out.P95MS, out.P99MS = quantile(l.delays, 50), quantile(l.delays, 95), quantile(l.delays, 99)
	ends := float64(max(1, l.to.ends-l.from.ends))
	out.CPUMSPerRun = (l.to.cpu - l.from.cpu).Seconds() * 1000 / ends
	wrote := l.to.wrote.since(l.from.wrote)
	out.RowsPerRun, out.BytesPerRun = float64(wrote.rows)/ends, float64(wrote.bytes)/ends
	out.Commits, out.MeanBatch = wrote.commits, float64(wrote.writes)/float64(max(1, wrote.commits))
	if len(l.nodes) > 1 {
		out.Conflicts = &wrote.lost
	}
}

// replayed folds every log again. What does not follow from it is an error.
func replayed(ctx context.Context, cfg *W3Config, db database) error {
	told := cfg.Now()
	r, err := replay.Run(ctx, db, replay.Query{Now: cfg.Now(), Told: func(sum replay.Report) {
		if now := cfg.Now(); now.Sub(told) >= progressEvery {
			told = now
			cfg.Told(fmt.Sprintf("%d runs replayed", sum.Runs))
		}
	}})
	if err != nil {
		return fmt.Errorf("bench: replay: %w", err)
	}
	if n := len(r.Mismatches); n > 0 {
		m := r.Mismatches[0]
		return fmt.Errorf("bench: %d of what stands beside the logs of %d runs does not follow from them; the first is the %s of run %s at event %d: %s", n, r.Runs, m.What, m.Run, m.Seq, m.Detail)
	}
	cfg.Told(fmt.Sprintf("replay: %d runs, %d events, no mismatch", r.Runs, r.Events))
	return nil
}

// profile begins the profiles. The returned function ends them.
func (c *W3Config) profile() (end func() error, err error) {
	if c.CPUProfile != nil {
		if err := pprof.StartCPUProfile(c.CPUProfile); err != nil {
			return nil, fmt.Errorf("bench: profile: %w", err)
		}
	}
	return func() error {
		if c.CPUProfile != nil {
			pprof.StopCPUProfile()
		}
		if c.Allocs != nil {
			return pprof.Lookup("allocs").WriteTo(c.Allocs, 0)
		}
		return nil
	}, nil
}
