package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func TestALostPollAnswerHoldsNothingUpForLong(t *testing.T) { // W31, TC-20
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		lost := w.one("w1") // the answer never reaches the worker
		at := time.Now()
		again := w.one("w2")
		if d := time.Since(at); d > 8*time.Second {
			t.Errorf("handed out again after %s, want about the 5 s of a hand-over", d)
		}
		if again.Attempt != lost.Attempt || again.Token <= lost.Token || again.Key != lost.Key {
			t.Errorf("handed out again as %+v after %+v: want the same attempt and key under a larger token", again, lost)
		}
		if r := w.complete(lost, `1`); r.Answer.Outcome != ringi.Stale {
			t.Errorf("completion under the lapsed token: %+v, want stale", r)
		}
		if r := w.complete(again, `2`); r.Answer.Outcome != ringi.Accepted {
			t.Errorf("completion: %+v", r)
		}
		w.wantStatus(run, ringi.Completed)
		if n := count(w.kinds(run), "LateResult"); n != 1 {
			t.Errorf("%d late results in the log, want 1", n)
		}
		w.clean()
	})
}

func TestAFailedHandOverUsesUpNoAttemptButBacksOff(t *testing.T) { // W11
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		var gaps []time.Duration
		at := time.Now()
		for range 8 {
			task := w.one("w")
			if task.Attempt != 1 {
				t.Fatalf("attempt %d, want 1", task.Attempt)
			}
			gaps = append(gaps, time.Since(at).Truncate(time.Second))
			at = time.Now()
		}
		if gaps[3] > 8*time.Second || gaps[7] < gaps[3]+2*time.Second {
			t.Errorf("gaps between hand-overs are %v, want them to grow after five lapses", gaps)
		}
	})
}

func TestALostWorkLeaseUsesUpAnAttempt(t *testing.T) { // W11, W12
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		first := w.one("w1")
		if a := w.beat(first); a.Outcome != ringi.Accepted || a.Cancel {
			t.Fatalf("heartbeat: %+v", a)
		}
		at := time.Now()
		second := w.pollUntil("w2", 2*time.Minute)
		if d := time.Since(at); d < 30*time.Second {
			t.Errorf("the lease of 30 s was lost after %s", d)
		}
		if second.Attempt != 2 || second.Key != first.Key {
			t.Errorf("second task %+v, want attempt 2 under the same key", second)
		}
		if a := w.beat(first); a.Outcome != ringi.Stale {
			t.Errorf("heartbeat under the old token: %+v, want stale", a)
		}
		w.complete(second, `1`)
		w.wantStatus(run, ringi.Completed)
		w.clean()
	})
}

// pollUntil polls again and again, as a worker does.
func (w *world) pollUntil(worker string, limit time.Duration) ringi.Task {
	w.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if tasks := w.poll(worker, 1, 20*time.Second); len(tasks) > 0 {
			return tasks[0]
		}
	}
	w.t.Fatalf("no task within %s", limit)
	return ringi.Task{}
}

func TestHeartbeatsHoldALeaseAndEndWithTheAttempt(t *testing.T) { // TC-13
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null") // timeouts.attempt 10m
		first := w.one("w")
		at := time.Now()
		for w.beat(first).Outcome == ringi.Accepted {
			<-time.After(10 * time.Second)
		}
		if d := time.Since(at); d < 10*time.Minute || d > 10*time.Minute+20*time.Second {
			t.Errorf("the attempt of 10 m was timed out after %s", d)
		}
		if n := count(w.kinds(run), "ActivityTimedOut"); n != 1 {
			t.Errorf("%d attempts timed out, want 1", n)
		}
		w.clean()
	})
}

func TestAServerThatWasAwayStartsNoSecondAttempt(t *testing.T) { // TC-17, W14, W31
	for _, definition := range []string{"one", "mail"} {
		t.Run(definition, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var tasks []ringi.Task
				for i := range 20 {
					w.begin(definition, fmt.Sprint(i), "null")
					tasks = append(tasks, w.one("w"))
				}
				for _, task := range tasks {
					if definition == "mail" {
						if r := w.do(operator, task.Run, ringi.BeginActivity{CallRef: task.CallRef, Worker: "w"}); r.Err != nil {
							t.Fatal(r.Err)
						}
					}
					w.beat(task)
				}
				w.crash()
				<-time.After(2 * time.Minute)
				w.restart()
				<-time.After(7 * time.Second) // the worker comes back
				for range 6 {
					for _, task := range tasks {
						if a := w.beat(task); a.Outcome != ringi.Accepted {
							t.Fatalf("heartbeat after the outage: %+v", a)
						}
					}
					<-time.After(10 * time.Second)
				}
				for _, task := range tasks {
					if r := w.complete(task, `1`); r.Answer.Outcome != ringi.Accepted {
						t.Fatalf("completion: %+v", r)
					}
					w.wantStatus(task.Run, ringi.Completed)
					kinds := w.kinds(task.Run)
					if n := count(kinds, "ActivityTimedOut") + count(kinds, "ActivityRetried") + count(kinds, "OutcomeUnknown"); n != 0 {
						t.Errorf("log is %v, want no second attempt and nothing unknown", kinds)
					}
				}
				w.clean()
			})
		})
	}
}

