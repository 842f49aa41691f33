package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

func TestServiceRetriesWhatMayBeRetried(t *testing.T) { // W15
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		run := w.start("chain", "", `{"n":1}`)
		first := w.task()
		w.must(hand, run, ringi.FailActivity{CallRef: first.CallRef, Worker: "w", Failure: ringi.Failure{Code: "busy", Message: "try later", Retryable: true}})
		second := w.task()
		if second.Attempt != 2 || second.Key != first.Key || second.Token <= first.Token {
			t.Errorf("second attempt %+v", second)
		}
		w.must(hand, run, complete(second, `1`))
		b := w.task()
		w.must(hand, run, ringi.FailActivity{CallRef: b.CallRef, Worker: "w", Failure: ringi.Failure{Code: "refused", Retryable: true}})
		v := w.becomes(run, ringi.Failed)
		if v.Cause == nil || v.Cause.Code != "refused" || v.Cause.Step != "b" {
			t.Errorf("cause %+v", v.Cause)
		}
	})
}

func TestServiceTellsRepeatsFromWhatIsLate(t *testing.T) { // W12, TC-14, TC-16
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		run := w.start("chain", "", `{"n":1}`)
		task := w.task()
		done := complete(task, `1`)
		w.must(hand, run, done)
		if again := w.do(hand, run, done); again.Err != nil || again.Answer.Outcome != ringi.Repeated || again.Answer.By == "" {
			t.Errorf("the same again: %+v", again)
		}
		other := task
		other.Token++
		if late := w.do(hand, run, complete(other, `2`)); late.Err != nil || late.Answer.Outcome != ringi.Stale {
			t.Errorf("another lease's: %+v", late)
		}
		if v := w.view(run); string(v.Steps[0].Output) != `1` {
			t.Errorf("output %s", v.Steps[0].Output)
		}
		batch := w.as(hand).Do(t.Context(),
			ringi.Command{Run: run, Actor: hand, Do: done},
			ringi.Command{Run: "0198c5a8-0000-7000-8000-000000000000", Actor: hand, Do: done},
			ringi.Command{Run: run, Actor: hand, Do: complete(w.task(), `3`)},
		)
		if batch[0].Answer.Outcome != ringi.Repeated || batch[2].Answer.Outcome != ringi.Accepted {
			t.Errorf("a batch: %+v", batch)
		}
		w.wantCode("no such run in a batch", batch[1].Err, ringi.CodeNotFound)
	})
}

// What an http step sends and is answered is between the engine and the service:
// nobody else may take or report it, whatever the key permits.
func TestServiceKeepsTheEnginesOwnQueuesToItself(t *testing.T) { // W14, W23
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(`{ringi: v1, name: call, steps: [{id: h, http: {method: GET, url: "https://example.com/", headers: {X-Token: s3cret}}}]}`)
		w.publish(chain)
		run := w.start("call", "", ``)
		for _, queue := range []string{"ringi.http", "ringi.", "ringi.other"} {
			tasks, err := w.as(hand).Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: queue, Max: 1})
			w.wantCode("a poll of "+queue, err, ringi.CodeForbidden)
			if len(tasks) > 0 {
				t.Errorf("%s gave %+v", queue, tasks)
			}
		}
		guess := ringi.CallRef{Step: "h", Attempt: 1, Token: 2<<16 + 1}
		for _, do := range []ringi.Action{
			ringi.BeginActivity{CallRef: guess, Worker: "w"},
			ringi.CompleteActivity{CallRef: guess, Worker: "w", Output: json.RawMessage(`"forged"`)},
			ringi.FailActivity{CallRef: guess, Worker: "w", Failure: ringi.Failure{Code: "forged"}},
		} {
			w.wantCode(fmt.Sprintf("%T", do), w.do(hand, run, do).Err, ringi.CodeForbidden)
		}
		other := w.start("chain", "", `{"n":1}`)
		done := complete(w.task(), `1`)
		done.Want = &ringi.PollRequest{Worker: "w", Queue: "ringi.http", Max: 10}
		if got := w.must(hand, other, done); len(got.Tasks) > 0 {
			t.Errorf("a report brought %+v", got.Tasks)
		}
		if v := w.view(run); len(v.Steps) != 1 || v.Steps[0].Outcome != "open" {
			t.Errorf("the run is %+v", v)
		}
	})
}

func TestServicePermitsWhatMustNotRepeatOnce(t *testing.T) { // W14
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(mail)
		run := w.start("mail", "", ``)
		task := w.task()
		if !task.Begin || task.Effect != "at_most_once" {
			t.Fatalf("task %+v", task)
		}
		begin := ringi.BeginActivity{CallRef: task.CallRef, Worker: "w"}
		w.must(hand, run, begin)
		if again := w.do(hand, run, begin); again.Err != nil || again.Answer.Outcome == ringi.Stale {
			t.Errorf("begin again: %+v: it must be answered alike", again)
		}
		other := begin
		other.Token++
		if late := w.do(hand, run, other); late.Err != nil || late.Answer.Outcome != ringi.Stale {
			t.Errorf("begin with another token: %+v", late)
		}
		w.must(hand, run, complete(task, `{"id":"m1"}`))
		w.becomes(run, ringi.Completed)
	})
}

