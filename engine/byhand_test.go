package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/faulty"
)

// A hand drives an engine round by round, under a clock of its own.
type hand struct {
	t     *testing.T
	now   time.Time
	mem   *store.Memory
	store *faulty.Store
	eng   *engine.Engine
}

func newHand(t *testing.T) *hand {
	t.Helper()
	h := &hand{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return h.now }
	h.mem = store.NewMemory(store.MemoryConfig{Now: clock})
	h.store = faulty.New(faulty.Config{Store: h.mem, Records: h.mem, Catalog: h.mem, Events: h.mem})
	var err error
	if h.eng, err = engine.New(engine.Config{Store: h.store, Records: h.store, Catalog: h.store, Events: h.store, Now: clock}); err != nil {
		t.Fatal(err)
	}
	return h
}

// rounds lets every part of the given names do a round; none is all.
func (h *hand) rounds(names ...string) {
	h.t.Helper()
	for _, p := range h.eng.Parts() {
		for _, name := range append(names, "committer") {
			if p.Name == name {
				if _, err := p.Round(h.t.Context()); err != nil {
					h.t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
}

// pass lets time go by, with a pulse every second.
func (h *hand) pass(d time.Duration) {
	h.t.Helper()
	for range d / time.Second {
		h.now = h.now.Add(time.Second)
		h.rounds("pulse")
	}
}

func (h *hand) kinds(run ringi.RunID) (out []string) {
	h.t.Helper()
	page, err := h.eng.History(h.t.Context(), ringi.HistoryQuery{Run: run})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range page.Events {
		out = append(out, e.Kind)
	}
	return out
}

// A node that looks at a restored database before it knows that it is one must
// not believe its leases: their workers may have extended them since.
func TestALeaseIsNotLostRightAfterARestoreThatNobodyNoticed(t *testing.T) { // W31
	h := newHand(t)
	if _, err := h.eng.Publish(t.Context(), ringi.Publication{File: "x", Source: []byte(oneStep), Actor: operator}); err != nil {
		t.Fatal(err)
	}
	var started ringi.Result
	h.eng.Submit(t.Context(), ringi.Command{Actor: operator, Do: ringi.Start{Definition: "one"}}, func(r ringi.Result) { started = r })
	h.rounds()
	asked, err := h.eng.Ask(context.Background(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	tasks, done := asked.Tasks()
	if !done || len(tasks) != 1 {
		t.Fatalf("%d tasks, %v, want one at once", len(tasks), done)
	}
	if _, err := h.eng.Heartbeat(t.Context(), ringi.Beat{Run: started.Run, CallRef: tasks[0].CallRef, Worker: "w"}); err != nil {
		t.Fatal(err)
	}
	h.pass(31 * time.Second)
	h.store.Restored("another")
	h.rounds("leases")
	h.rounds()
	if n := count(h.kinds(started.Run), "ActivityTimedOut"); n != 0 {
		t.Errorf("the attempt was given up at once")
	}
	h.pass(31 * time.Second)
	h.rounds("leases")
	h.rounds()
	if n := count(h.kinds(started.Run), "ActivityTimedOut"); n != 1 {
		t.Errorf("the attempt was given up %d times after a whole lease, want once", n)
	}
}

// A node that was away finds a wait's time-out due, and beside it an event
// that another node stored meanwhile.
func TestAnEventThatWasStoredInTimeBeatsTheTimer(t *testing.T) { // W17, TC-04, TC-52
	for _, c := range []struct {
		sent time.Duration // after the wait was opened, of an hour
		want ringi.Status
	}{
		{50 * time.Minute, ringi.Completed},
		{time.Hour, ringi.Completed}, // the very instant still counts
		{time.Hour + time.Second, ringi.Failed},
	} {
		h := newHand(t)
		source := `
ringi: v1
name: n
steps:
  - { id: w, wait: { event: paid, key: k, timeout: { after: 1h, then: fail } } }
`
		if _, err := h.eng.Publish(t.Context(), ringi.Publication{Source: []byte(source), Actor: operator}); err != nil {
			t.Fatal(err)
		}
		var started ringi.Result
		h.eng.Submit(t.Context(), ringi.Command{Actor: operator, Do: ringi.Start{Definition: "n"}}, func(r ringi.Result) { started = r })
		h.rounds()
		h.now = h.now.Add(c.sent)
		e := ringi.SentEvent{ID: "1", Name: "paid", Key: "k", SentAt: h.now}
		if _, err := h.mem.Send(t.Context(), 1, e, h.now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
		h.rounds("pulse")
		h.rounds("timers")
		h.rounds("waits")
		h.rounds()
		v, err := h.eng.Run(t.Context(), 0, started.Run)
		if err != nil || v.Status != c.want {
			t.Errorf("sent after %s: the run is %s (%+v), %v, want %s", c.sent, v.Status, v.Cause, err, c.want)
		}
	}
}
