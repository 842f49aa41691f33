package engine_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
)

// two is two nodes on one store that know of each other.
func two(t *testing.T, test func(t *testing.T, a, b *world)) {
	t.Helper()
	bubble(t, func(t *testing.T, a *world) {
		withFleet(a)
		b := &world{t: t, mem: a.mem, conf: engine.Config{Records: a.mem, Catalog: a.mem, Events: a.mem, Fleet: a.mem, Version: "1"}}
		b.restart()
		<-time.After(10 * time.Second) // until both have met
		test(t, a, b)
		b.eng.Close()
	})
}

// asked is a poll whose answer is waited for.
type asked struct {
	tasks chan []ringi.Task
	begun time.Time
}

func (w *world) ask(worker string) *asked {
	a := &asked{tasks: make(chan []ringi.Task, 1), begun: time.Now()}
	go func() {
		tasks, err := w.eng.Poll(w.t.Context(), ringi.PollRequest{Worker: worker, Queue: "default", Max: 1, Wait: 20 * time.Second})
		if err != nil {
			w.t.Errorf("poll: %v", err)
		}
		a.tasks <- tasks
	}()
	return a
}

// W24: a run stays on the node that has it in memory, also when its task could not
// be handed out at once and a worker of another node waits.
func TestATaskIsLeftForAMomentToTheNodeThatMadeItReady(t *testing.T) {
	two(t, func(t *testing.T, a, b *world) {
		a.poll("a1", 1, time.Millisecond)
		other := b.ask("b1") // it looks now, and then each second
		<-time.After(900 * time.Millisecond)
		run := a.begin("three", "", "null")
		<-time.After(200 * time.Millisecond)
		task := a.one("a1")
		if task.Run != run || len(other.tasks) > 0 {
			t.Fatalf("got the task of run %s, want that of %s", task.Run, run)
		}
		a.complete(task, "1")
		a.complete(a.one("a1"), "2")
		a.complete(a.one("a1"), "3")
		a.wantStatus(run, ringi.Completed)
		second := b.begin("three", "", "null")
		if tasks := <-other.tasks; len(tasks) != 1 || tasks[0].Run != second {
			t.Errorf("the worker of the other node got %+v, want the task of run %s that its node made", tasks, second)
		}
	})
}

// W24: a node without workers leaves its tasks to the workers of the others, which
// find them when they look at what is there.
func TestATaskOfANodeWithoutWorkersIsFoundByOthers(t *testing.T) {
	two(t, func(t *testing.T, a, b *world) {
		waiting := b.ask("b1")
		<-time.After(100 * time.Millisecond)
		run, begun := a.begin("one", "", "null"), time.Now()
		tasks := <-waiting.tasks
		if len(tasks) != 1 || tasks[0].Run != run {
			t.Fatalf("the worker of the other node got %+v", tasks)
		}
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("found after %v, want no later than the moment for its own node and the pause between two looks", took)
		}
		b.complete(tasks[0], "1")
		b.wantStatus(run, ringi.Completed)
	})
}

// TC-3: a report about a task of which this node knows nothing yet shows that what
// it has of the run is old. It is read anew, and no write is lost to that.
func TestARunThatWentOnElsewhereIsReadAnew(t *testing.T) {
	two(t, func(t *testing.T, a, b *world) {
		run := a.begin("three", "", "null")
		first := a.one("a1")
		if r := b.complete(first, "1"); r.Err != nil { // reported to another node than it came from
			t.Fatal(r.Err)
		}
		second := b.one("b1")
		lost := 0
		a.tap.set(func() { a.tap.commits = nil })
		if r := a.complete(second, "2"); r.Err != nil {
			t.Fatal(r.Err)
		}
		if lost = len(a.tap.commits) - 1; lost != 0 {
			t.Errorf("%d writes were lost to what this node remembered", lost)
		}
		b.complete(a.one("a1"), "3")
		a.wantStatus(run, ringi.Completed)
		a.clean()
	})
}

// DESIGN 9: with other nodes on the store, the batch after a full one waits for
// company half as long as a commit takes; alone it waits for nobody, nor does
// it where there is hardly anything to do.
func TestUnderLoadABatchWaitsForCompanyWhereThereAreOtherNodes(t *testing.T) {
	const commit = 4 * time.Millisecond
	for _, c := range []struct {
		name    string
		others  bool
		burst   int
		waitFor time.Duration // of the run that comes while the burst is committed
	}{
		{"alone", false, 8, 2 * commit},
		{"with another node and little to do", true, 1, 2 * commit},
		{"with another node under load", true, 8, 2*commit + commit/2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.eng.Close()
				w.conf.Fleet, w.conf.Committers = w.mem, 1
				if c.others {
					if _, err := w.mem.Meet(t.Context(), store.Node{ID: "other", Version: "1", Format: ringi.Format}); err != nil {
						t.Fatal(err)
					}
				}
				w.restart()
				<-time.After(10 * time.Second)
				w.tap.set(func() {
					w.tap.before = func([]store.Write) error { <-time.After(commit); return nil }
				})
				var burst sync.WaitGroup
				var commands []ringi.Command
				for range c.burst {
					commands = append(commands, ringi.Command{Actor: operator, Do: ringi.Start{Definition: "one", Input: json.RawMessage("null")}})
				}
				begun := time.Now()
				burst.Go(func() { w.eng.Do(t.Context(), commands...) })
				<-time.After(commit / 2)
				w.begin("one", "", "null")
				if took := time.Since(begun); took != c.waitFor {
					t.Errorf("answered after %v, want %v", took, c.waitFor)
				}
				burst.Wait()
			})
		})
	}
}

// W31: however a run goes from node to node, nothing is done twice or forgotten.
func TestRunsGoFromNodeToNode(t *testing.T) {
	two(t, func(t *testing.T, a, b *world) {
		nodes := []*world{a, b}
		var runs []ringi.RunID
		for i := range 20 {
			runs = append(runs, nodes[i%2].begin("three", fmt.Sprint("key-", i), "null"))
		}
		for i := range 60 {
			task := nodes[(i/3)%2].one("w")
			if r := nodes[i%2].complete(task, "1"); r.Err != nil || r.Answer.Outcome == ringi.Stale {
				t.Fatalf("task %d: %+v", i, r)
			}
		}
		for _, run := range runs {
			a.wantStatus(run, ringi.Completed)
		}
		a.clean()
	})
}
