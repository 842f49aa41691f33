package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store"
)

// The definitions that the tests run.
const (
	threeSteps = `
ringi: v1
name: three
steps:
  - { id: a, activity: work.a, with: { n: 1 }, effect: pure }
  - { id: b, activity: work.b, with: { n: 2 }, effect: pure }
  - { id: c, activity: work.c, with: { n: 3 }, effect: pure }
`
	oneStep = `
ringi: v1
name: one
steps:
  - { id: a, activity: work.a, effect: idempotent, timeouts: { attempt: 10m, total: 1h } }
`
	mailStep = `
ringi: v1
name: mail
steps:
  - { id: a, activity: work.mail, effect: at_most_once, accepted: "a test", timeouts: { attempt: 10m, total: 1h } }
`
	waitStep = `
ringi: v1
name: wait
input: { type: object, required: [key], properties: { key: { type: string } } }
steps:
  - { id: w, wait: { event: paid, key: "${ input.key }" } }
output: { got: "${ steps.w.output }" }
`
	pauseStep = `
ringi: v1
name: nap
steps:
  - { id: w, wait: { for: 1h } }
`
	voteStep = `
ringi: v1
name: vote
steps:
  - id: v
    approval:
      title: Vote
      subject: { what: "it" }
      ask: [ { name: Team, from: [group:team], quorum: 3 } ]
`
)

// A world is an engine on a memory store, with a tap between them.
type world struct {
	t     *testing.T
	mem   *store.Memory
	tap   *tap
	eng   *engine.Engine
	conf  engine.Config
	since time.Time
}

// newWorld publishes all definitions and starts the engine. Inside a synctest
// bubble its clocks are the bubble's.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, store.NewMemory(store.MemoryConfig{}))
}

func newWorldOn(t *testing.T, mem *store.Memory) *world {
	t.Helper()
	w := &world{t: t, mem: mem, tap: &tap{Store: mem}, since: time.Now()}
	w.conf = engine.Config{Store: w.tap, Records: mem, Catalog: mem, Events: mem}
	w.start()
	for _, source := range []string{threeSteps, oneStep, mailStep, waitStep, pauseStep, voteStep} {
		p, err := w.eng.Publish(t.Context(), ringi.Publication{File: "test.yaml", Source: []byte(source), Actor: operator})
		if err != nil || p.Version != 1 {
			t.Fatalf("publish: %+v, %v", p, err)
		}
	}
	t.Cleanup(func() { w.eng.Close() })
	return w
}

var (
	operator = ringi.Actor{ID: "op", Kind: ringi.Machine}
	alice    = person("alice")
)

func person(id string) ringi.Actor {
	return ringi.Actor{ID: id, Kind: ringi.Person, Groups: []string{"team"}}
}

func (w *world) start() {
	w.t.Helper()
	var err error
	if w.eng, err = engine.New(w.conf); err != nil {
		w.t.Fatal(err)
	}
	w.eng.Start()
}

// crash drops the engine as a killed process would: not one of its writes
// reaches the store any more. restart begins a new one on the same store.
func (w *world) crash() {
	w.t.Helper()
	w.tap.cut()
	w.eng.Close()
}

func (w *world) restart() { w.restartOn(&tap{Store: w.mem}) }

func (w *world) restartOn(s *tap) {
	w.t.Helper()
	w.tap = s
	w.conf.Store = s
	w.start()
}

// publish stores a definition, which must be sound.
func (w *world) publish(source string) {
	w.t.Helper()
	p, err := w.eng.Publish(w.t.Context(), ringi.Publication{File: "test.yaml", Source: []byte("ringi: v1\n" + source), Actor: operator})
	if err != nil || p.Version == 0 {
		w.t.Fatalf("publish: %+v, %v", p, err)
	}
}

func (w *world) do(actor ringi.Actor, run ringi.RunID, a ringi.Action) ringi.Result {
	w.t.Helper()
	return w.eng.Do(w.t.Context(), ringi.Command{Run: run, Actor: actor, Do: a})[0]
}

func (w *world) begin(definition, key, input string) ringi.RunID {
	w.t.Helper()
	r := w.do(operator, "", ringi.Start{Definition: definition, Key: key, Input: json.RawMessage(input)})
	if r.Err != nil || !r.Created {
		w.t.Fatalf("start of %s: %+v", definition, r)
	}
	return r.Run
}

func (w *world) poll(worker string, most int, wait time.Duration) []ringi.Task {
	w.t.Helper()
	tasks, err := w.eng.Poll(w.t.Context(), ringi.PollRequest{Worker: worker, Queue: "default", Max: most, Wait: wait})
	if err != nil {
		w.t.Fatalf("poll: %v", err)
	}
	return tasks
}

