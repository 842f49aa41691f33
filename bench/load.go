package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
)

// Runs that wait: for a timer, and for people.
const (
	timerYAML = `
ringi: v1
name: bench_timer
steps:
  - { id: rest, wait: { for: 90d } }
`
	approvalYAML = `
ringi: v1
name: bench_approval
steps:
  - id: look
    approval: { title: "Look", ask: [ { name: Finance, from: [group:finance], quorum: 1 } ], expires: { after: 90d, then: reject } }
`
)

const (
	loadTogether = 250     // commands of a call, which become one write
	loadPayload  = 200_000 // bytes of the run's input: most of what an input may have
	loadTries    = 9       // of which the middle one counts
)

// LoadConfig says how the loading of a long history is measured.
type LoadConfig struct {
	Database string // as in W3Config
	Events   int    // at least 2
	Now      func() time.Time
	Told     func(text string) // it may be nil
}

// LoadResult is how long a node takes to show a run of which it has nothing in
// memory: reading from the database what it needs, and folding that.
type LoadResult struct {
	Name   string  `json:"name"`
	Events int64   `json:"events"`
	LoadMS float64 `json:"loadMs"` // the middle of several loads
}

// Load makes a run with so many events, by pausing and resuming it again and
// again as an operator does, and measures how long it takes to load it. It is an
// error when the run does not follow from its log.
func Load(ctx context.Context, cfg LoadConfig) (out LoadResult, err error) {
	if cfg.Told == nil {
		cfg.Told = func(string) {}
	}
	if cfg.Events < 2 || cfg.Events > ringi.MaxHistory-loadTogether*2 {
		return out, fmt.Errorf("bench: a run has from 2 to %d events here", ringi.MaxHistory-loadTogether*2)
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
	defer func() { err = errors.Join(err, db.Close()) }()
	run, seq, err := makeLong(ctx, &cfg, db)
	if err != nil {
		return out, err
	}
	times, err := loadTimes(ctx, &cfg, db, run)
	if err != nil {
		return out, err
	}
	slices.Sort(times)
	if err := replayed(ctx, &W3Config{Now: cfg.Now, Told: cfg.Told}, db); err != nil {
		return out, err
	}
	return LoadResult{Name: "load", Events: seq, LoadMS: quantile(times, 50)}, nil
}

// makeLong makes the run.
func makeLong(ctx context.Context, cfg *LoadConfig, db database) (run ringi.RunID, seq int64, err error) {
	eng, err := engine.New(engine.Config{Store: db, Records: db, Catalog: db, Events: db, Now: cfg.Now})
	if err != nil {
		return "", 0, err
	}
	eng.Start()
	defer func() { err = errors.Join(err, eng.Close()) }()
	if _, err := eng.Publish(ctx, ringi.Publication{Source: []byte(timerYAML)}); err != nil {
		return "", 0, fmt.Errorf("bench: publish: %w", err)
	}
	who := ringi.Actor{ID: "bench", Kind: ringi.Machine}
	input, err := json.Marshal(strings.Repeat("x", loadPayload))
	if err != nil {
		return "", 0, err
	}
	r := eng.Do(ctx, ringi.Command{Actor: who, Do: ringi.Start{Definition: "bench_timer", Input: input}})[0]
	told := cfg.Now()
	for r.Err == nil && r.Seq < int64(cfg.Events) {
		run = r.Run
		commands := make([]ringi.Command, 0, loadTogether)
		for n := range min(loadTogether, cfg.Events-int(r.Seq)+1) {
			do := ringi.Action(ringi.Pause{Reason: "bench"})
			if n%2 == 1 {
				do = ringi.Resume{Reason: "bench"}
			}
			commands = append(commands, ringi.Command{Actor: who, Run: run, Do: do})
		}
		if len(commands)%2 == 1 { // it ends as it began
			commands = append(commands, ringi.Command{Actor: who, Run: run, Do: ringi.Resume{Reason: "bench"}})
		}
		results := eng.Do(ctx, commands...)
		r = results[len(results)-1]
		if now := cfg.Now(); now.Sub(told) >= progressEvery {
			told = now
			cfg.Told(fmt.Sprintf("%d of %d events", r.Seq, cfg.Events))
		}
	}
	if r.Err != nil {
		return "", 0, fmt.Errorf("bench: make a run with %d events: %w", cfg.Events, r.Err)
	}
	return run, r.Seq, nil
}

// loadTimes measures the call that shows a run, which never answers from memory.
func loadTimes(ctx context.Context, cfg *LoadConfig, db database, run ringi.RunID) ([]time.Duration, error) {
	eng, err := engine.New(engine.Config{Store: db, Records: db, Catalog: db, Events: db, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	times := make([]time.Duration, 0, loadTries)
	for range loadTries {
		begun := cfg.Now()
		if _, err := eng.Run(ctx, ringi.DefaultTenant, run); err != nil {
			return nil, fmt.Errorf("bench: load: %w", err)
		}
		times = append(times, cfg.Now().Sub(begun))
	}
	return times, eng.Close()
}
