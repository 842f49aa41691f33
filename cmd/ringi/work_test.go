//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/work"
)

const scriptedDefinition = `ringi: v1
name: scripted
steps:
  - id: pay
    activity: script.pay
    with: { amount: "${ input.amount }" }
    effect: EFFECT
    timeouts: { heartbeat: 1s, attempt: 10s }
    accepted: "nothing fails behind it"
    catch: [ { on: [card_declined], do: [ { finish: { output: declined } } ] } ]
output: "${ steps.pay.output }"
`

func (w *desk) listQueues() []work.QueueState {
	w.t.Helper()
	var out struct{ Queues []work.QueueState }
	w.ok(&out, "queue", "list")
	return out.Queues
}

func (w *desk) listWorkers() []work.WorkerState {
	w.t.Helper()
	var out struct{ Workers []work.WorkerState }
	w.ok(&out, "worker", "list")
	return out.Workers
}

// A shell script is a step: one task is refused by its word, one is done, and the
// worker ends well on SIGTERM, with the program that runs.
func TestAScriptIsAWorker(t *testing.T) { // W16
	w := served(t, strings.ReplaceAll(scriptedDefinition, "EFFECT", "at_most_once"))
	w.write("pay.sh", `#!/bin/sh
read -r input
case "$input" in
*'"amount":13'*) echo '::ringi {"code":"card_declined","applied":"no","retryable":false}' >&2; exit 1 ;;
*'"amount":77'*) echo started > started; sleep 1 ;;
esac
printf '{"key":"%s","said":"%s","input":%s}\n' "$RINGI_TASK_KEY" "$1" "$input"
`)
	if err := os.Chmod(filepath.Join(w.dir, "pay.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := w.process("worker", "run", "--activity", "script.pay", "--name", "shell", "--", "./pay.sh", "--flag")
	paid, declined := w.begin("scripted", "-i", "amount=5").Run, w.begin("scripted", "-i", "amount=13").Run
	for run, want := range map[ringi.RunID]string{
		paid:     fmt.Sprintf(`"output":{"input":{"amount":5},"key":"%s/pay","said":"--flag"}`, paid),
		declined: `"output":"declined"`,
	} {
		eventually(t, "the end of "+want, func() bool { return w.show(run).Status == ringi.Completed })
		if got := w.run("history", string(run), "--json").out; !strings.Contains(got, want) {
			t.Errorf("want %s in %s", want, got)
		}
	}
	slow := w.begin("scripted", "-i", "amount=77").Run
	eventually(t, "the slow one to start", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "started"))
		return err == nil
	})
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("the worker exits with %d: %s", code, p.err)
	}
	if got := w.show(slow).Status; got != ringi.Completed {
		t.Errorf("a worker that stopped let its program end and reported it, and the run is %s", got)
	}
}

// A worker that is killed in the middle of a task: the task goes to another.
func TestATaskOfAKilledCommandWorkerIsDoneByAnother(t *testing.T) { // W14 W31
	w := served(t, strings.ReplaceAll(scriptedDefinition, "EFFECT", "idempotent"))
	p := w.process("worker", "run", "--activity", "script.pay", "--", "sh", "-c", "echo $$ > program; exec sleep 1000")
	run := w.begin("scripted", "-i", "amount=5").Run
	eventually(t, "the program to start", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "program"))
		return err == nil
	})
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.exit()
	other := w.process("worker", "run", "--activity", "script.pay", "--text", "--", "echo", "done")
	eventually(t, "the end", func() bool { return w.show(run).Status == ringi.Completed })
	if got := w.run("history", string(run), "--json").out; !strings.Contains(got, `"output":"done"`) {
		t.Errorf("it ended otherwise: %s", got)
	}
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := other.exit(); code != cli.ExitOK {
		t.Errorf("the worker exits with %d: %s", code, other.err)
	}
}

func TestAQueueWithTasksAndNoWorkerIsNamed(t *testing.T) { // TC-19 W27
	w := served(t, strings.ReplaceAll(scriptedDefinition, "EFFECT", "idempotent"))
	run := w.begin("scripted", "-i", "amount=5").Run
	at := func(q work.QueueState) bool { return q.Queue == "default" }
	queues := w.listQueues()
	i := slices.IndexFunc(queues, at)
	if i < 0 || queues[i].Ready != 1 || queues[i].Capacity != 0 || !strings.Contains(queues[i].Note, "no worker polls it") {
		t.Errorf("queues %+v, want one task that nobody takes", queues)
	}
	if table := w.run("queue", "list").out; !strings.Contains(table, "nobody takes its tasks") || !strings.Contains(table, "ringi.http") {
		t.Errorf("the table does not say it:\n%s", table)
	}
	p := w.process("worker", "run", "--activity", "script.pay", "--name", "shell", "--", "true")
	eventually(t, "the end", func() bool { return w.show(run).Status == ringi.Completed })
	workers := w.listWorkers()
	if i := slices.IndexFunc(workers, func(s work.WorkerState) bool { return s.Worker == "shell" }); i < 0 || workers[i].Queue != "default" || !workers[i].Capacity {
		t.Errorf("workers %+v, want the one of the queue", workers)
	}
	queues = w.listQueues()
	if i := slices.IndexFunc(queues, at); i < 0 || queues[i].Capacity != 1 || queues[i].Note != "" {
		t.Errorf("queues %+v, want one with a worker", queues)
	}
	if table := w.run("worker", "list").out; !strings.Contains(table, "shell") {
		t.Errorf("the table lacks the worker:\n%s", table)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("the worker exits with %d: %s", code, p.err)
	}
}

func TestAWorkerThatCannotWorkIsRefused(t *testing.T) {
	w := newDesk(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--", "true"}, "--activity is missing"},
		{[]string{"--activity", "a"}, "PROGRAM is missing"},
		{[]string{"--activity", "a", "--", "no-such-program"}, "cannot be run"},
		{[]string{"--activity", "a", "--", "./no-such-program"}, "cannot be run"},
		{[]string{"--activity", "a", "--activity", "a", "--", "true"}, "there twice"},
		{[]string{"--activity", "a", "--slots", "0", "--", "true"}, "--slots"},
		{[]string{"--activity", "a", "--queue", "ringi.http", "--", "true"}, "belongs to the engine"},
	} {
		if got := w.run(append([]string{"worker", "run"}, c.args...)...); got.code != cli.ExitUsage || !strings.Contains(got.err, c.want) {
			t.Errorf("%v: %+v, want %s", c.args, got, c.want)
		}
	}
}
