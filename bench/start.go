package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
)

// StartConfig says how the start of a node on a database that is full of runs is
// measured.
type StartConfig struct {
	Database string // as in W3Config
	Finished int    // runs of three activities that have completed
	Waiting  int    // runs that wait, half of them for a timer and half for an approval

	// Node starts a process that calls Serve on the database and returns when it
	// has answered that it is ready. The rest of its answer comes from Report.
	Node func(ctx context.Context, database string) (NodeProcess, error)

	Now  func() time.Time
	Told func(text string) // it may be nil
}

// A NodeProcess is a node in a process of its own.
type NodeProcess struct {
	Report func() (NodeReport, error) // waits until it has measured, and ends it
}

// A NodeReport is what a node measured of itself.
type NodeReport struct {
	RSSBytes       int64   `json:"rssBytes"`       // in memory, when it has been idle for a while
	IdleCPUPercent float64 `json:"idleCpuPercent"` // of one processor, meanwhile
	ClaimP99MS     float64 `json:"claimP99Ms"`     // of polls that take one ready task each
}

// StartResult is what was measured.
type StartResult struct {
	Name         string  `json:"name"`
	ReadySeconds float64 `json:"readySeconds"` // from the start of the process until it answers
	NodeReport
}

// Start fills a database and measures how a node starts on it.
func Start(ctx context.Context, cfg StartConfig) (out StartResult, err error) {
	if cfg.Told == nil {
		cfg.Told = func(string) {}
	}
	if cfg.Finished < 0 || cfg.Waiting < 0 {
		return out, errors.New("bench: there are no fewer than 0 runs")
	}
	p, err := newPlace(ctx, cfg.Database)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	db, err := p.open(ctx)
	if err != nil {
		return out, err
	}
	f := fill{db: db, now: cfg.Now, told: cfg.Told}
	if err := errors.Join(f.all(ctx, cfg.Finished, cfg.Waiting), db.Close()); err != nil {
		return out, err
	}
	begun := cfg.Now()
	node, err := cfg.Node(ctx, p.named)
	if err != nil {
		return out, err
	}
	out.Name, out.ReadySeconds = "start", cfg.Now().Sub(begun).Seconds()
	out.NodeReport, err = node.Report()
	return out, err
}

const (
	idleSettle = 2 * time.Second // until what belongs to the start is over
	idleFor    = 5 * time.Second
	nodeClaims = 200
)

// ServeNode is the node: it calls ready when it can answer, measures itself and
// returns. The database is named as newPlace names it.
func ServeNode(ctx context.Context, named string, now func() time.Time, ready func()) (out NodeReport, err error) {
	p, err := placeOf(named)
	if err != nil {
		return out, err
	}
	db, err := p.open(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := engine.New(engine.Config{Store: db, Records: db, Catalog: db, Events: db, Now: now})
	if err != nil {
		return out, err
	}
	eng.Start()
	defer func() { err = errors.Join(err, eng.Close()) }()
	// What shows that it is ready is a list, which reads, and a definition, which writes.
	if _, err := eng.List(ctx, ringi.RunQuery{Tenant: ringi.DefaultTenant, Limit: 20}); err != nil {
		return out, err
	}
	if _, err := eng.Publish(ctx, ringi.Publication{Source: []byte(w3)}); err != nil {
		return out, err
	}
	ready()
	if err := pause(ctx, idleSettle); err != nil {
		return out, err
	}
	from := CPU()
	if err := pause(ctx, idleFor); err != nil {
		return out, err
	}
	out.IdleCPUPercent = 100 * (CPU() - from).Seconds() / idleFor.Seconds()
	if out.RSSBytes, err = resident(); err != nil {
		return out, err
	}
	claims, err := timeClaims(ctx, eng, now)
	out.ClaimP99MS = quantile(claims, 99)
	return out, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timeClaims makes tasks ready for which nobody waits, and takes them one by one.
func timeClaims(ctx context.Context, service ringi.Service, now func() time.Time) ([]time.Duration, error) {
	input := json.RawMessage(`{"order":"o-1"}`)
	commands := make([]ringi.Command, nodeClaims)
	for i := range commands {
		commands[i] = ringi.Command{Actor: ringi.Actor{ID: "bench", Kind: ringi.Machine}, Do: ringi.Start{Definition: "w3", Input: input}}
	}
	for _, r := range service.Do(ctx, commands...) {
		if r.Err != nil {
			return nil, fmt.Errorf("bench: start: %w", r.Err)
		}
	}
	times := make([]time.Duration, 0, nodeClaims)
	for range nodeClaims {
		begun := now()
		tasks, err := service.Poll(ctx, ringi.PollRequest{Worker: "bench", Queue: "default", Max: 1})
		if err == nil && len(tasks) != 1 {
			err = fmt.Errorf("%d tasks", len(tasks))
		}
		if err != nil {
			return nil, fmt.Errorf("bench: claim: %w", err)
		}
		times = append(times, now().Sub(begun))
	}
	slices.Sort(times)
	return times, nil
}
