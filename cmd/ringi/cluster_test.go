package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// W6, TC-26: no node leads: each commits, and one key has one run whichever
// nodes are asked for it at once.
func TestEachOfThreeNodesCommits(t *testing.T) {
	f := newFleet(t, 3)
	f.publish(chainDefinition)
	var created atomic.Int32
	var clients sync.WaitGroup
	results := make([]ringi.Result, 16)
	for i := range results {
		clients.Go(func() {
			results[i] = f.nodes[i%3].svc.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "chain", Key: "one"}})[0]
			if results[i].Created {
				created.Add(1)
			}
		})
	}
	clients.Wait()
	for _, r := range results {
		if r.Err != nil || r.Run != results[0].Run {
			t.Errorf("started %s, %v, want one run for all: %s", r.Run, r.Err, results[0].Run)
		}
	}
	if created.Load() != 1 {
		t.Errorf("%d starts made a run, want 1", created.Load())
	}
	for i, n := range f.nodes {
		n.work(fmt.Sprint("w", i), nothing("chain.a"), nothing("chain.b"))
	}
	runs := []ringi.RunID{results[0].Run}
	for i := range 60 {
		runs = append(runs, f.nodes[i%3].start("chain"))
	}
	for i, run := range runs {
		f.nodes[(i+1)%3].ended(run, "")
	}
	for i, n := range f.nodes {
		if c := n.metric("ringi_commits_total"); c == 0 {
			t.Errorf("node %d committed nothing", i+1)
		}
	}
	f.replayed(len(runs))
}

// W6, W31, W11: two of three nodes stand still while the third goes on; what they
// write when they wake changes nothing.
func TestStoppedNodesHoldUpNobodyAndWriteNothingStale(t *testing.T) {
	f := newFleet(t, 3)
	f.publish(slowDefinition, chainDefinition)
	third := f.nodes[0]
	tasks := make([]ringi.Task, 2)
	var answers []<-chan ringi.Result
	busy := f.load(f.nodes[1:])
	for i, n := range f.nodes[1:] { // nobody extends these leases
		// Not what a node held that stands still already, when its lease has ended.
		for run := n.start("slow"); tasks[i].Run != run; {
			tasks[i] = n.take(fmt.Sprint("held", i))
		}
		n.signal(syscall.SIGSTOP) // wherever in its work it is
		answers = append(answers, n.completeLater(tasks[i], fmt.Sprint("held", i), "a node that stood still"))
	}
	stop := third.work("third", nothing("chain.a"), nothing("chain.b"))
	for range 50 {
		third.ended(third.start("chain"), "")
	}
	stop()
	for range tasks {
		task := third.finish("third", "the third") // the lease was lost, since nobody heard a heartbeat
		if task.Attempt < 2 {
			t.Errorf("attempt %d, want a later one", task.Attempt)
		}
	}
	for i, n := range f.nodes[1:] {
		n.signal(syscall.SIGCONT)
		if r := <-answers[i]; r.Err != nil || r.Answer.Outcome != ringi.Stale {
			t.Errorf("the result of the first attempt: %+v, want stale", r)
		}
		n.ended(tasks[i].Run, `{"by":"the third"}`)
		n.start("slow")
		n.take("again") // it serves again
	}
	f.replayed(54 + busy())
}

// load starts runs on these nodes, many at once, from now until each has been
// asked for some. The returned function waits for the answers and says how many
// runs there are: as many as were asked for, however long a node stood still.
func (f *fleet) load(nodes []*fleetNode) (runs func() int) {
	f.t.Helper()
	const clients, each = 8, 40
	var asking sync.WaitGroup
	var answered atomic.Int32
	for i, n := range nodes {
		for c := range clients {
			asking.Go(func() {
				for k := range each {
					start := ringi.Start{Definition: "chain", Key: fmt.Sprint("load ", i, c, k)}
					// A node stands still as long as the test has to do elsewhere.
					for f.t.Context().Err() == nil && n.svc.Do(f.t.Context(), ringi.Command{Do: start})[0].Err != nil {
					}
					answered.Add(1)
				}
			})
		}
	}
	eventually(f.t, "the load to begin", func() bool { return answered.Load() > clients })
	return func() int {
		asking.Wait()
		return len(nodes) * clients * each
	}
}

