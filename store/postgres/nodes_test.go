package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store/postgres"
)

// BenchmarkNodes is what one, two and three engines on one database do together:
// runs of three activities, each engine with workers of its own.
func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{1, 2, 3} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			g := newGang(b, nodes)
			defer g.stop()
			for b.Loop() {
				g.perform(b, 6000)
			}
			b.ReportMetric(float64(6000*b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(g.lost.Load())/float64(6000*b.N), "lost/run")
			for i := range g.commits {
				b.ReportMetric(float64(g.commits[i].Load())/float64(b.N), fmt.Sprintf("commits%d", i))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A gang is engines on one database that work as fast as they can.
type gang struct {
	engines []*engine.Engine
	stores  []*postgres.Store
	commits []atomic.Int64
	lost    atomic.Int64
	workers sync.WaitGroup
	end     context.CancelFunc
	ended   chan struct{} // one for each run that ended
}

func newGang(b *testing.B, nodes int) *gang {
	b.Helper()
	ctx, end := context.WithCancel(context.Background())
	g := &gang{commits: make([]atomic.Int64, nodes), end: end, ended: make(chan struct{}, 2000)}
	url := database(b)
	for i := range nodes {
		s, err := postgres.Open(ctx, postgres.Config{URL: url})
		if err != nil {
			b.Fatal(err)
		}
		e, err := engine.New(engine.Config{Store: s, Records: s, Catalog: s, Events: s, Observer: engine.Observer{Committed: func(x engine.Batch) {
			g.commits[i].Add(1)
			g.lost.Add(int64(x.Lost))
		}}})
		if err != nil {
			b.Fatal(err)
		}
		e.Start()
		g.engines, g.stores = append(g.engines, e), append(g.stores, s)
		for w := range 2 {
			g.workers.Go(func() { g.work(ctx, e, fmt.Sprint("w", i, w)) })
		}
	}
	const source = "ringi: v1\nname: three\nsteps:\n  - { id: a, activity: x.a, effect: pure }\n  - { id: b, activity: x.b, effect: pure }\n  - { id: c, activity: x.c, effect: pure }\n"
	if p, err := g.engines[0].Publish(ctx, ringi.Publication{File: "three.yaml", Source: []byte(source), Actor: ringi.Engine()}); err != nil || p.Version == 0 {
		b.Fatalf("publish: %v %+v", err, p)
	}
	return g
}

func (g *gang) stop() {
	g.end()
	g.workers.Wait()
	for i := range g.engines {
		_ = g.engines[i].Close() // always nil
		_ = g.stores[i].Close()
	}
}

// work completes what it is handed, and takes the next with each report.
func (g *gang) work(ctx context.Context, e *engine.Engine, name string) {
	actor := ringi.Actor{ID: name, Kind: ringi.Machine}
	poll := ringi.PollRequest{Tenant: ringi.DefaultTenant, Worker: name, Queue: "default", Max: 50, Wait: time.Second}
	for ctx.Err() == nil {
		tasks, err := e.Poll(ctx, poll)
		for err == nil && len(tasks) > 0 {
			commands := make([]ringi.Command, len(tasks))
			for i, t := range tasks {
				commands[i] = ringi.Command{Tenant: t.Tenant, Run: t.Run, Actor: actor, Do: ringi.CompleteActivity{CallRef: t.CallRef, Worker: name, Want: &poll}}
			}
			results := e.Do(ctx, commands...)
			last := tasks
			tasks = nil
			for i, r := range results {
				tasks = append(tasks, r.Tasks...)
				if last[i].Step == "c" && r.Err == nil && r.Answer.Outcome == ringi.Accepted {
					g.ended <- struct{}{}
				}
			}
		}
	}
}

// perform starts so many runs through all engines, 300 of each at a time, and
// waits for their ends.
func (g *gang) perform(b *testing.B, runs int) {
	var clients sync.WaitGroup
	var begun atomic.Int64
	turn := make(chan struct{}, 300*len(g.engines))
	for i := range 30 * len(g.engines) {
		clients.Go(func() {
			for begun.Add(1) <= int64(runs) {
				turn <- struct{}{}
				r := g.engines[i%len(g.engines)].Do(context.Background(), ringi.Command{Tenant: ringi.DefaultTenant, Actor: ringi.Engine(), Do: ringi.Start{Definition: "three"}})[0]
				if r.Err != nil {
					b.Errorf("start: %v", r.Err)
				}
			}
		})
	}
	for range runs {
		<-g.ended
		<-turn
	}
	clients.Wait()
}

// BenchmarkNotify is what a NOTIFY within a commit costs: 16 sessions that each
// write a row and commit, with it, without, and with one in a session beside
// them, twenty times a second.
func BenchmarkNotify(b *testing.B) {
	for name, text := range map[string]string{
		"none":   `insert into line values (repeat('x', 800))`,
		"within": `insert into line values (repeat('x', 800)); notify ringi, 'run'`,
		"beside": `insert into line values (repeat('x', 800))`,
	} {
		b.Run(name, func(b *testing.B) {
			url := database(b)
			connect(b, url).exec("create table line (text text)")
			listening, beside := connect(b, url), connect(b, url)
			listening.exec("listen ringi")
			ctx, stop := context.WithCancel(b.Context())
			var others, sessions sync.WaitGroup
			if name == "beside" {
				others.Go(func() {
					for ctx.Err() == nil {
						beside.exec("notify ringi, 'run'")
						pause(ctx, 50*time.Millisecond)
					}
				})
			}
			var done atomic.Int64
			for range 16 {
				c := connect(b, url)
				sessions.Go(func() {
					for done.Add(1) <= int64(b.N) {
						c.exec(text)
					}
				})
			}
			b.ResetTimer()
			sessions.Wait()
			b.StopTimer()
			stop()
			others.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
