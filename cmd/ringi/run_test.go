package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
)

// Definitions that need no worker.
const (
	helloDefinition = `ringi: v1
name: hello
input: { type: object, required: [who], properties: { who: { type: string } } }
title: "Hello ${ input.who }"
steps:
  - id: greet
    set: { text: "hello to ${ input.who }" }
output: { text: "${ vars.text }" }
`
	failDefinition = `ringi: v1
name: broken
steps:
  - id: stop
    fail: { code: out_of_luck, message: "it was not to be" }
`
	paidDefinition = `ringi: v1
name: paid
input: { type: object, required: [order], properties: { order: { type: string } } }
steps:
  - id: paid
    wait: { event: order.paid, key: "${ input.order }" }
output: { got: "${ steps.paid.output }" }
`
	shareDefinition = `ringi: v1
name: share
input: { type: object, required: [of, among], properties: { of: { type: number }, among: { type: number } } }
steps:
  - id: divide
    set: { each: "${ input.of / input.among }" }
`
	callDefinition = `ringi: v1
name: call
steps:
  - id: call
    activity: shop.call
    effect: pure
`
)

// served is a desk with a server on which the definitions are published.
func served(t *testing.T, definitions ...string) *desk {
	t.Helper()
	w := newDesk(t)
	w.start("serve")
	for _, d := range definitions {
		if got := w.runWith(d, "publish", "-"); got.code != cli.ExitOK {
			t.Fatalf("publish: %+v", got)
		}
	}
	return w
}

// begin starts a run and returns it.
func (w *desk) begin(args ...string) client.StartedRun {
	w.t.Helper()
	var run client.StartedRun
	w.ok(&run, append([]string{"start"}, args...)...)
	return run
}

// show reads a run.
func (w *desk) show(run ringi.RunID) client.RunState {
	w.t.Helper()
	var s client.RunState
	w.ok(&s, "show", string(run))
	return s
}

func TestStartAndShowPrintTheirShapes(t *testing.T) {
	w := served(t, helloDefinition)
	run := w.begin("hello", "-i", "who=you")
	if len(run.Run) != client.IDLength || !run.Created || run.Version != 1 || run.Status != ringi.Completed {
		t.Errorf("start is %+v", run)
	}
	s := w.show(run.Run)
	if s.Run != run.Run || s.Status != ringi.Completed || s.WaitingFor != "" || len(s.EffectsLeft) != 0 ||
		!slices.Equal(s.Steps, []client.StepState{{ID: "greet", Outcome: "succeeded"}}) {
		t.Errorf("show is %+v", s)
	}
	raw := w.run("show", string(run.Run), "--json").out
	for _, member := range []string{`"waitingFor":""`, `"effectsLeft":[]`, `"outcome":"succeeded"`, `"attempts":0`} {
		if !strings.Contains(raw, member) {
			t.Errorf("show --json has no %s: %s", member, raw)
		}
	}
	if table := w.run("show", string(run.Run)).out; !strings.Contains(table, "Hello you") || !strings.Contains(table, `{"text":"hello to you"}`) {
		t.Errorf("show is %s", table)
	}
}

// TC-26: one key, one run.
func TestAKeyHasOneRun(t *testing.T) {
	w := served(t, helloDefinition)
	first := w.begin("hello", "-i", "who=you", "--key", "K-1")
	again := w.begin("hello", "--input", `{"who": "you"}`, "--key", "K-1")
	if again.Created || again.Run != first.Run {
		t.Errorf("a repeat is %+v after %+v", again, first)
	}
	w.exits(cli.ExitConflict, nil, "start", "hello", "-i", "who=me", "--key", "K-1")
	w.exits(cli.ExitFailed, nil, "start", "hello", "-i", "who=1")
	w.exits(cli.ExitNotFound, nil, "start", "nobody")
	w.exits(cli.ExitNotFound, nil, "start", "hello", "-i", "who=me", "--version", "7")
}

func TestAnAwaitedRunThatFailedExitsWith5(t *testing.T) {
	w := served(t, helloDefinition, failDefinition)
	var run client.StartedRun
	w.exits(cli.ExitNotCompleted, &run, "start", "broken", "--wait")
	if run.Status != ringi.Failed {
		t.Errorf("the awaited run is %+v", run)
	}
	w.ok(&run, "start", "hello", "-i", "who=you", "--wait", "--timeout", "1m")
	if run.Status != ringi.Completed {
		t.Errorf("the awaited run is %+v", run)
	}
	if got := w.run("start", "broken", "--wait"); !strings.Contains(got.err, "out_of_luck") {
		t.Errorf("says %q", got.err)
	}
}

func TestAWaitThatTakesTooLongExitsWith8(t *testing.T) {
	w := served(t, paidDefinition)
	var run client.StartedRun
	w.exits(cli.ExitWaited, &run, "start", "paid", "-i", "order=A", "--wait", "--timeout", "50ms")
	if run.Status != ringi.Waiting {
		t.Errorf("the awaited run is %+v", run)
	}
	if got := w.run("start", "paid", "-i", "order=B", "--wait", "--timeout", "50ms"); !strings.Contains(got.err, "waiting for event") {
		t.Errorf("says %q", got.err)
	}
}