func TestAnUnconfirmedTaskSurvivesAnOutageToo(t *testing.T) { // TC-17
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		task := w.one("w")
		w.crash()
		<-time.After(2 * time.Minute)
		w.restart()
		<-time.After(2 * time.Second)
		if a := w.beat(task); a.Outcome != ringi.Accepted {
			t.Fatalf("first heartbeat, after the outage: %+v", a)
		}
		if got := w.poll("w2", 1, 20*time.Second); len(got) != 0 {
			t.Errorf("handed out a second time: %+v", got)
		}
	})
}

func TestALeaseIsNotLostWhileWorkersCannotReachTheNode(t *testing.T) { // TC-17
	bubble(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		up := true
		w.eng.Close()
		w.conf.WorkersUp = func() bool {
			mu.Lock()
			defer mu.Unlock()
			return up
		}
		w.restart()
		w.begin("one", "", "null")
		task := w.one("w")
		w.beat(task)
		mu.Lock()
		up = false
		mu.Unlock()
		<-time.After(5 * time.Minute)
		mu.Lock()
		up = true
		mu.Unlock()
		<-time.After(20 * time.Second)
		if a := w.beat(task); a.Outcome != ringi.Accepted {
			t.Errorf("heartbeat after the endpoint was down: %+v", a)
		}
	})
}

func TestALeaseIsNotLostRightAfterTheStoreWasAway(t *testing.T) { // TC-28
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		task := w.one("w")
		w.beat(task)
		w.tap.set(func() { w.tap.away = true })
		<-time.After(5 * time.Minute)
		w.tap.set(func() { w.tap.away = false })
		<-time.After(25 * time.Second)
		if a := w.beat(task); a.Outcome != ringi.Accepted {
			t.Errorf("heartbeat after the outage: %+v", a)
		}
	})
}

// onceStep gives up after its first attempt.
const onceStep = `
name: once
steps:
  - { id: a, activity: work.once, effect: pure, retry: { attempts: 1 } }
`

func TestCallersWhoLeaveHoldUpNoLease(t *testing.T) { // TC-28, TC-29
	bubble(t, func(t *testing.T, w *world) {
		w.publish(onceStep)
		run := w.begin("once", "", "null")
		w.beat(w.one("w")) // and dies
		left, leave := context.WithCancel(t.Context())
		leave()
		for range 6 {
			<-time.After(10 * time.Second)
			if _, err := w.eng.Run(left, 0, run); err == nil {
				t.Fatal("a caller who had left was answered")
			}
			if err := w.eng.Ready(); err != nil {
				t.Errorf("not ready because a caller left: %v", err)
			}
		}
		w.wantStatus(run, ringi.Failed)
		w.clean()
	})
}

func TestACompletionSentTenTimesCountsOnce(t *testing.T) { // TC-16, W12
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("three", "", "null")
		task := w.one("w")
		var all sync.WaitGroup
		var mu sync.Mutex
		outcomes := map[ringi.AnswerOutcome]int{}
		for range 10 {
			all.Go(func() {
				r := w.complete(task, `1`)
				if r.Err != nil {
					t.Error(r.Err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[r.Answer.Outcome]++
			})
		}
		all.Wait()
		if outcomes[ringi.Accepted] != 1 || outcomes[ringi.Repeated] != 9 {
			t.Errorf("answers %v, want 1 accepted and 9 repeated", outcomes)
		}
		if n := count(w.kinds(run), "ActivitySucceeded"); n != 1 {
			t.Errorf("%d completions in the log, want 1", n)
		}
		w.clean()
	})
}

func TestTheLastCompletionOfARunMayBeSentAgainAfterItEnded(t *testing.T) { // TC-16
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		task := w.one("w")
		w.complete(task, `1`)
		r := w.complete(task, `1`)
		if r.Err != nil || r.Answer.Outcome != ringi.Repeated {
			t.Errorf("second completion: %+v, want repeated", r)
		}
		audit, err := w.mem.Audit(t.Context(), store.Key{Tenant: 1, Run: run}, 0)
		if err != nil || len(audit) != 1 || audit[0].Kind != "complete_activity" || audit[0].Answer != "repeated" {
			t.Errorf("audit %+v, %v: want the repeated completion", audit, err)
		}
	})
}