// W6, W14, W31: a node that is frozen in the middle of a commit, before its
// message reached the database or after, and woken when others went on.
func TestANodeFrozenInTheMiddleOfACommit(t *testing.T) {
	f := newFleet(t, 1)
	f.publish(slowDefinition, patientDefinition())
	w, through := wired(t, f.pg.URL("postgres"))
	other, frozen := f.nodes[0], f.join(through)
	freeze := func(definition string, pass <-chan struct{}) (task ringi.Task, answer <-chan ringi.Result) {
		t.Helper()
		other.start(definition)
		for {
			task = frozen.take("w")
			sprung := make(chan struct{})
			w.set(&trap{bytes: []byte("the frozen one"), pass: pass, sprung: func() {
				_ = frozen.Process.Signal(syscall.SIGSTOP)
				close(sprung)
			}})
			answer = frozen.completeLater(task, "w", "the frozen one")
			select {
			case <-sprung:
				return task, answer
			case r := <-answer:
				if r.Err != nil || r.Answer.Outcome != ringi.Stale { // the machine is busy, and the lease ended on the way
					t.Fatalf("the node does not commit, it answers %+v", r)
				}
			}
		}
	}
	t.Run("after its message arrived", func(t *testing.T) {
		task, answer := freeze("patient", nil) // no lease ends meanwhile
		other.ended(task.Run, `{"by":"the frozen one"}`)
		if again := other.poll("other", 0); len(again) != 0 {
			t.Errorf("handed out again: %+v", again)
		}
		frozen.signal(syscall.SIGCONT)
		if r := <-answer; r.Err != nil || r.Answer.Outcome != ringi.Accepted {
			t.Errorf("the answer: %+v, want accepted", r)
		}
	})
	t.Run("before its message arrived", func(t *testing.T) {
		pass := make(chan struct{})
		task, answer := freeze("slow", pass)
		second := other.take("other")
		if second.Run != task.Run || second.Attempt <= task.Attempt {
			t.Fatalf("task %+v, want a later attempt of %s", second, task.Run)
		}
		close(pass) // the message of the past arrives
		if r := other.complete(second, "other", "the other"); r.Err == nil && r.Answer.Outcome == ringi.Stale {
			other.finish("other", "the other") // the machine is busy
		} else if r.Err != nil || r.Answer.Outcome != ringi.Accepted {
			t.Errorf("completing a later attempt: %+v", r)
		}
		frozen.signal(syscall.SIGCONT)
		if r := <-answer; r.Err != nil || r.Answer.Outcome != ringi.Stale {
			t.Errorf("the answer: %+v, want stale", r)
		}
		frozen.ended(task.Run, `{"by":"the other"}`)
	})
	f.replayed(2)
}

// W11, TC-52: a node that joins is handed its share at once, and finds what
// others made ready within the poll interval, without any word from them.
func TestANodeThatJoinsTakesItsShare(t *testing.T) {
	f := newFleet(t, 1)
	f.publish(slowDefinition)
	first := f.nodes[0]
	first.start("slow")
	joined := f.join(f.pg.URL("postgres"))
	if got := joined.poll("joined", 20*time.Second); len(got) != 1 { // it is handed out within a second, on a machine that has one
		t.Fatalf("%d tasks, want the one that waits", len(got))
	}
	waiting := make(chan []ringi.Task, 1)
	go func() { waiting <- joined.poll("joined", 20*time.Second) }()
	eventually(t, "the poll to stand in line", func() bool { return joined.sees("joined") })
	first.start("slow") // nothing of this node tells the other
	select {
	case got := <-waiting:
		if len(got) != 1 {
			t.Errorf("%d tasks, want 1", len(got))
		}
	case <-time.After(patience):
		t.Error("the poll of the other node does not find the task")
	}
}

// sees reports whether a node knows a worker.
func (n *fleetNode) sees(name string) bool {
	page, err := n.svc.List(n.t.Context(), ringi.WorkerQuery{Tenant: ringi.DefaultTenant})
	if err != nil {
		return false
	}
	for _, q := range page.Queues {
		for _, w := range q.Workers {
			if w.Worker == name {
				return true
			}
		}
	}
	return false
}

// TC-23: a node that drains claims nothing, and the others hand out what is
// there as if for the first time.
func TestADrainedNodeClaimsNothing(t *testing.T) {
	f := newFleet(t, 2)
	f.publish(slowDefinition)
	stays, leaves := f.nodes[0], f.nodes[1]
	polls := make(chan []ringi.Task, 4)
	for i := range cap(polls) {
		go func() {
			tasks, _ := leaves.svc.Poll(t.Context(), ringi.PollRequest{Worker: fmt.Sprint("joined", i), Queue: "slow", Max: 1, Wait: 20 * time.Second})
			polls <- tasks
		}()
	}
	eventually(t, "the polls to stand in line", func() bool { return leaves.sees("joined3") })
	leaves.start("slow") // one of the polls gets this task
	leaves.signal(syscall.SIGTERM)
	eventually(t, "the drain", func() bool { return strings.Contains(leaves.err.String(), "draining") })
	handed := map[ringi.RunID]bool{}
	for range cap(polls) {
		for _, task := range <-polls {
			handed[task.Run] = true
		}
	}
	for range 8 {
		stays.start("slow")
	}
	for left := 8 + 1 - len(handed); left > 0; {
		switch task := stays.take("stays"); {
		case handed[task.Run]: // nobody confirmed it, and the machine is slow
		case task.Token&0xffff != 1:
			t.Errorf("task %+v was handed out before", task)
			left--
		default:
			left--
		}
	}
	if code := leaves.exit(); code != cli.ExitOK {
		t.Errorf("the drained node exits with %d: %s", code, leaves.process.err)
	}
}