// TC-46, TC-47: an event finds its wait, once.
func TestAnEventCompletesTheRunThatWaits(t *testing.T) {
	w := served(t, paidDefinition)
	run := w.begin("paid", "-i", "order=A")
	if s := w.show(run.Run); s.Status != ringi.Waiting || s.WaitingFor != "event" {
		t.Errorf("before: %+v", s)
	}
	w.write("data.json", `{"amount": 0.10}`)
	var sent struct {
		ID      string              `json:"id"`
		Outcome ringi.AnswerOutcome `json:"outcome"`
	}
	w.ok(&sent, "send", "order.paid", "--key", "A", "--data", "@data.json", "--id", "E-1")
	if sent.ID != "E-1" || sent.Outcome != ringi.Accepted {
		t.Errorf("sent %+v", sent)
	}
	w.ok(&sent, "send", "order.paid", "--key", "A", "--data", "@data.json", "--id", "E-1")
	if sent.Outcome != ringi.Repeated {
		t.Errorf("sent again: %+v", sent)
	}
	eventually(t, "the end of the run", func() bool { return w.show(run.Run).Status == ringi.Completed })
	if table := w.run("show", string(run.Run)).out; !strings.Contains(table, "0.1") {
		t.Errorf("the output is %s", table)
	}
}

