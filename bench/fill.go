package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/engine/rows"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// fillBatch is how many runs a transaction of the filling writes.
const fillBatch = 1000

// A fill puts runs into a database that the rules have decided and the store
// has written, only many at a time and each in one transition. They can be
// replayed like all others.
type fill struct {
	db   database
	now  func() time.Time
	told func(string)
}

// all fills in finished and waiting runs.
func (f *fill) all(ctx context.Context, finished, waiting int) error {
	if err := f.publish(ctx, w3, timerYAML, approvalYAML); err != nil {
		return err
	}
	input := json.RawMessage(fmt.Sprintf(`{"order":"o-1","note":%q}`, strings.Repeat("x", w3Input)))
	timers := waiting / 2
	return errors.Join(
		f.runs(ctx, w3, finished, ringi.Start{Definition: "w3", Version: 1, Input: input}, finishW3),
		f.runs(ctx, timerYAML, timers, ringi.Start{Definition: "bench_timer", Version: 1, Input: json.RawMessage("null")}, nil),
		f.runs(ctx, approvalYAML, waiting-timers, ringi.Start{Definition: "bench_approval", Version: 1, Input: json.RawMessage("null")}, nil),
	)
}

func (f *fill) publish(ctx context.Context, sources ...string) (err error) {
	eng, err := engine.New(engine.Config{Store: f.db, Records: f.db, Catalog: f.db, Events: f.db, Now: f.now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	for _, source := range sources {
		p, err := eng.Publish(ctx, ringi.Publication{Source: []byte(source)})
		if err == nil && p.Version != 1 {
			err = fmt.Errorf("version %d, problems %v", p.Version, p.Problems)
		}
		if err != nil {
			return fmt.Errorf("bench: publish: %w", err)
		}
	}
	return nil
}

// finishW3 is what a worker reports to a run that stands so; nil when it ended.
func finishW3(s *ringi.State) ringi.Action {
	for _, t := range ringi.Standing(s).Tasks {
		return ringi.CompleteActivity{
			Worker: "bench", Output: json.RawMessage(`"` + strings.Repeat("y", w3Output) + `"`),
			CallRef: ringi.CallRef{Step: t.Step, Direction: t.Direction, Attempt: t.Attempt, Token: t.Token(1)},
		}
	}
	return nil
}

// runs writes so many runs of a definition, prepared by all processors.
func (f *fill) runs(ctx context.Context, source string, count int, start ringi.Start, then func(*ringi.State) ringi.Action) error {
	def, problems := workflow.Parse("bench", []byte(source))
	if def == nil {
		return fmt.Errorf("bench: the definition has problems: %v", problems)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	batches := make(chan []store.Write)
	next := make(chan int)
	go func() {
		defer close(next)
		for from := 0; from < count; from += fillBatch {
			select {
			case next <- min(fillBatch, count-from):
			case <-ctx.Done():
				return
			}
		}
	}()
	var preparing sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		preparing.Go(func() {
			for n := range next {
				writes := make([]store.Write, n)
				for i := range writes {
					var err error
					if writes[i], err = oneRun(def, f.now(), start, then); err != nil {
						fail(err)
						return
					}
				}
				select {
				case batches <- writes:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() { preparing.Wait(); close(batches) }()
	err := f.write(ctx, def.Name, count, batches)
	if err != nil {
		fail(err)
		preparing.Wait()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (f *fill) write(ctx context.Context, name string, count int, batches <-chan []store.Write) error {
	done, told := 0, f.now()
	for writes := range batches {
		c, err := f.db.Commit(ctx, writes...)
		if err == nil && len(c.Lost) > 0 {
			err = fmt.Errorf("%d of %d runs were not written", len(c.Lost), len(writes))
		}
		if err != nil {
			return fmt.Errorf("bench: fill: %w", err)
		}
		done += len(writes)
		if now := f.now(); now.Sub(told) >= progressEvery {
			told = now
			f.told(fmt.Sprintf("%d of %d runs of %s", done, count, name))
		}
	}
	return nil
}

// oneRun decides a run as far as then goes, and makes one write of it.
func oneRun(def *workflow.Definition, at time.Time, start ringi.Start, then func(*ringi.State) ringi.Action) (store.Write, error) {
	at = at.UTC().Truncate(time.Microsecond)
	id := freshRun(at, rand.Uint64(), rand.Uint64())
	s := &ringi.State{Tenant: ringi.DefaultTenant, Run: store.RunText(id[:])}
	w := store.Write{Key: store.Key{Tenant: s.Tenant, Run: s.Run}, Commit: store.CommitID(id), First: 1}
	before := ringi.Standing(s)
	var events []ringi.Event
	for do := ringi.Action(start); do != nil; {
		d, err := ringi.Decide(def, s, ringi.Command{
			Tenant: s.Tenant, Run: s.Run, At: at, Actor: ringi.Actor{ID: "bench", Kind: ringi.Machine}, Do: do,
		}, workflow.CEL{})
		if err != nil {
			return w, fmt.Errorf("bench: decide: %w", err)
		}
		events = append(events, d.Events...)
		s, do = d.After, nil
		if then != nil {
			do = then(s)
		}
	}
	body, err := ringi.EncodeEvents(events)
	if err != nil {
		return w, err
	}
	w.Last, w.Body, w.Head = s.Seq, body, store.Chain(nil, body)
	rows.Change(&w, before, ringi.Standing(s), s)
	return w, nil
}
