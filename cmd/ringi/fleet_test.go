package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
	"github.com/ringiflow/ringi/worker"
)

const (
	chainDefinition = `ringi: v1
name: chain
steps:
  - { id: a, activity: chain.a, effect: pure }
  - { id: b, activity: chain.b, effect: pure }
`
	// A lease of three seconds: a test waits for its loss, and what a test does
	// with a task fits into it on a machine that is busy otherwise.
	slowDefinition = `ringi: v1
name: slow
steps:
  - id: a
    activity: slow.a
    effect: pure
    queue: slow
    timeouts: { heartbeat: 3s, attempt: 10m }
    retry: { attempts: 20, backoff: { initial: 100ms, max: 100ms } }
    output: { type: object, required: [by], properties: { by: { type: string } } }
output: { by: "${ steps.a.output.by }" }
`
)

// patientDefinition is slowDefinition with a lease that no test outlasts.
func patientDefinition() string {
	return strings.NewReplacer("name: slow", "name: patient", "heartbeat: 3s", "heartbeat: 10m").Replace(slowDefinition)
}

// A fleet is servers as processes of their own on one PostgreSQL database.
type fleet struct {
	*desk
	pg    *pgtest.Server
	nodes []*fleetNode
}

// A fleetNode is one of them.
type fleetNode struct {
	process
	t   *testing.T
	url string
	svc *api.Client
}

// newFleet starts n servers.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	pg, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	f := &fleet{desk: newDesk(t), pg: pg}
	for range n {
		f.join(pg.URL("postgres"))
	}
	return f
}

// join starts one more server, which reaches the database at this address.
func (f *fleet) join(database string) *fleetNode {
	f.t.Helper()
	f.env["RINGI_DATABASE"] = database
	n := f.add(f.server())
	f.env["RINGI_DATABASE"] = f.pg.URL("postgres")
	return n
}

// joinAs is join for another build of the program.
func (f *fleet) joinAs(binary string) *fleetNode {
	f.t.Helper()
	return f.add(f.listening(f.processOf(binary, "serve", "--listen", "127.0.0.1:0")))
}

func (f *fleet) add(p process) *fleetNode {
	f.t.Helper()
	n := &fleetNode{t: f.t, process: p}
	n.url = f.env["RINGI_SERVER"]
	f.env["RINGI_DATABASE"] = f.pg.URL("postgres")
	key, err := cli.ReadKey(filepath.Join(f.dir, "ringi.db.key"))
	if err != nil {
		f.t.Fatal(err)
	}
	if n.svc, err = api.NewClient(api.ClientConfig{Address: n.url, Key: key, Timeout: 4 * patience}); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = n.svc.Close()
		_ = n.Process.Signal(syscall.SIGCONT) // one that stands still would not end
		_ = n.Process.Kill()
		n.exit()
	})
	f.nodes = append(f.nodes, n)
	return n
}

// publish publishes definitions.
func (f *fleet) publish(definitions ...string) {
	f.t.Helper()
	for _, d := range definitions {
		if got := f.runWith(d, "publish", "-"); got.code != cli.ExitOK {
			f.t.Fatalf("publish: %+v", got)
		}
	}
}

// replayed folds every log again, and wants so many runs.
func (f *fleet) replayed(runs int) {
	f.t.Helper()
	var got replay.Report
	f.ok(&got, "replay", "--all")
	if got.Runs != runs || len(got.Mismatches) != 0 {
		f.t.Errorf("replayed %+v, want %d runs that follow from their events", got, runs)
	}
}

// signal sends a signal.
func (n *fleetNode) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
	if s == syscall.SIGSTOP {
		standStill(n.t, n.Process.Pid)
	}
}

// standStill waits until a process that was told to stop has: only the thread that
// takes the signal stops the others, and on a busy machine they go on until its
// turn comes.
func standStill(t *testing.T, pid int) {
	t.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("process %d has not stopped: %v, %v", pid, status, err)
	}
}

// start starts a run.
func (n *fleetNode) start(definition string) ringi.RunID {
	n.t.Helper()
	r := n.svc.Do(n.t.Context(), ringi.Command{Do: ringi.Start{Definition: definition}})[0]
	if r.Err != nil {
		n.t.Fatalf("start: %v", r.Err)
	}
	return r.Run
}

// poll takes one task of the queue slow.
func (n *fleetNode) poll(worker string, wait time.Duration) []ringi.Task {
	n.t.Helper()
	tasks, err := n.svc.Poll(n.t.Context(), ringi.PollRequest{Worker: worker, Queue: "slow", Max: 1, Wait: wait})
	if err != nil {
		n.t.Fatalf("poll: %v", err)
	}
	return tasks
}

