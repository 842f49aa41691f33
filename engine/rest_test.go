package engine_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
)

// reported gives a world in which the worker w reported with a wish for five, got
// one task with the answer, and has not asked again.
func reported(t *testing.T, w *world) {
	t.Helper()
	run := w.begin("three", "k", `null`)
	tasks := w.poll("w", 2, 0)
	res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w", Output: json.RawMessage(`1`), Want: want(5)})
	if res.Err != nil || len(res.Tasks) != 1 {
		t.Fatalf("result %+v, want the next task", res)
	}
}

// Between two reports of a worker nobody stands in line.
func TestWhatIsMadeBetweenTwoRequestsIsBornForTheWorkerThatAsksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		reported(t, w)
		claims := w.tap.claims
		runs := []ringi.RunID{w.begin("one", "k1", `null`), w.begin("one", "k2", `null`)}
		before := time.Now()
		for _, run := range runs {
			tasks := w.poll("w", 1, time.Minute)
			if len(tasks) != 1 || tasks[0].Run != run || tasks[0].Lease <= 0 {
				t.Fatalf("%+v, want the task of %s", tasks, run)
			}
			res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w"})
			if res.Err != nil || res.Status != ringi.Completed {
				t.Errorf("result %+v", res)
			}
		}
		if w.tap.claims != claims || time.Since(before) > 0 {
			t.Errorf("%d claims, %v: the tasks should have been born leased", w.tap.claims-claims, time.Since(before))
		}
		w.clean()
	})
}

func TestWhatWasBornForAWorkerThatDoesNotAskAgainIsGivenBack(t *testing.T) { // W14
	bubble(t, func(t *testing.T, w *world) {
		reported(t, w)
		run := w.begin("one", "k1", `null`)
		before := time.Now()
		tasks := w.poll("other", 1, time.Minute)
		if len(tasks) != 1 || tasks[0].Run != run {
			t.Fatalf("%+v, want the task of %s", tasks, run)
		}
		if took := time.Since(before); took > 2*time.Second {
			t.Errorf("it was kept for %v", took)
		}
		res := w.do(operator, run, ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "other"})
		if res.Err != nil || res.Status != ringi.Completed {
			t.Errorf("result %+v", res)
		}
	})
}

func TestAWorkerThatStandsInLineComesBeforeOneThatWillAskAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		reported(t, w)
		got := make(chan []ringi.Task)
		go func() { got <- w.poll("other", 1, time.Minute) }()
		synctest.Wait()
		run := w.begin("one", "k1", `null`)
		if tasks := <-got; len(tasks) != 1 || tasks[0].Run != run {
			t.Errorf("%+v, want the task of %s", tasks, run)
		}
	})
}