func TestBeginIsThePermissionAndIsAnsweredAlike(t *testing.T) { // W14
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("mail", "", "null")
		task := w.one("w")
		if !task.Begin {
			t.Fatalf("task %+v needs no begin", task)
		}
		for range 2 {
			r := w.do(operator, run, ringi.BeginActivity{CallRef: task.CallRef, Worker: "w"})
			if r.Err != nil || r.Answer.Outcome != ringi.Accepted {
				t.Fatalf("begin: %+v", r)
			}
		}
		<-time.After(2 * time.Minute) // nobody extends the lease
		w.wantStatus(run, ringi.InIncident)
		if kinds := w.kinds(run); count(kinds, "ActivityStarted") != 1 || count(kinds, "OutcomeUnknown") != 1 {
			t.Errorf("log is %v, want one begin and an unknown outcome", kinds)
		}
		w.clean()
	})
}

func TestBeforeBeginNothingIsUnknown(t *testing.T) { // W14
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("mail", "", "null")
		first := w.one("w1")
		second := w.one("w2") // after the first hand-over lapsed
		if r := w.do(operator, run, ringi.BeginActivity{CallRef: first.CallRef, Worker: "w1"}); r.Answer.Outcome != ringi.Stale {
			t.Errorf("begin under the lapsed token: %+v, want stale", r)
		}
		if r := w.do(operator, run, ringi.BeginActivity{CallRef: second.CallRef, Worker: "w2"}); r.Answer.Outcome != ringi.Accepted {
			t.Errorf("begin: %+v", r)
		}
		if n := count(w.kinds(run), "OutcomeUnknown"); n != 0 {
			t.Error("an attempt that never began has become unknown")
		}
	})
}

func TestAPollWhoseCallerLeftHoldsNoTask(t *testing.T) { // TC-25
	bubble(t, func(t *testing.T, w *world) {
		if got := w.poll("warm", 1, time.Millisecond); len(got) != 0 {
			t.Fatal("a task of nobody's run")
		}
		ctx, leave := context.WithCancel(t.Context())
		w.tap.set(func() {
			w.tap.before = func([]store.Write) error {
				leave() // while the commit that hands the task over is under way
				<-time.After(time.Millisecond)
				return nil
			}
		})
		gone := make(chan error, 1)
		go func() {
			_, err := w.eng.Poll(ctx, ringi.PollRequest{Worker: "gone", Queue: "default", Max: 1, Wait: 20 * time.Second})
			gone <- err
		}()
		synctest.Wait()
		w.begin("one", "", "null")
		if err := <-gone; err == nil {
			t.Fatal("the poll of a caller who left was answered")
		}
		at := time.Now()
		w.one("w")
		if d := time.Since(at); d > 2*time.Second {
			t.Errorf("the task was held for %s", d)
		}
	})
}

func TestATaskNobodyTakesIsGivenUpWhenItsTimeIsOver(t *testing.T) { // W15, TC-56
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null") // timeouts.total 1h
		if v := w.view(run); v.WaitingFor != "worker" {
			t.Errorf("waits for %q, want worker", v.WaitingFor)
		}
		<-time.After(time.Hour + 10*time.Second)
		w.wantStatus(run, ringi.Failed)
		w.clean()
	})
}

func TestACancelReachesTheWorkerWithItsNextHeartbeat(t *testing.T) { // W24, TC-71
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		task := w.one("w")
		w.beat(task)
		if r := w.do(alice, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
			t.Fatal(r.Err)
		}
		if a := w.beat(task); a.Outcome != ringi.Accepted || !a.Cancel {
			t.Errorf("heartbeat: %+v, want a wish to stop", a)
		}
		w.complete(task, `1`)
		w.wantStatus(run, ringi.Cancelled)
		w.clean()
	})
}

func TestAnAwaitedTaskWhoseWorkerIsGoneIsNotWaitedForForEver(t *testing.T) { // W24, S-13
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		w.one("w") // and gone
		if r := w.do(alice, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
			t.Fatal(r.Err)
		}
		<-time.After(time.Minute)
		w.wantStatus(run, ringi.Cancelled)
		w.clean()
	})
}