func TestServiceExtendsLeasesThatStand(t *testing.T) { // W11, W24
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		run := w.start("chain", "", `{"n":1}`)
		task := w.task()
		beat := ringi.Beat{Run: run, CallRef: task.CallRef, Worker: "w"}
		old := beat
		old.Token--
		answers, err := w.as(hand).Heartbeat(t.Context(), beat, old)
		if err != nil || len(answers) != 2 || answers[0].Outcome != ringi.Accepted || answers[0].Cancel || answers[1].Outcome != ringi.Stale {
			t.Fatalf("answers %+v, %v", answers, err)
		}
		w.must(op, run, ringi.Cancel{Reason: "test"})
		w.until("a heartbeat tells of the cancel", func() bool {
			answers, err := w.as(hand).Heartbeat(t.Context(), beat)
			return err == nil && (answers[0].Cancel || answers[0].Outcome == ringi.Stale)
		})
		if none, err := w.as(hand).Heartbeat(t.Context()); err != nil || len(none) != 0 {
			t.Errorf("no beats: %+v, %v", none, err)
		}
	})
}

func TestServiceHandsOutWhatIsAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		w.start("chain", "", `{"n":1}`)
		svc := w.as(hand)
		poll := func(queue string, activities ...string) int {
			t.Helper()
			tasks, err := svc.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: queue, Activities: activities, Max: 5})
			if err != nil {
				t.Fatal(err)
			}
			return len(tasks)
		}
		if n := poll("other"); n != 0 {
			t.Errorf("another queue has %d tasks", n)
		}
		if n := poll("default", "work.b"); n != 0 {
			t.Errorf("another activity has %d tasks", n)
		}
		if n := poll("default", "work.b", "work.a"); n != 1 {
			t.Errorf("%d tasks", n)
		}
		if n := poll("default"); n != 0 {
			t.Errorf("a task was handed out twice")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-time.After(20 * time.Millisecond)
			cancel()
		}()
		if _, err := svc.Poll(ctx, ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: 20 * time.Second}); err == nil {
			t.Error("a poll that was given up: no error")
		}
		w.until("the queue shows its worker", func() bool {
			for _, q := range w.list(op, ringi.WorkerQuery{}).Queues {
				if q.Queue == "default" && q.Leased == 1 && slices.ContainsFunc(q.Workers, func(v ringi.WorkerView) bool { return v.Worker == "w" && v.Capacity }) {
					return true
				}
			}
			return false
		})
	})
}

// Nothing between worker and engine gives up on a poll that waits for long: it
// comes back empty, and the connection serves the next one.
func TestServiceLetsAPollWait(t *testing.T) {
	const long = 6 * time.Second // beyond the five seconds of the framework's own time-out
	onBoth(t, func(t *testing.T, w *world) {
		for range 2 {
			tasks, err := w.as(hand).Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: long})
			if err != nil || len(tasks) > 0 {
				t.Fatalf("a poll of %s: %d tasks, %v", long, len(tasks), err)
			}
		}
	})
}

func TestServiceTakesPayloadsUpToTheLimit(t *testing.T) { // TC-79
	onBoth(t, func(t *testing.T, w *world) {
		w.publish("ringi: v1\nname: big\nsteps:\n  - { id: a, activity: work.a, effect: pure }\n")
		fits := json.RawMessage(`"` + strings.Repeat("<", ringi.MaxPayload-2) + `"`)
		run := w.must(op, "", ringi.Start{Definition: "big", Input: fits}).Run
		over := json.RawMessage(`"` + strings.Repeat("<", ringi.MaxPayload) + `"`)
		w.wantCode("a larger input", w.do(op, "", ringi.Start{Definition: "big", Input: over}).Err, ringi.CodeTooLarge)
		w.wantCode("an input above a request", w.do(op, "", ringi.Start{Definition: "big", Input: json.RawMessage(`"` + strings.Repeat("<", 2<<20) + `"`)}).Err, ringi.CodeTooLarge)
		w.must(hand, run, complete(w.task(), string(fits)))
		w.becomes(run, ringi.Completed)
	})
}

func TestServiceServesAWorker(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		w.publish(mail)
		var failures atomic.Int64
		number := func(_ context.Context, in map[string]json.Number) (json.Number, error) { return in["n"], nil }
		flaky := func(context.Context, json.RawMessage) (json.RawMessage, error) {
			if failures.Add(1)%5 == 0 {
				return nil, worker.Fail("refused", "the fifth")
			}
			return json.RawMessage(`null`), nil
		}
		send := func(ctx context.Context, _ struct{}) (map[string]string, error) {
			return map[string]string{"id": worker.Key(ctx)}, nil
		}
		wk, err := worker.New(worker.Config{
			Service: w.as(hand), Name: "hands", Actor: hand, Trouble: func(err error) { t.Log(err) },
			Queues: []worker.Queue{{Slots: 8, Activities: []worker.Activity{
				worker.Func("work.a", number), worker.Func("work.b", flaky), worker.Func("mail.send", send),
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- wk.Run(ctx) }()
		var runs []ringi.RunID
		for i := range 40 {
			runs = append(runs, w.start("chain", fmt.Sprint("c", i), fmt.Sprintf(`{"n":%d}`, i)))
		}
		for i := range 10 {
			runs = append(runs, w.start("mail", fmt.Sprint("m", i), ``))
		}
		ended := map[ringi.Status]int{}
		for _, run := range runs {
			w.until(fmt.Sprintf("run %s has ended", run), func() bool { return w.view(run).Status.Final() })
			ended[w.view(run).Status]++
		}
		if ended[ringi.Completed] != 42 || ended[ringi.Failed] != 8 {
			t.Errorf("ended %v, want 42 completed and 8 failed", ended)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