// one polls until it has exactly one task.
func (w *world) one(worker string) ringi.Task {
	w.t.Helper()
	tasks := w.poll(worker, 1, 20*time.Second)
	if len(tasks) != 1 {
		w.t.Fatalf("poll: %d tasks, want 1", len(tasks))
	}
	return tasks[0]
}

func (w *world) complete(task ringi.Task, output string) ringi.Result {
	w.t.Helper()
	return w.do(operator, task.Run, ringi.CompleteActivity{CallRef: task.CallRef, Worker: "w", Output: json.RawMessage(output)})
}

func (w *world) beat(task ringi.Task) ringi.BeatAnswer {
	w.t.Helper()
	a, err := w.eng.Heartbeat(w.t.Context(), ringi.Beat{Run: task.Run, CallRef: task.CallRef, Worker: "w"})
	if err != nil {
		w.t.Fatalf("heartbeat: %v", err)
	}
	return a[0]
}

func (w *world) view(run ringi.RunID) ringi.RunView {
	w.t.Helper()
	v, err := w.eng.Run(w.t.Context(), 0, run)
	if err != nil {
		w.t.Fatalf("run %s: %v", run, err)
	}
	return v
}

func (w *world) wantStatus(run ringi.RunID, want ringi.Status) {
	w.t.Helper()
	if v := w.view(run); v.Status != want {
		w.t.Fatalf("run %s is %s (%+v), want %s", run, v.Status, v.Incidents, want)
	}
}

// kinds lists the kinds of the events of a run, in order.
func (w *world) kinds(run ringi.RunID) []string {
	w.t.Helper()
	page, err := w.eng.History(w.t.Context(), ringi.HistoryQuery{Run: run, Limit: 1000})
	if err != nil {
		w.t.Fatalf("history: %v", err)
	}
	var out []string
	for i, e := range page.Events {
		if e.Seq != int64(i)+1 {
			w.t.Fatalf("event %d has sequence %d", i+1, e.Seq)
		}
		out = append(out, e.Kind)
	}
	return out
}

func count(list []string, what string) (n int) {
	for _, x := range list {
		if x == what {
			n++
		}
	}
	return n
}

// clean replays everything and wants no mismatch.
func (w *world) clean() {
	w.t.Helper()
	r, err := replay.Run(w.t.Context(), w.mem, replay.Query{})
	if err != nil || len(r.Mismatches) > 0 {
		w.t.Fatalf("replay: %+v, %v", r, err)
	}
}

// A tap stands between engine and store: it counts, and fails on demand.
type tap struct {
	store.Store

	mu      sync.Mutex
	dead    bool
	away    bool
	commits [][]store.Write
	claims  int
	loads   int
	beats   int
	slow    time.Duration                               // what a heartbeat takes
	other   string                                      // names another database
	before  func(writes []store.Write) error            // may refuse a commit, or wait
	after   func(writes []store.Write, err error) error // may spoil an answer
}

func (s *tap) cut() { s.set(func() { s.dead = true }) }

func (s *tap) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *tap) gate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.away {
		return fmt.Errorf("cut off: %w", store.ErrUnavailable)
	}
	return nil
}

func (s *tap) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	if err := s.gate(); err != nil {
		return store.Committed{}, err
	}
	s.mu.Lock()
	before, after := s.before, s.after
	if len(writes) > 0 {
		s.commits = append(s.commits, writes)
	}
	s.mu.Unlock()
	if before != nil && len(writes) > 0 {
		if err := before(writes); err != nil {
			return store.Committed{}, err
		}
	}
	done, err := s.Store.Commit(ctx, writes...)
	s.set(func() { done.Incarnation += s.other })
	if after != nil && len(writes) > 0 {
		if err := after(writes, err); err != nil {
			return store.Committed{}, err
		}
	}
	return done, err
}

func (s *tap) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	s.set(func() { s.loads += len(keys) })
	return s.Store.Load(ctx, keys...)
}

func (s *tap) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	s.set(func() { s.claims++ })
	return s.Store.Claim(ctx, c)
}

func (s *tap) Beat(ctx context.Context, b ...store.Beat) ([]store.Beaten, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.beats++
	slow := s.slow
	s.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	return s.Store.Beat(ctx, b...)
}

func (s *tap) DueTimers(ctx context.Context, now, until time.Time, limit int) ([]store.DueTimer, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	return s.Store.DueTimers(ctx, now, until, limit)
}

func (s *tap) DueTasks(ctx context.Context, now time.Time, limit int) ([]store.DueTask, error) {
	if err := s.gate(); err != nil {
		return nil, err
	}
	return s.Store.DueTasks(ctx, now, limit)
}

func (s *tap) Settle(ctx context.Context, x store.Settlement) error {
	if err := s.gate(); err != nil {
		return err
	}
	return s.Store.Settle(ctx, x)
}

// bubble runs a test with real goroutines under a virtual clock.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		test(t, w)
		w.eng.Close()
	})
}
