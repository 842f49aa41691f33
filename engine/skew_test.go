package engine_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// wrongBy is a clock that is wrong. Setting a machine's clock moves no monotonic
// reading, and only differences between those count: so a node that is wrong
// stays so by the same amount, as far as an engine can tell.
func wrongBy(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

const shortNap = "name: short_nap\nsteps:\n  - { id: w, wait: { for: 3s } }\n"

// W17, W31, TC-07: the clocks of three nodes differ by minutes, and that of the
// database jumps; what is written follows the database's. No timer fires before its time or twice, no
// lease is lost that a worker holds, and no history goes back.
func TestNodesWhoseClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64 // of the database
		mem := store.NewMemory(store.MemoryConfig{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		first := newWorldOn(t, mem)
		nodes := []*world{first}
		for _, d := range []time.Duration{7 * time.Minute, -5 * time.Minute} {
			n := &world{t: t, mem: mem, tap: &tap{Store: mem}, conf: first.conf}
			n.conf.Store, n.conf.Now = n.tap, wrongBy(d)
			n.start()
			defer n.eng.Close()
			nodes = append(nodes, n)
		}
		first.publish(shortNap)
		var naps []ringi.RunID
		var held []ringi.Task
		for _, n := range nodes {
			n.begin("one", "", "null")
			held = append(held, n.one("w"))
			n.beat(held[len(held)-1])
		}
		for i := range 60 {
			if i%3 == 0 {
				naps = append(naps, nodes[i%len(nodes)].begin("short_nap", "", "null"))
			}
			if i == 30 {
				ahead.Store(int64(3 * time.Minute))
			}
			if i%5 == 0 {
				for k, task := range held {
					if a := nodes[(i+k)%len(nodes)].beat(task); a.Outcome != ringi.Accepted {
						t.Fatalf("second %d: heartbeat %+v", i, a)
					}
				}
			}
			<-time.After(time.Second)
		}
		<-time.After(10 * time.Second)
		for _, run := range naps {
			nodes[0].wantStatus(run, ringi.Completed)
			checkNap(t, nodes[0], run, time.Now().Add(time.Duration(ahead.Load())))
		}
		for k, task := range held {
			n := nodes[k]
			if c := count(n.kinds(task.Run), "ActivityRetried") + count(n.kinds(task.Run), "ActivityTimedOut"); c != 0 {
				t.Errorf("the lease of task %d was lost although its worker lives", k)
			}
			if r := n.complete(task, "1"); r.Err != nil || r.Answer.Outcome != ringi.Accepted {
				t.Errorf("completing: %+v", r)
			}
		}
		first.clean()
	})
}

// checkNap wants one firing, not before its time, and times that never go back.
func checkNap(t *testing.T, w *world, run ringi.RunID, now time.Time) {
	t.Helper()
	page, err := w.eng.History(t.Context(), ringi.HistoryQuery{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	var fired int
	for i, e := range page.Events {
		if i > 0 && e.At.Before(page.Events[i-1].At) {
			t.Errorf("event %d of %s is before the one before it", e.Seq, run)
		}
		if e.Kind == "TimerFired" {
			fired++
			if d := e.At.Sub(page.Events[0].At); d < 3*time.Second {
				t.Errorf("a timer of three seconds fired after %s", d)
			}
		}
	}
	if fired != 1 {
		t.Errorf("fired %d times, want 1", fired)
	}
	if at := page.Events[len(page.Events)-1].At; at.After(now.Add(time.Second)) {
		t.Errorf("the last event is of %s, and it is %s", at, now)
	}
}