func TestWatchPrintsOneObjectPerLine(t *testing.T) {
	w := served(t, paidDefinition)
	watched := make(chan output, 1)
	go func() {
		watched <- w.run("start", "paid", "-i", "order=A", "--key", "K", "--watch", "--json", "--timeout", patience.String())
	}()
	eventually(t, "the run", func() bool {
		return strings.Contains(w.run("show", "K").out, "waiting")
	})
	w.ok(nil, "send", "order.paid", "--key", "A")
	got := <-watched
	if got.code != cli.ExitOK {
		t.Fatalf("%+v", got)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var statuses []string
	for _, line := range lines {
		var s struct {
			Run    string `json:"run"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Run == "" {
			t.Errorf("line %q: %v", line, err)
		}
		statuses = append(statuses, s.Status)
	}
	if len(lines) < 3 || statuses[len(statuses)-1] != "completed" {
		t.Errorf("the statuses are %v", statuses)
	}
}

func TestHistoryIsOneObjectAndItsWatchOneLinePerEvent(t *testing.T) {
	w := served(t, helloDefinition)
	run := w.begin("hello", "-i", "who=you")
	var h struct {
		Run    ringi.RunID          `json:"run"`
		Events []ringi.HistoryEvent `json:"events"`
	}
	w.ok(&h, "history", string(run.Run))
	if len(h.Events) < 2 || h.Events[0].Kind != "RunStarted" || h.Events[0].Seq != 1 {
		t.Errorf("history is %+v", h)
	}
	got := w.run("history", string(run.Run), "--watch", "--json")
	if lines := strings.Count(got.out, "\n"); got.code != cli.ExitOK || lines != len(h.Events) {
		t.Errorf("the watch has %d lines for %d events: %+v", lines, len(h.Events), got)
	}
	w.ok(&h, "history", string(run.Run), "--after", "1")
	if h.Events[len(h.Events)-1].Kind == "RunStarted" {
		t.Errorf("after 1: %+v", h.Events)
	}
}

func TestRunsAreListedAndFiltered(t *testing.T) {
	w := served(t, helloDefinition, paidDefinition)
	for _, who := range []string{"a", "b", "c"} {
		w.begin("hello", "-i", "who="+who, "--key", who)
	}
	w.begin("paid", "-i", "order=A")
	var list struct {
		Runs []ringi.RunSummary `json:"runs"`
		Next string             `json:"next"`
	}
	for args, want := range map[string]int{
		"runs": 4, "runs --status completed": 3, "runs --status waiting,completed": 4, "runs --definition paid": 1, "runs --key b": 1, "runs --limit 2": 2, "runs --status paused": 0,
	} {
		w.ok(&list, strings.Fields(args)...)
		if len(list.Runs) != want {
			t.Errorf("ringi %s lists %d runs, want %d", args, len(list.Runs), want)
		}
	}
	w.ok(&list, "runs", "--limit", "3")
	w.ok(&list, "runs", "--limit", "3", "--after", list.Next)
	if len(list.Runs) != 1 || list.Runs[0].Key != "a" {
		t.Errorf("the second page is %+v", list.Runs)
	}
}

func TestARunIsNamedByAUniquePartOfItsIDOrByItsKey(t *testing.T) {
	w := served(t, helloDefinition)
	a, b := w.begin("hello", "-i", "who=a", "--key", "K-a"), w.begin("hello", "-i", "who=b")
	id := string(a.Run)
	for _, name := range []string{id, strings.ToUpper(id), id[len(id)-10:], "K-a"} {
		var s client.RunState
		w.ok(&s, "show", name)
		if s.Run != a.Run {
			t.Errorf("%s shows %s", name, s.Run)
		}
	}
	common := 0
	for a.Run[common] == b.Run[common] {
		common++
	}
	if got := w.run("show", id[:common]); got.code != cli.ExitNotFound || !strings.Contains(got.err, "more than one") {
		t.Errorf("an ambiguous id: %+v", got)
	}
	for _, name := range []string{"ffffffff", "K-b", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "x"} {
		if got := w.run("show", name); got.code != cli.ExitNotFound {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A wait survives a server that is away, and a run survives its server.
func TestAWaitOutlivesARestartOfTheServer(t *testing.T) {
	w := newDesk(t)
	first := w.start("serve")
	if got := w.runWith(paidDefinition, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	run := w.begin("paid", "-i", "order=A")
	if code := first.end(); code != cli.ExitOK {
		t.Fatalf("the drained server exits with %d", code)
	}
	w.start("serve")
	if s := w.show(run.Run); s.Status != ringi.Waiting {
		t.Errorf("after the restart: %+v", s)
	}
	w.ok(nil, "send", "order.paid", "--key", "A")
	eventually(t, "the end of the run", func() bool { return w.show(run.Run).Status == ringi.Completed })
}

func TestARunWithoutWorkerSaysSo(t *testing.T) {
	w := served(t, callDefinition)
	run := w.begin("call")
	if s := w.show(run.Run); s.Status != ringi.Running || s.WaitingFor != "worker" || s.Steps[0].Outcome != "open" {
		t.Errorf("%+v", s)
	}
}

func TestAPausedOrWaitingRunSaysWhyAndForWhat(t *testing.T) {
	w, run := finance(t)
	id := string(run)
	s := w.show(run)
	if len(s.Waits) != 1 || s.Waits[0].For != "approval" || s.Waits[0].Step != "approve" || !slices.Equal(s.Waits[0].Approvers, []string{"group:finance"}) || s.Waits[0].Until.IsZero() || s.Paused != nil {
		t.Errorf("waiting: %+v", s)
	}
	if text := w.run("show", id).out; !strings.Contains(text, "waits at approve") || !strings.Contains(text, "for approval by group:finance, until 20") {
		t.Errorf("waiting:\n%s", text)
	}
	w.people(principal{"olga", "person", "", []string{"read", "operate"}})
	eventually(t, "olga's key", func() bool { return w.run("show", id, "--key-file", "olga").code == cli.ExitOK })
	w.env["RINGI_KEY_FILE"] = "olga"
	w.ok(nil, "pause", id, "--reason", "the shop is closed")
	if s := w.show(run); s.Paused == nil || s.Paused.By != "olga" || s.Paused.Reason != "the shop is closed" || s.Paused.At.IsZero() {
		t.Errorf("paused: %+v", s.Paused)
	}
	if text := w.run("show", id).out; !strings.Contains(text, "by olga since 20") || !strings.Contains(text, "the shop is closed") {
		t.Errorf("paused:\n%s", text)
	}
}

func TestAWaitForAnEventNamesItAndItsKey(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("paid.yaml", paidDefinition)
	w.ok(nil, "publish", "paid.yaml")
	run := w.begin("paid", "-i", "order=A-7")
	if text := w.run("show", string(run.Run)).out; !strings.Contains(text, "for event order.paid with the key A-7") {
		t.Errorf("shows\n%s", text)
	}
}

func TestAnInputThatDoesNotFitComesWithAHint(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("hello.yaml", helloDefinition)
	w.ok(nil, "publish", "hello.yaml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"start", "hello"}, "--input '{}'"},
		{[]string{"start", "hello", "-i", "who=5"}, `-i 'who="5"'`},
		{[]string{"start", "hello", "-i", "who=true"}, `-i 'who="true"'`},
	} {
		if got := w.run(c.args...); got.code != cli.ExitFailed || !strings.Contains(got.err, c.want) {
			t.Errorf("ringi %s: %+v, want %s", strings.Join(c.args, " "), got, c.want)
		}
	}
	w.ok(nil, "start", "hello", "-i", `who="5"`)
}

// Two keys that are no text are never one key.
func TestAKeyThatIsNoTextIsRefused(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("hello.yaml", helloDefinition)
	w.ok(nil, "publish", "hello.yaml")
	for _, key := range []string{"order-\xe9", "order-\xe8"} {
		if got := w.run("start", "hello", "-i", "who=a", "--key", key); got.code != cli.ExitFailed || !strings.Contains(got.err, "UTF-8") {
			t.Errorf("%q: %+v", key, got)
		}
	}
}

func TestACursorThatIsNoneIsAMistakeOfTheCall(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	for _, list := range []string{"runs", "approvals", "incidents"} {
		if got := w.run(list, "--after", "foo"); got.code != cli.ExitUsage || !strings.Contains(got.err, "cursor") {
			t.Errorf("%s: %+v", list, got)
		}
	}
}
