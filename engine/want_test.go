package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
)

func want(most int) *ringi.PollRequest {
	return &ringi.PollRequest{Worker: "w", Queue: "default", Max: most}
}

func TestAReportBringsTheNextTaskUnderItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("three", "k", `null`)
		tasks := w.poll("w", 2, 0) // one of two: nothing older waits
		if len(tasks) != 1 {
			t.Fatalf("%d tasks", len(tasks))
		}
		claims := w.tap.claims
		for _, next := range []string{"b", "c"} {
			res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w", Output: json.RawMessage(`1`), Want: want(2)})
			if res.Err != nil || len(res.Tasks) != 1 || res.Tasks[0].Step != next || res.Tasks[0].Lease <= 0 {
				t.Fatalf("result %+v, want the task of %s", res, next)
			}
			tasks = res.Tasks
		}
		if w.tap.claims != claims {
			t.Errorf("%d claims: the tasks should have been born leased", w.tap.claims-claims)
		}
		before := time.Now()
		res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w", Want: want(2)})
		if res.Err != nil || len(res.Tasks) != 0 || res.Status != ringi.Completed {
			t.Errorf("the last result %+v", res)
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("it waited %v for tasks that do not exist", took)
		}
		w.clean()
	})
}

func TestAReportBringsWhatWasReadyBefore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "k1", `null`)
		task := w.one("w")
		other := w.begin("one", "k2", `null`)
		res := w.do(operator, run, ringi.FailActivity{
			CallRef: task.CallRef, Worker: "w", Failure: ringi.Failure{Code: "busy", Retryable: true}, Want: want(5),
		})
		if res.Err != nil || len(res.Tasks) != 1 || res.Tasks[0].Run != other {
			t.Errorf("result %+v", res)
		}
		w.clean()
	})
}

func TestAReportThatIsRefusedStillBringsTasks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "k1", `null`)
		res := w.do(operator, "no-such-run", ringi.CompleteActivity{CallRef: ringi.CallRef{Step: "a", Attempt: 1, Token: 1}, Worker: "w", Want: want(1)})
		if ringi.ErrorCode(res.Err) != ringi.CodeNotFound || len(res.Tasks) != 1 || res.Tasks[0].Run != run {
			t.Errorf("result %+v: what was taken under a lease must reach its worker", res)
		}
	})
}

// Under load something is always made ready: that must not keep everything
// that follows from being born leased.
func TestWhatIsReadyBesideAWishIsBroughtByItAndEndsTheClaims(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("three", "k", `null`)
		tasks := w.poll("w", 2, 0)
		other := w.begin("one", "k2", `null`) // made ready: nobody waits
		res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w", Output: json.RawMessage(`1`), Want: want(5)})
		if res.Err != nil || len(res.Tasks) != 2 {
			t.Fatalf("result %+v, want the next task and that of %s", res, other)
		}
		claims := w.tap.claims
		i := 0
		if res.Tasks[0].Run != run {
			i = 1
		}
		res = w.do(operator, run, ringi.CompleteActivity{CallRef: res.Tasks[i].CallRef, Worker: "w", Output: json.RawMessage(`1`), Want: want(5)})
		if res.Err != nil || len(res.Tasks) != 1 || w.tap.claims != claims {
			t.Errorf("result %+v after %d claims, want the next task born leased", res, w.tap.claims-claims)
		}
		w.clean()
	})
}
