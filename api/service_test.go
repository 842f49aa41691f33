package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
)

// The suite of ringi.Service: each of its tests runs against an engine in this
// process and against the client of a server over the same engine. What holds
// for one must hold for the other, so that nothing that uses a Service can tell
// which it has.

// contract is one test of the suite.
type contract func(t *testing.T, w *world)

// onBoth runs a test against both implementations.
func onBoth(t *testing.T, test contract) {
	t.Helper()
	t.Run("engine", func(t *testing.T) {
		eng := newEngine(t)
		test(t, &world{t: t, as: func(ringi.Actor) ringi.Service { return eng }})
	})
	t.Run("client", func(t *testing.T) {
		eng := newEngine(t)
		h := newServer(t, eng, func(c *api.Config) {
			c.Ready = func(context.Context) error { return eng.Ready() }
			c.Failed = func(_ context.Context, route string, err error) { t.Errorf("%s: %v", route, err) }
		})
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		test(t, &world{t: t, as: func(a ringi.Actor) ringi.Service {
			key := a.ID
			if len(a.Groups) > 0 {
				key += "@" + a.Groups[0]
			}
			c, err := api.NewClient(api.ClientConfig{Address: srv.URL, Key: key + ":admin"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}})
	})
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	mem := store.NewMemory(store.MemoryConfig{})
	eng, err := engine.New(engine.Config{Store: mem, Records: mem, Catalog: mem, Events: mem})
	if err != nil {
		t.Fatal(err)
	}
	eng.Start()
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

// The people and machines of the suite.
var (
	op    = ringi.Actor{ID: "m-op", Kind: ringi.Machine}
	hand  = ringi.Actor{ID: "m-hand", Kind: ringi.Machine}
	alice = ringi.Actor{ID: "alice", Kind: ringi.Person, Groups: []string{"finance"}}
	bob   = ringi.Actor{ID: "bob", Kind: ringi.Person, Groups: []string{"finance"}}
	carol = ringi.Actor{ID: "carol", Kind: ringi.Person, Groups: []string{"managers"}}
)

// A world is a Service as its users see it: one per actor.
type world struct {
	t  *testing.T
	as func(ringi.Actor) ringi.Service
}

func (w *world) publish(source string) ringi.Published {
	w.t.Helper()
	p, err := w.as(op).Publish(w.t.Context(), ringi.Publication{File: "test.yaml", Source: []byte(source), Actor: op})
	if err != nil || p.Version == 0 {
		w.t.Fatalf("publish: %+v, %v", p, err)
	}
	return p
}

func (w *world) do(a ringi.Actor, run ringi.RunID, do ringi.Action) ringi.Result {
	w.t.Helper()
	return w.as(a).Do(w.t.Context(), ringi.Command{Run: run, Actor: a, Do: do})[0]
}

// must is do for a command that counts.
func (w *world) must(a ringi.Actor, run ringi.RunID, do ringi.Action) ringi.Result {
	w.t.Helper()
	res := w.do(a, run, do)
	if res.Err != nil || res.Answer.Outcome != ringi.Accepted {
		w.t.Fatalf("%T: %+v", do, res)
	}
	return res
}

func (w *world) start(definition, key, input string) ringi.RunID {
	w.t.Helper()
	return w.must(op, "", ringi.Start{Definition: definition, Key: key, Input: json.RawMessage(input)}).Run
}

// task polls for one task.
func (w *world) task() ringi.Task {
	w.t.Helper()
	tasks, err := w.as(hand).Poll(w.t.Context(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: 10 * time.Second})
	if err != nil || len(tasks) != 1 {
		w.t.Fatalf("poll: %d tasks, %v", len(tasks), err)
	}
	return tasks[0]
}

func complete(task ringi.Task, output string) ringi.CompleteActivity {
	return ringi.CompleteActivity{CallRef: task.CallRef, Worker: "w", Output: json.RawMessage(output)}
}

func (w *world) view(run ringi.RunID) ringi.RunView {
	w.t.Helper()
	v, err := w.as(op).Run(w.t.Context(), 0, run)
	if err != nil {
		w.t.Fatalf("run %s: %v", run, err)
	}
	return v
}

func (w *world) list(a ringi.Actor, q ringi.Query) ringi.Page {
	w.t.Helper()
	p, err := w.as(a).List(w.t.Context(), q)
	if err != nil {
		w.t.Fatalf("%T: %v", q, err)
	}
	return p
}

// becomes waits until a run has a status.
func (w *world) becomes(run ringi.RunID, want ringi.Status) ringi.RunView {
	w.t.Helper()
	var v ringi.RunView
	w.until(fmt.Sprintf("run %s is %s", run, want), func() bool {
		v = w.view(run)
		return v.Status == want
	})
	return v
}

// until waits for a condition, for at most ten seconds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("after ten seconds it is not so that %s", what)
		}
	}
}

func (w *world) wantCode(what string, err error, want ringi.Code) {
	w.t.Helper()
	if got := ringi.ErrorCode(err); got != want {
		w.t.Errorf("%s: code %q (%v), want %q", what, got, err, want)
	}
}