// take polls until it has a task and has confirmed it. A task that was long on
// its way, since the machine is busy, is somebody else's when it arrives.
func (n *fleetNode) take(worker string) ringi.Task {
	n.t.Helper()
	for limit := time.Now().Add(2 * patience); ; { // on a busy machine a lease is long in ending
		if got := n.poll(worker, time.Second); len(got) > 0 {
			a, err := n.svc.Heartbeat(n.t.Context(), ringi.Beat{Run: got[0].Run, CallRef: got[0].CallRef, Worker: worker})
			if err != nil {
				n.t.Fatalf("heartbeat: %v", err)
			}
			if a[0].Outcome == ringi.Accepted {
				return got[0]
			}
		}
		if time.Now().After(limit) {
			page, err := n.svc.List(n.t.Context(), ringi.RunQuery{Definition: "slow"})
			var stand []string
			for _, r := range page.Runs {
				v, failed := n.svc.Run(n.t.Context(), ringi.DefaultTenant, r.Run)
				stand = append(stand, fmt.Sprintf("%+v, %v", v, failed))
			}
			n.t.Fatalf("no task for %s; the runs stand so: %s, %v\nthe server said: %s", worker, strings.Join(stand, "\n"), err, n.err.String())
		}
	}
}

// finish takes tasks and completes them until one is accepted: on a busy machine
// a lease may end in between.
func (n *fleetNode) finish(worker, by string) ringi.Task {
	n.t.Helper()
	for limit := time.Now().Add(2 * patience); ; {
		task := n.take(worker)
		switch r := n.complete(task, worker, by); {
		case r.Err == nil && r.Answer.Outcome == ringi.Accepted:
			return task
		case r.Err != nil || r.Answer.Outcome != ringi.Stale || time.Now().After(limit):
			n.t.Fatalf("completing attempt %d: %+v", task.Attempt, r)
		}
	}
}

// complete says that a task is done, by whom.
func (n *fleetNode) complete(task ringi.Task, worker, by string) ringi.Result {
	return n.svc.Do(n.t.Context(), ringi.Command{Run: task.Run, Do: ringi.CompleteActivity{
		CallRef: task.CallRef, Worker: worker, Output: json.RawMessage(fmt.Sprintf(`{"by":%q}`, by)),
	}})[0]
}

// completeLater is complete by somebody who waits long for the answer.
func (n *fleetNode) completeLater(task ringi.Task, worker, by string) <-chan ringi.Result {
	done := make(chan ringi.Result, 1)
	go func() { done <- n.complete(task, worker, by) }()
	return done
}

// ended wants a run to be completed, with this output.
func (n *fleetNode) ended(run ringi.RunID, output string) {
	n.t.Helper()
	var v ringi.RunView
	eventually(n.t, "the run to end", func() bool {
		var err error
		v, err = n.svc.Run(n.t.Context(), ringi.DefaultTenant, run)
		return err == nil && v.Status.Final()
	})
	if v.Status != ringi.Completed || output != "" && string(v.Output) != output {
		n.t.Errorf("run %s is %s with %s, want completed with %s", run, v.Status, v.Output, output)
	}
}

// work runs a worker on a node until the test ends or stop is called.
func (n *fleetNode) work(name string, activities ...worker.Activity) (stop func()) {
	n.t.Helper()
	w, err := worker.New(worker.Config{Service: n.svc, Name: name, Queues: []worker.Queue{{Slots: 128, Activities: activities}}})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	n.t.Cleanup(stop)
	return stop
}

// nothing is an activity that does nothing.
func nothing(name string) worker.Activity {
	return worker.Func(name, func(context.Context, json.RawMessage) (struct{}, error) { return struct{}{}, nil })
}

// metric reads a number of a node.
func (n *fleetNode) metric(name string) int {
	n.t.Helper()
	resp, err := http.Get(n.url + "/metrics")
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				n.t.Fatal(err)
			}
			return int(f)
		}
	}
	n.t.Fatalf("there is no metric %s", name)
	return 0
}

// Servers that start at once in one directory, without keys, share the one that
// the first makes.
func TestServersThatStartAtOnceShareTheirKey(t *testing.T) {
	f := newFleet(t, 0)
	f.env["RINGI_DATABASE"] = f.pg.URL("postgres")
	var all []process
	for range 5 {
		all = append(all, f.process("serve", "--listen", "127.0.0.1:0"))
	}
	var urls []string
	for _, p := range all {
		f.add(f.listening(p))
		urls = append(urls, f.env["RINGI_SERVER"])
	}
	for _, url := range urls {
		f.env["RINGI_SERVER"] = url
		f.ok(nil, "runs")
	}
	left, err := filepath.Glob(filepath.Join(f.dir, "*.new*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
