package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A page of each sweep is at most this many rows: 500 leases, 500 timers, 1000
// pairs. So many broken runs must not keep it to themselves.
const sickRuns = 1000

// sickly runs a test on an engine whose rules fail for what the sweeps tell
// runs of the definition bad.
func sickly(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := store.NewMemory(store.MemoryConfig{})
		w := &world{t: t, mem: mem, tap: &tap{Store: mem}, since: time.Now()}
		w.conf = engine.Config{
			Store: w.tap, Records: mem, Catalog: mem, Events: mem,
			Decide: func(d *workflow.Definition, s *ringi.State, c ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
				switch c.Do.(type) {
				case ringi.ExpireLease, ringi.FireTimer, ringi.DeliverEvent:
					if d.Name == "bad" {
						panic("a fault that only this definition meets")
					}
				}
				return ringi.Decide(d, s, c, ev)
			},
		}
		w.start()
		defer w.eng.Close()
		test(t, w)
	})
}

func TestBrokenRunsKeepNoOtherLeaseFromEnding(t *testing.T) { // TC-38, TC-80, W11
	sickly(t, func(t *testing.T, w *world) {
		w.publish("name: bad\nsteps:\n  - { id: a, activity: work.bad, effect: pure }\n")
		w.publish(onceStep)
		for range sickRuns {
			w.begin("bad", "", "null")
		}
		for taken := 0; taken < sickRuns; {
			tasks := w.poll("w", 256, 0)
			taken += len(tasks)
			for _, task := range tasks {
				w.beat(task)
			}
		}
		<-time.After(time.Second)
		run := w.begin("once", "", "null")
		w.beat(w.one("w")) // and dies
		<-time.After(35 * time.Second)
		w.wantStatus(run, ringi.Failed)
	})
}

func TestBrokenRunsHoldUpNoTimer(t *testing.T) { // TC-38, TC-80, W17
	sickly(t, func(t *testing.T, w *world) {
		w.publish("name: bad\nsteps:\n  - { id: w, wait: { for: 20s } }\n")
		w.publish("name: good\nsteps:\n  - { id: w, wait: { for: 20s } }\n")
		for range sickRuns {
			w.begin("bad", "", "null")
		}
		<-time.After(10 * time.Second)
		run := w.begin("good", "", "null")
		<-time.After(21 * time.Second)
		w.wantStatus(run, ringi.Completed)
	})
}

func TestBrokenRunsHoldUpNoEvent(t *testing.T) { // TC-38, TC-52
	sickly(t, func(t *testing.T, w *world) {
		wait := "input: { type: object, required: [key], properties: { key: { type: string } } }\n" +
			"steps:\n  - { id: w, wait: { event: paid, key: \"${ input.key }\" } }\n"
		w.publish("name: bad\n" + wait)
		w.publish("name: good\n" + wait)
		send := func(key string) { // as another node does that dies after it
			e := ringi.SentEvent{ID: key, Name: "paid", Key: key, SentAt: time.Now().UTC()}
			if _, err := w.mem.Send(t.Context(), 1, e, time.Now().Add(24*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range sickRuns {
			key := fmt.Sprint(i)
			w.begin("bad", "", fmt.Sprintf(`{"key":%q}`, key))
			send(key)
		}
		<-time.After(3 * time.Second)
		run := w.begin("good", "", `{"key":"good"}`)
		<-time.After(time.Second)
		send("good")
		<-time.After(3 * time.Second)
		w.wantStatus(run, ringi.Completed)
	})
}
