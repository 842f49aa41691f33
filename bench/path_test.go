package bench_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/engine/rows"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// w3Start begins a run of the measure.
func w3Start() ringi.Start {
	return ringi.Start{Definition: "w3", Version: 1, Input: json.RawMessage(fmt.Sprintf(`{"order":"o-1","note":%q}`, strings.Repeat("x", 170)))}
}

// BenchmarkPath is what a run of the measure costs on the way to its commits,
// without a disk: rules is deciding, folding, encoding and hashing its four
// transitions and deriving their rows; engine is everything, on the store in
// memory, with a worker in the same process.
func BenchmarkPath(b *testing.B) {
	b.Run("rules", benchmarkRules)
	b.Run("engine", benchmarkEngine)
}

func benchmarkRules(b *testing.B) {
	def, problems := bench.W3Definition()
	if def == nil {
		b.Fatal(problems)
	}
	output := json.RawMessage(`"` + strings.Repeat("y", 90) + `"`)
	now := time.UnixMicro(1_800_000_000_000_000).UTC()
	var ev ringi.Evaluator = workflow.CEL{}
	b.ReportAllocs()
	for b.Loop() {
		s := &ringi.State{Tenant: ringi.DefaultTenant, Run: "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"}
		var head []byte
		stand := ringi.Standing(s)
		do := ringi.Action(w3Start())
		for range 4 {
			d, err := ringi.Decide(def, s, ringi.Command{Tenant: s.Tenant, Run: s.Run, At: now, Do: do}, ev)
			if err != nil {
				b.Fatal(err)
			}
			w := store.Write{First: s.Seq + 1}
			s = d.After
			if w.Body, err = ringi.EncodeEvents(d.Events); err != nil {
				b.Fatal(err)
			}
			head = store.Chain(head, w.Body)
			next := ringi.Standing(s)
			rows.Change(&w, stand, next, s)
			if stand = next; len(stand.Tasks) > 0 {
				t := stand.Tasks[0]
				do = ringi.CompleteActivity{Worker: "w", Output: output, CallRef: ringi.CallRef{Step: t.Step, Direction: t.Direction, Attempt: t.Attempt, Token: t.Token(1)}}
			}
		}
		if s.End == nil || s.End.Status != ringi.Completed {
			b.Fatalf("the run is %s", s.Status())
		}
	}
}

func benchmarkEngine(b *testing.B) {
	const inFlight = 64
	db := store.NewMemory(store.MemoryConfig{})
	slots := make(chan struct{}, inFlight)
	var running sync.WaitGroup
	eng, err := engine.New(engine.Config{
		Store: db, Records: db, Catalog: db, Events: db,
		Observer: engine.Observer{Committed: func(batch engine.Batch) {
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
	if err := bench.PublishW3(b.Context(), eng); err != nil {
		b.Fatal(err)
	}
	stop, err := bench.ServeW3(eng, inFlight)
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	do := w3Start()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		slots <- struct{}{}
		running.Add(1)
		go func() {
			r := eng.Do(b.Context(), ringi.Command{Actor: ringi.Actor{ID: "bench", Kind: ringi.Machine}, Do: do})[0]
			if r.Err != nil {
				b.Error(r.Err)
			}
		}()
	}
	running.Wait()
	b.StopTimer()
}
