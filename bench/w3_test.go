package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store/sqlite"
	"github.com/ringiflow/ringi/worker"
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

// BenchmarkW3 runs bench w3, DESIGN section 9: runs of three activities, each
// step durable with fsync, input of 200 bytes and outputs of 100, the worker
// through ringi.Service with tasks, leases and tokens as in production.
func BenchmarkW3(b *testing.B) {
	for _, inFlight := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) { runW3(b, inFlight) })
	}
}

func runW3(b *testing.B, inFlight int) {
	ctx := b.Context()
	db, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(b.TempDir(), "w3.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var commits, writes atomic.Int64
	slots := make(chan struct{}, inFlight)
	var running sync.WaitGroup
	eng, err := engine.New(engine.Config{
		Store: db, Records: db, Catalog: db, Events: db,
		Observer: engine.Observer{Committed: func(batch engine.Batch) {
			commits.Add(1)
			writes.Add(int64(len(batch.Writes)))
			for _, w := range batch.Writes {
				if w.Run != nil && w.Run.Status == ringi.Completed {
					<-slots
					running.Done()
				}
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	eng.Start()
	defer eng.Close()
	if p, err := eng.Publish(ctx, ringi.Publication{Source: []byte(w3)}); err != nil || p.Version == 0 {
		b.Fatalf("publish: %+v, %v", p, err)
	}
	stop := serveW3(b, eng, inFlight)
	defer stop()

	input := json.RawMessage(fmt.Sprintf(`{"order":"o-1","note":%q}`, strings.Repeat("x", 170)))
	b.ResetTimer()
	for range b.N {
		slots <- struct{}{}
		running.Add(1)
		go func() {
			r := eng.Do(ctx, ringi.Command{Actor: ringi.Actor{ID: "bench", Kind: ringi.Machine}, Do: ringi.Start{Definition: "w3", Input: input}})[0]
			if r.Err != nil {
				b.Error(r.Err)
			}
		}()
	}
	running.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(writes.Load())/float64(max(commits.Load(), 1)), "writes/commit")
}

// serveW3 runs the worker until the returned function is called.
func serveW3(b *testing.B, service ringi.Service, slots int) (stop func()) {
	b.Helper()
	output := strings.Repeat("y", 90)
	var activities []worker.Activity
	for _, name := range []string{"bench.a", "bench.b", "bench.c"} {
		activities = append(activities, worker.Func(name, func(context.Context, json.RawMessage) (string, error) { return output, nil }))
	}
	w, err := worker.New(worker.Config{Service: service, Queues: []worker.Queue{{Slots: slots, Activities: activities}}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}