// What an expiry leads to may rely on other tasks too: whether one beside it was
// handed out decides if its worker is waited for. A loss that tells it so is no
// word against the expiry itself.
func TestAnAttemptIsGivenUpBesideOneThatSomebodyWorksOn(t *testing.T) { // W11, S-13
	bubble(t, func(t *testing.T, w *world) {
		w.publish(`
name: beside
steps:
  - id: both
    parallel:
      branches:
        left: [ { id: gone, activity: work.gone, effect: pure, retry: { attempts: 1 }, timeouts: { attempt: 8s } } ]
        right: [ { id: busy, activity: work.busy, effect: idempotent, accepted: "a test", timeouts: { attempt: 10m, total: 30m } } ]
`)
		run := w.begin("beside", "", "null")
		var busy ringi.Task
		for _, task := range w.poll("w", 2, time.Second) {
			if w.beat(task); task.Step == "busy" {
				busy = task
			}
		}
		for range 60 / 5 {
			<-time.After(5 * time.Second)
			if a := w.beat(busy); a.Cancel {
				w.complete(busy, `1`)
				w.wantStatus(run, ringi.Failed)
				w.clean()
				return
			}
		}
		t.Errorf("after a minute the run has not noticed that the attempt of 8 s is over: %+v", w.view(run).Steps)
	})
}

// The sweep of another node gives the task back after this one decided to wait
// for it and before that is committed.
func TestAHandOverThatLapsedMeanwhileIsNotAwaited(t *testing.T) { // W24, S-13
	bubble(t, func(t *testing.T, w *world) {
		w.publish(`
name: long
steps:
  - { id: a, activity: work.a, effect: idempotent, accepted: "a test", timeouts: { total: 30d } }
`)
		run := w.begin("long", "", "null")
		w.one("w") // and gone
		lapsed := 0
		w.tap.set(func() {
			w.tap.before = func(writes []store.Write) error {
				for _, c := range writes[0].Tasks {
					if c.Row == nil || !c.Row.Awaited {
						continue
					}
					due, err := w.mem.DueTasks(t.Context(), time.Now().Add(time.Hour), 1)
					if err != nil {
						return err
					}
					if len(due) != 1 {
						return fmt.Errorf("due %+v", due)
					}
					lapsed++
					if err := w.mem.Settle(t.Context(), store.Settlement{Lapses: []store.Lapse{{
						Key: due[0].Key, Token: due[0].Token, LeaseEnd: due[0].LeaseEnd, ReadyAt: due[0].LeaseEnd,
					}}}); err != nil {
						return err
					}
				}
				return nil
			}
		})
		if r := w.do(alice, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
			t.Fatal(r.Err)
		}
		<-time.After(10 * time.Second)
		if lapsed != 1 {
			t.Errorf("the run began to wait for %d tasks, want 1", lapsed)
		}
		w.wantStatus(run, ringi.Cancelled)
		w.clean()
	})
}

func TestWorkersThatOnlyBeatAreNoCapacity(t *testing.T) { // TC-19
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		task := w.one("w")
		for range 5 {
			<-time.After(10 * time.Second)
			w.beat(task)
		}
		page, err := w.eng.List(t.Context(), ringi.WorkerQuery{})
		if err != nil || len(page.Queues) != 1 || len(page.Queues[0].Workers) != 1 {
			t.Fatalf("queues %+v, %v", page.Queues, err)
		}
		if v := page.Queues[0]; v.Leased != 1 || v.Workers[0].Worker != "w" || v.Workers[0].Capacity {
			t.Errorf("queue %+v, want one leased task and a worker that is no capacity", v)
		}
	})
}

// A worker that this node knows only by its heartbeats is shown, too: what it
// holds was handed out by a node that is gone.
func TestWorkersThatNeverPolledHereAreShown(t *testing.T) { // TC-19
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		task := w.one("w")
		w.crash()
		w.restart()
		w.beat(task)
		page, err := w.eng.List(t.Context(), ringi.WorkerQuery{})
		if err != nil || len(page.Queues) != 2 {
			t.Fatalf("queues %+v, %v", page.Queues, err)
		}
		if v := page.Queues[1]; v.Queue != "" || len(v.Workers) != 1 || v.Workers[0].Worker != "w" || v.Workers[0].Capacity || v.Workers[0].LastSeen.IsZero() || !v.Workers[0].LastPoll.IsZero() {
			t.Errorf("queue %+v, want the worker without a queue, and no capacity", v)
		}
	})
}

func TestHeartbeatsOfManyWorkersShareACall(t *testing.T) { // TC-85
	bubble(t, func(t *testing.T, w *world) {
		var tasks []ringi.Task
		for i := range 100 {
			w.begin("one", fmt.Sprint(i), "null")
			tasks = append(tasks, w.one("w"))
		}
		w.tap.set(func() { w.tap.slow = 10 * time.Millisecond })
		var all sync.WaitGroup
		for _, task := range tasks {
			all.Go(func() {
				if a := w.beat(task); a.Outcome != ringi.Accepted {
					t.Errorf("heartbeat: %+v", a)
				}
			})
		}
		all.Wait()
		if w.tap.beats > 3 {
			t.Errorf("a hundred heartbeats at once took %d calls, want the first and one for all others", w.tap.beats)
		}
	})
}
