package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/worker"
)

// A w3Node is an engine on the database of a measurement, with its worker.
type w3Node struct {
	db     database
	tap    *tap
	engine *engine.Engine
	worker WorkerProcess
}

// openW3Node starts a node whose runs' ends are told.
func openW3Node(ctx context.Context, cfg *W3Config, p *place, ended func(ringi.RunID, time.Time)) (*w3Node, error) {
	db, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	n := &w3Node{db: db, tap: &tap{Store: db, now: cfg.Now, open: map[store.Key]sample{}, ended: ended}}
	var fleet store.Fleet
	if cfg.Nodes > 1 {
		fleet, _ = db.(store.Fleet) // newPlace and W3 know that it is one
	}
	n.engine, err = engine.New(engine.Config{
		Store: n.tap, Records: db, Catalog: db, Events: db, Fleet: fleet, Now: cfg.Now, Committers: cmp.Or(cfg.Committers, db.Committers()), Quotas: cfg.quotas(),
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	n.engine.Start()
	return n, nil
}

// w3Nodes are the nodes of a measurement. What each method does, it does with all.
type w3Nodes []*w3Node

func (all w3Nodes) startWorkers(ctx context.Context, cfg *W3Config) (err error) {
	for _, n := range all {
		if n.worker, err = startW3Worker(ctx, cfg, n.engine); err != nil {
			return errors.Join(err, all.stopWorkers())
		}
	}
	return nil
}

func (all w3Nodes) stopWorkers() error {
	var errs []error
	for _, n := range all {
		if n.worker.Stop != nil {
			errs = append(errs, n.worker.Stop())
			n.worker = WorkerProcess{}
		}
	}
	return errors.Join(errs...)
}

// stop ends the engines, after which nothing is written any more.
func (all w3Nodes) stop() error {
	var errs []error
	for _, n := range all {
		if n.engine != nil {
			errs = append(errs, n.engine.Close())
			n.engine = nil
		}
	}
	return errors.Join(errs...)
}

// close gives everything back that is not yet.
func (all w3Nodes) close() error {
	errs := []error{all.stopWorkers(), all.stop()}
	for _, n := range all {
		errs = append(errs, n.db.Close())
	}
	return errors.Join(errs...)
}

// cpu is what workers in processes of their own have used.
func (all w3Nodes) cpu() (sum time.Duration, err error) {
	for _, n := range all {
		used, err := n.worker.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// wrote is what the stores were asked to write until now.
func (all w3Nodes) wrote() (sum written) {
	for _, n := range all {
		sum = sum.and(n.tap.written())
	}
	return sum
}

// whole are the runs that one node saw from their first row to their last.
func (all w3Nodes) whole() (whole []sample) {
	for _, n := range all {
		whole = append(whole, n.tap.whole...)
	}
	return whole
}

// startW3Worker starts the worker, where the mode says.
func startW3Worker(ctx context.Context, cfg *W3Config, service ringi.Service) (WorkerProcess, error) {
	if cfg.Mode == ModeHTTP {
		return startRemote(ctx, cfg, service)
	}
	w, err := NewW3Worker(service, cfg.slots())
	if err != nil {
		return WorkerProcess{}, err
	}
	// Not the caller's context: a worker that is interrupted leaves runs open.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(life) }()
	return WorkerProcess{
		CPU:  func() (time.Duration, error) { return 0, nil }, // counted with ours
		Stop: func() error { cancel(); return <-ended },
	}, nil
}

// openSlots is how many functions run at once in the open loop, whose runs
// under way nobody limits.
const openSlots = 1024

// slots is how many functions of one node's worker run at once.
func (c *W3Config) slots() int {
	all := max(1, c.Branches) * c.Inflight
	if c.Rate > 0 {
		all = openSlots
	}
	return (all + c.Nodes - 1) / c.Nodes
}

// NewW3Worker makes the worker of the measurement.
func NewW3Worker(service ringi.Service, slots int) (*worker.Worker, error) {
	output := strings.Repeat("y", w3Output)
	var activities []worker.Activity
	for _, name := range w3Activities {
		activities = append(activities, worker.Func(name, func(context.Context, json.RawMessage) (string, error) { return output, nil }))
	}
	return worker.New(worker.Config{Service: service, Queues: []worker.Queue{{Slots: slots, Activities: activities}}})
}
