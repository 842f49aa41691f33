package conformance_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store/sqlite"
)

const (
	// asWorker makes the test binary be a worker: in Go, or of a command.
	asWorker = "RINGI_CONFORMANCE_WORKER"
	// theKey is the one that the server knows.
	theKey = "conformance"
	// patience is how long something may take that must come true. It is never
	// waited for in full unless something is broken.
	patience = 60 * time.Second
)

func TestMain(m *testing.M) {
	switch os.Getenv(asWorker) {
	case "go":
		os.Exit(goWorker(goActivities()))
	case "command":
		os.Exit(goWorker(commandActivities()))
	}
	flag.Parse()
	// Scenarios wait more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A world is what a scenario plays in: a server that can be restarted, a proxy
// in front of it, a ledger beside it, and the language whose worker is tried.
type world struct {
	*testing.T
	language language
	queue    string // of this scenario and language alone
	lease    string // of its work: long enough for a machine that stalls, unless the scenario waits for its end
	keyFile  string
	ledger   *ledger
	proxy    *proxy

	database string
	store    *sqlite.Store
	engine   *engine.Engine
	locked   atomic.Bool // the key is not known
}

func machine() ringi.Actor { return ringi.Actor{ID: "conformance", Kind: ringi.Machine} }

func newWorld(t *testing.T, l language, scenario string) *world {
	t.Helper()
	w := &world{
		T: t, language: l, queue: scenario + "-" + l.name, lease: "3s", keyFile: writeKey(t), ledger: newLedger(t), proxy: newProxy(t),
		database: filepath.Join(t.TempDir(), "ringi.db"),
	}
	w.up()
	t.Cleanup(w.down)
	return w
}

// up starts the server on its database.
func (w *world) up() {
	w.Helper()
	// A worker that is being started elsewhere in this process may have the lock of
	// the database for a moment, between its fork and its exec.
	w.until(func() string {
		store, err := sqlite.Open(context.WithoutCancel(w.Context()), sqlite.Config{Path: w.database})
		if err != nil {
			return err.Error()
		}
		w.store = store
		return ""
	})
	var err error
	if w.engine, err = engine.New(engine.Config{Store: w.store, Records: w.store, Catalog: w.store, Events: w.store}); err != nil {
		w.Fatal(err)
	}
	w.engine.Start()
	server, err := api.New(api.Config{
		Service: w.engine,
		Who: func(r *http.Request) (api.Identity, error) {
			if w.locked.Load() || r.Header.Get("Authorization") != "Bearer "+theKey {
				return api.Identity{}, &ringi.Error{Code: ringi.CodeUnauthenticated, Message: "no such key"}
			}
			return identity(), nil
		},
		Failed: func(_ context.Context, route string, err error) { w.Errorf("%s: %v", route, err) },
	})
	if err != nil {
		w.Fatal(err)
	}
	w.proxy.reaches(server)
}

// down stops the server. Its database stays.
func (w *world) down() {
	w.Helper()
	w.proxy.reaches(nil)
	if w.engine == nil || w.store == nil {
		return // it did not come up, and the test has said why
	}
	if err := w.engine.Close(); err != nil {
		w.Error(err)
	}
	if err := w.store.Close(); err != nil {
		w.Error(err)
	}
	w.engine, w.store = nil, nil
}

// definition makes one of steps.
func (w *world) definition(steps string) string {
	name := strings.NewReplacer("-", "_").Replace(w.queue)
	return fmt.Sprintf("ringi: v1\nname: %s\ndefaults: { queue: %s, timeouts: { heartbeat: %s }, retry: { backoff: { initial: 50ms } } }\nsteps:\n%s\n", name, w.queue, w.lease, steps)
}

// starts publishes the steps and starts a run of them.
func (w *world) starts(steps, input string) ringi.RunID {
	w.Helper()
	source := w.definition(steps)
	published, err := w.engine.Publish(w.Context(), ringi.Publication{Tenant: 1, Actor: machine(), Source: []byte(source)})
	if err != nil || published.Version == 0 {
		w.Fatalf("publish: %+v, %v\n%s", published, err, source)
	}
	res := w.do("", ringi.Start{Definition: published.Name, Input: json.RawMessage(input)})
	return res.Run
}

// do sends a command that must count.
func (w *world) do(run ringi.RunID, action ringi.Action) ringi.Result {
	w.Helper()
	res := w.engine.Do(w.Context(), ringi.Command{Tenant: 1, Run: run, Actor: machine(), Do: action})[0]
	if res.Err != nil {
		w.Fatalf("%T: %v", action, res.Err)
	}
	return res
}

func (w *world) view(run ringi.RunID) ringi.RunView {
	w.Helper()
	view, err := w.engine.Run(w.Context(), 1, run)
	if err != nil {
		w.Fatal(err)
	}
	return view
}

// becomes waits until a run has a status.
func (w *world) becomes(run ringi.RunID, want ringi.Status) ringi.RunView {
	w.Helper()
	var view ringi.RunView
	w.until(func() string {
		if view = w.view(run); view.Status == want {
			return ""
		}
		return fmt.Sprintf("the run is %s, not %s: %s", view.Status, want, told(view))
	})
	return view
}

// until waits for something to come true. The condition says what it lacks.
func (w *world) until(lacks func() string) {
	w.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	end := time.After(patience)
	for {
		lack := lacks()
		if lack == "" {
			return
		}
		select {
		case <-look.C:
		case <-end:
			w.Fatalf("after %v: %s", patience, lack)
		}
	}
}

// begun waits until so many effects were begun at a gate.
func (w *world) begun(gate string, n int) {
	w.Helper()
	w.until(func() string {
		if got := w.ledger.effects(gate); len(got) < n {
			return fmt.Sprintf("%d of %d effects at %s: %+v", len(got), n, gate, got)
		}
		return ""
	})
}

// step is a step of a run as one reads it.
func (w *world) step(view ringi.RunView, id string) ringi.StepView {
	w.Helper()
	for _, s := range view.Steps {
		if s.ID == id {
			return s
		}
	}
	w.Fatalf("no step %s in %s", id, told(view))
	return ringi.StepView{}
}

// once checks that a step needed one attempt and had its effect once.
func (w *world) once(view ringi.RunView, step, gate string) {
	w.Helper()
	if s := w.step(view, step); s.Attempts != 1 || s.Outcome != "succeeded" {
		w.Errorf("step %s: %+v, want one attempt that succeeded", step, s)
	}
	if got := w.ledger.effects(gate); len(got) != 1 {
		w.Errorf("%d effects at %s, want one: %+v", len(got), gate, got)
	}
}

func told(view ringi.RunView) string {
	text, err := json.Marshal(view)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
