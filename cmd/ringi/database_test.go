package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/examples/demo"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// W31, TC-28: servers alike on one PostgreSQL database: what one takes in the
// other carries on, also after kill -9, and both outlive a crash of the database.
func TestTwoServersOnOnePostgres(t *testing.T) {
	pg, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	w := newDesk(t)
	w.env["RINGI_DATABASE"] = pg.URL("postgres")
	first := w.server()
	one := w.env["RINGI_SERVER"]
	if got := w.runWith(paidDefinition, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	var runs []ringi.RunID
	for i := range 6 {
		runs = append(runs, w.begin("paid", "-i", fmt.Sprintf("order=A-%d", i)).Run)
	}
	second := w.server()
	two := w.env["RINGI_SERVER"]
	send := func(i int) {
		t.Helper()
		if got := w.run("send", "order.paid", "--key", fmt.Sprintf("A-%d", i), "--id", fmt.Sprint("e", i)); got.code != cli.ExitOK {
			t.Fatalf("send: %+v", got)
		}
	}
	completed := func(i int) {
		t.Helper()
		eventually(t, "the run to end", func() bool { return w.show(runs[i]).Status == ringi.Completed })
	}
	send(0)
	completed(0)
	w.env["RINGI_SERVER"] = one
	send(1)
	completed(1)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.exit()
	w.env["RINGI_SERVER"] = two
	send(2)
	completed(2)

	readyz := func(want int) func() bool {
		return func() bool {
			res, err := http.Get(two + "/readyz")
			if err != nil {
				return false
			}
			return res.Body.Close() == nil && res.StatusCode == want
		}
	}
	if err := pg.Crash(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to say that it is not ready", readyz(http.StatusServiceUnavailable))
	if got := w.run("replay", "--all"); got.code != cli.ExitUnreachable {
		t.Errorf("replay without a database: %+v", got)
	}
	if err := pg.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to be ready again", readyz(http.StatusOK))
	send(3)
	completed(3)
	var got replay.Report
	w.ok(&got, "replay", "--all")
	if got.Runs != len(runs) || len(got.Mismatches) != 0 {
		t.Errorf("replayed %+v, want %d runs that follow from their events", got, len(runs))
	}
	if text := second.err.String(); strings.Contains(text, "panic") {
		t.Errorf("the server said: %s", text)
	}
}

// A password in the URL is shown to nobody.
func TestThePasswordOfADatabaseIsNotShown(t *testing.T) {
	w := newDesk(t)
	for _, value := range []string{"postgres://ringi:topsecret@127.0.0.1:1/ringi", "postgres://127.0.0.1:1/ringi?user=ringi&password=topsecret"} {
		for _, args := range [][]string{{"serve", "--print-config"}, {"serve"}, {"replay", "--all"}} {
			got := w.run(append(args, "--database", value)...)
			if strings.Contains(got.out+got.err, "topsecret") {
				t.Errorf("%v shows the password: %s%s", args, got.out, got.err)
			}
			if len(args) == 1 && (got.code != cli.ExitUnreachable || !strings.Contains(got.err, "127.0.0.1")) {
				t.Errorf("a database that does not answer: %+v, want code %d and its name", got, cli.ExitUnreachable)
			}
		}
	}
}

// S2, S5, W31: the same orders come to the same end on PostgreSQL.
func TestASmallDemoComesThroughKillsOnPostgres(t *testing.T) {
	t.Parallel() // it waits most of its time
	pg, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), demoLimit)
	defer cancel()
	binary := demoBinary(t)
	demonstrate := func() (code int, out, story string) {
		var data, said bytes.Buffer
		run := exec.CommandContext(ctx, binary, "demo", "--orders", "10", "--seed", "5", "--json", "--database", pg.URL("postgres"))
		run.Stdout, run.Stderr = &data, &said
		_ = run.Run() // the code says it all
		return run.ProcessState.ExitCode(), data.String(), said.String()
	}
	if code, out, story := demonstrate(); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s\n%s", code, out, story)
	}
	if code, _, said := demonstrate(); code != cli.ExitUsage || !strings.Contains(said, "has runs already") {
		t.Errorf("on a database with runs: exit %d, %s", code, said)
	}
}

// A demo that is interrupted says what it saw, and leaves no process and no file.
func TestADemoThatIsInterruptedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // PostgreSQL's user has to pass
		t.Fatal(err)
	}
	var out, story safeBuffer
	run := exec.CommandContext(t.Context(), demoBinary(t), "demo", "--nodes", "3", "--chaos", "20s")
	run.Stdout, run.Stderr = &out, &story
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a kill", func() bool { return strings.Contains(story.String(), "kill -") })
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // the code says it all
	if code := run.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.Contains(story.String(), "until it was interrupted it killed") || !strings.Contains(out.String(), "node 3") {
		t.Errorf("exit %d\n%s\n%s", code, out.String(), story.String())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// W6, W31, S2: three nodes of one database are killed, and the database too; the
// books balance, each node has committed, and every log folds to its rows.
func TestASmallDemoComesThroughKillsOfNodesAndDatabase(t *testing.T) {
	t.Parallel() // it waits most of its time
	ctx, cancel := context.WithTimeout(t.Context(), demoLimit)
	defer cancel()
	var out, story bytes.Buffer
	run := exec.CommandContext(ctx, demoBinary(t), "demo", "--orders", "25", "--seed", "12", "--nodes", "3", "--json")
	run.Stdout, run.Stderr = &out, &story
	if err := run.Run(); err != nil {
		t.Fatalf("the demo: %v\n%s", err, story.String())
	}
	var r demo.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if f := r.Failings(); len(f) > 0 || len(r.Nodes) != 3 || r.DatabaseKills == nil || r.Mismatches == nil || r.Orders != 25 {
		t.Errorf("%+v\n%q\n%s", r, f, story.String())
	}
	for _, n := range r.Nodes {
		if n.Commits == 0 || n.Kills == 0 {
			t.Errorf("%+v, want commits in spite of kills", n)
		}
	}
}
