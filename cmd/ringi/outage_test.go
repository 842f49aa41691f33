package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

// readyz waits until the node answers so.
func (n *fleetNode) readyz(want int) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("/readyz to answer %d", want), func() bool { return statusOf(n.t, n.url+"/readyz") == want })
}

// W31, TC-28, TC-29: whatever keeps the database from taking commits, the same
// process says 503, acknowledges nothing, and goes on by itself.
func TestAServerOutlivesWhatABaseDoes(t *testing.T) {
	f := newFleet(t, 0)
	admin := func(text string) {
		t.Helper()
		if err := f.pg.Exec(t.Context(), "postgres", text); err != nil {
			t.Fatal(err)
		}
	}
	admin("create role app login")
	admin("create database app owner app")
	n := f.join(strings.Replace(f.pg.URL("app"), "ringi@", "app@", 1))
	f.env["RINGI_DATABASE"] = f.pg.URL("app")
	f.publish(chainDefinition)
	n.work("w", nothing("chain.a"), nothing("chain.b"))
	const end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'app'"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	for _, outage := range []struct {
		what        string
		begin, over func()
	}{
		{"restarted", func() { must(f.pg.Stop()) }, func() { must(f.pg.Resume(t.Context())) }},
		{"crashed", func() { must(f.pg.Crash()) }, func() { must(f.pg.Resume(t.Context())) }},
		{
			"read-only", func() { admin("alter database app set default_transaction_read_only = on"); admin(end) },
			func() { admin("alter database app set default_transaction_read_only = off") },
		},
		{"out of connections", func() { admin("alter role app connection limit 0"); admin(end) }, func() { admin("alter role app connection limit -1") }},
	} {
		outage.begin()
		n.readyz(http.StatusServiceUnavailable)
		key := "during " + outage.what
		r := n.svc.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "chain", Key: key}})[0]
		if ringi.ErrorCode(r.Err) != ringi.CodeUnavailable {
			t.Errorf("%s: a start is answered with %+v", outage.what, r)
		}
		outage.over()
		n.readyz(http.StatusOK)
		again := n.svc.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "chain", Key: key}})[0]
		if again.Err != nil {
			t.Fatalf("%s: %v", outage.what, again.Err)
		}
		n.ended(again.Run, "")
		runs++
	}
	f.replayed(runs)
	if text := n.err.String(); strings.Contains(text, "panic") {
		t.Errorf("the server said: %s", text)
	}
}

// W14, W31: an answer that is cut off exactly after the commit was sent, and a
// database whose every answer takes long.
func TestACommitWhoseAnswerIsLostIsAnsweredOnce(t *testing.T) {
	f := newFleet(t, 0)
	w, through := wired(t, f.pg.URL("postgres"))
	n := f.join(through)
	f.publish(chainDefinition)
	n.work("w", nothing("chain.a"), nothing("chain.b"))
	var cut atomic.Int32
	var runs []ringi.RunID
	for i := range 5 {
		key := fmt.Sprint("lost answer ", i)
		w.set(&trap{bytes: []byte(key), sprung: func() { cut.Add(1) }, cut: true})
		r := n.svc.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "chain", Key: key}})[0]
		if r.Err != nil || !r.Created {
			t.Errorf("start: %+v, want one that was made by this very command", r)
		}
		runs = append(runs, r.Run)
	}
	if cut.Load() != 5 {
		t.Errorf("%d answers were cut off, want 5", cut.Load())
	}
	w.slow(100 * time.Millisecond)
	runs = append(runs, n.start("chain"))
	for _, run := range runs {
		n.ended(run, "")
	}
	f.replayed(len(runs))
}

const heldDefinition = `ringi: v1
name: held
steps:
  - id: a
    activity: held.a
    effect: at_most_once
    accepted: "a test"
    timeouts: { heartbeat: 5s, attempt: 10m }
`

// W14, W31, TC-17, TC-28: the database is away for many lease lengths with a
// hundred tasks under lease and their worker alive: none is given to anybody
// else, and none becomes unknown.
func TestNoLeaseIsLostWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel() // it waits most of its time
	const tasks, lease, leases = 100, 5 * time.Second, 3
	f := newFleet(t, 2)
	f.publish(heldDefinition)
	n := f.nodes[0]
	began, release := make(chan struct{}, 2*tasks), make(chan struct{})
	n.work("w", worker.Func("held.a", func(ctx context.Context, _ json.RawMessage) (struct{}, error) {
		began <- struct{}{}
		select {
		case <-release:
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		}
	}))
	var runs []ringi.RunID
	for range tasks {
		runs = append(runs, n.start("held"))
	}
	for range tasks {
		<-began
	}
	if err := f.pg.Crash(); err != nil {
		t.Fatal(err)
	}
	away := time.Now()
	for _, n := range f.nodes {
		n.readyz(http.StatusServiceUnavailable)
	}
	eventually(t, "time to pass", func() bool { return time.Since(away) > leases*lease })
	if err := f.pg.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range f.nodes {
		n.readyz(http.StatusOK)
	}
	back := time.Now()
	eventually(t, "time to pass", func() bool { return time.Since(back) > 2*lease }) // leases are looked at again
	close(release)
	for _, run := range runs {
		n.ended(run, "")
		page, err := n.svc.History(t.Context(), ringi.HistoryQuery{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			switch e.Kind {
			case "ActivityRetried", "ActivityTimedOut", "OutcomeUnknown":
				t.Errorf("run %s has %s: %s", run, e.Kind, e.Data)
			}
		}
	}
	if len(began) > 0 {
		t.Errorf("%d tasks were begun twice", len(began))
	}
	f.replayed(tasks)
}

// W31, TC-29: a table that a migration holds for some seconds makes no server
// unready, and the log of one says once what it waits for and once that it goes on.
func TestAServerWaitsForALockOfSomebody(t *testing.T) {
	f := newFleet(t, 1)
	n := f.nodes[0]
	n.readyz(http.StatusOK)
	ctx := t.Context()
	conn, err := pgconn.Connect(ctx, f.pg.URL("postgres")+"&application_name=migration")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(text string) {
		t.Helper()
		if err := conn.Exec(ctx, text).Close(); err != nil {
			t.Fatal(err)
		}
	}
	exec("begin; lock table timer in access exclusive mode")
	eventually(t, "the log to tell of the lock", func() bool {
		if code := statusOf(t, n.url+"/readyz"); code != http.StatusOK && !strings.Contains(n.err.String(), "holds a lock") {
			t.Fatalf("/readyz is %d for a lock of two seconds", code)
		}
		return strings.Contains(n.err.String(), "timer by session")
	})
	n.readyz(http.StatusServiceUnavailable) // it is held for too long
	resp, err := http.Get(n.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || !strings.Contains(string(body), "timer by session") || !strings.Contains(string(body), "migration") {
		t.Errorf("/readyz says %s, %v, want what it waits for", body, err)
	}
	exec("rollback")
	n.readyz(http.StatusOK)
	for _, said := range []string{"holds a lock", "the lock in the database is gone"} {
		if got := strings.Count(n.err.String(), said); got != 1 {
			t.Errorf("the log says %d times %q:\n%s", got, said, n.err.String())
		}
	}
	if strings.Contains(n.err.String(), "the database is away") {
		t.Errorf("the log says that the database is away:\n%s", n.err.String())
	}
}
