package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func TestCommandsThatArriveDuringACommitShareTheNext(t *testing.T) { // W6
	bubble(t, func(t *testing.T, w *world) {
		w.tap.set(func() {
			w.tap.before = func([]store.Write) error {
				<-time.After(10 * time.Millisecond) // the disk
				return nil
			}
		})
		var all sync.WaitGroup
		results := make([]ringi.Result, 50)
		for i := range results {
			all.Go(func() {
				results[i] = w.do(operator, "", ringi.Start{Definition: "three", Key: fmt.Sprint(i)})
			})
		}
		all.Wait()
		for _, r := range results {
			if r.Err != nil || !r.Created {
				t.Fatalf("start: %+v", r)
			}
		}
		// One for the first that came, one for all others, for each committer.
		if n := len(w.tap.commits); n > 4 {
			t.Errorf("50 commands took %d commits, want at most 4", n)
		}
	})
}

func TestAnIdleSystemCommitsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		at := time.Now()
		w.begin("three", "", "null")
		if d := time.Since(at); d != 0 {
			t.Errorf("a single command waited %s", d)
		}
	})
}

func TestSixteenClientsStartOneKeyAtOnce(t *testing.T) { // TC-26
	bubble(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		results := make([]ringi.Result, 16)
		for i := range results {
			all.Go(func() {
				results[i] = w.do(operator, "", ringi.Start{Definition: "three", Key: "k", Input: json.RawMessage(`{"n":1}`)})
			})
		}
		all.Wait()
		created := 0
		for _, r := range results {
			if r.Err != nil || r.Run != results[0].Run || r.Version != 1 {
				t.Fatalf("start: %+v, want run %s", r, results[0].Run)
			}
			if r.Created {
				created++
			}
		}
		if created != 1 {
			t.Errorf("%d starts created a run, want 1", created)
		}
		r := w.do(operator, "", ringi.Start{Definition: "three", Key: "k", Input: json.RawMessage(`{"n":2}`)})
		if ringi.ErrorCode(r.Err) != ringi.CodeStartKeyConflict {
			t.Errorf("other input under the same key: %+v, want a conflict", r)
		}
		w.clean()
	})
}

func TestAStartMayBeRepeatedAfterANewVersionWasPublished(t *testing.T) { // TC-26, W2
	const old, next = `
name: order
start: { key: "${ input.a }" }
steps:
  - { id: a, activity: work.a, effect: pure }
`, `
name: order
start: { key: "${ input.a }" }
input: { type: object, required: [a, b], properties: { a: {}, b: {} } }
steps:
  - { id: a, activity: work.a, effect: pure }
`
	for name, key := range map[string]string{"a key that was given": "k", "a key of the input": ""} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.publish(old)
				run := w.begin("order", key, `{"a":"k"}`)
				w.publish(next)
				again := func(actor ringi.Actor, input string) ringi.Result {
					return w.do(actor, "", ringi.Start{Definition: "order", Key: key, Input: json.RawMessage(input)})
				}
				for _, actor := range []ringi.Actor{operator, alice} {
					r := again(actor, ` {"a": "k"}`)
					if r.Err != nil || r.Run != run || r.Created || r.Version != 1 || r.Seq != w.view(run).Seq || r.Answer.Outcome != ringi.Repeated {
						t.Errorf("same key, same input: %+v, want a repeat of run %s", r, run)
					}
				}
				if r := again(operator, `{"a":"k","c":1}`); ringi.ErrorCode(r.Err) != ringi.CodeStartKeyConflict {
					t.Errorf("same key, other input: %+v, want a conflict", r)
				}
				if r := w.do(operator, "", ringi.Start{Definition: "order", Key: "other", Input: json.RawMessage(`{"a":"k"}`)}); ringi.ErrorCode(r.Err) != ringi.CodeInvalid {
					t.Errorf("a key that nobody holds: %+v, want invalid", r)
				}
			})
		})
	}
}

func TestTwoNodesStartOneKeyAtOnce(t *testing.T) { // TC-26, TC-34
	bubble(t, func(t *testing.T, w *world) {
		other := &world{t: t, mem: w.mem, tap: &tap{Store: w.mem}, conf: w.conf}
		other.conf.Store = other.tap
		other.start()
		defer other.eng.Close()
		var all sync.WaitGroup
		results := make([]ringi.Result, 20)
		for i := range results {
			node := w
			if i%2 == 0 {
				node = other
			}
			all.Go(func() { results[i] = node.do(operator, "", ringi.Start{Definition: "three", Key: "k"}) })
		}
		all.Wait()
		created := 0
		for _, r := range results {
			if r.Err != nil || r.Run != results[0].Run {
				t.Fatalf("start: %+v, want run %s", r, results[0].Run)
			}
			if r.Created {
				created++
			}
		}
		if created != 1 {
			t.Errorf("%d starts created a run, want 1", created)
		}
	})
}

func TestACommandDecidedOnAnOldStateIsDecidedAgain(t *testing.T) { // W6, TC-61
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		other := &world{t: t, mem: w.mem, tap: &tap{Store: w.mem}, conf: w.conf}
		other.conf.Store = other.tap
		other.start()
		defer other.eng.Close()
		if r := other.do(operator, run, ringi.Cancel{Reason: "not needed"}); r.Err != nil {
			t.Fatal(r.Err)
		}
		// This node still holds the state before the cancel in memory.
		r := w.do(operator, run, ringi.Pause{Reason: "lunch"})
		if ringi.ErrorCode(r.Err) != ringi.CodeFinal {
			t.Errorf("pause of a cancelled run: %+v, want final", r)
		}
		w.wantStatus(run, ringi.Cancelled)
	})
}

func TestNothingIsAnsweredBeforeItsProof(t *testing.T) { // W20
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		release := make(chan struct{})
		w.tap.set(func() {
			w.tap.before = func([]store.Write) error {
				<-release
				return nil
			}
		})
		answered := make(chan ringi.Result, 3)
		for _, a := range []ringi.Action{
			ringi.Pause{}, // a change
			ringi.Pause{}, // a repeat of it
			ringi.ResolveIncident{Incident: 7, How: ringi.ResolveDone, Reason: "x"}, // a refusal
		} {
			go func() { answered <- w.do(operator, run, a) }()
		}
		synctest.Wait()
		select {
		case r := <-answered:
			t.Fatalf("answered before the commit: %+v", r)
		default:
		}
		close(release)
		for range 3 {
			<-answered
		}
	})
}

func TestADoubtfulCommitIsSettledBeforeAnybodyIsAnswered(t *testing.T) { // W31
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied=%v", applied), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				run := w.begin("nap", "", "null")
				doubts := 3
				doubt := func() error {
					if doubts--; doubts < 0 {
						return nil
					}
					return fmt.Errorf("connection reset: %w", store.ErrDoubt)
				}
				w.tap.set(func() {
					if applied {
						w.tap.after = func([]store.Write, error) error { return doubt() }
					} else {
						w.tap.before = func([]store.Write) error { return doubt() }
					}
					w.tap.commits = nil
				})
				if r := w.do(operator, run, ringi.Pause{Reason: "x"}); r.Err != nil || r.Answer.Outcome != ringi.Accepted {
					t.Fatalf("pause: %+v", r)
				}
				for _, c := range w.tap.commits[1:] {
					if c[0].Commit != w.tap.commits[0][0].Commit {
						t.Error("the write was sent again under another commit id")
					}
				}
				if n := count(w.kinds(run), "RunPaused"); n != 1 {
					t.Errorf("paused %d times, want 1", n)
				}
				w.clean()
			})
		})
	}
}

func TestAStoreThatIsAwayIsSaidSoAndComesBack(t *testing.T) { // TC-28, TC-29
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.tap.set(func() { w.tap.away = true })
		r := w.do(operator, run, ringi.Pause{})
		if ringi.ErrorCode(r.Err) != ringi.CodeUnavailable {
			t.Errorf("pause without a store: %+v, want unavailable", r)
		}
		if w.eng.Ready() == nil {
			t.Error("ready without a store")
		}
		w.tap.set(func() { w.tap.away = false })
		<-time.After(3 * time.Second)
		if err := w.eng.Ready(); err != nil {
			t.Errorf("not ready although the store is back: %v", err)
		}
		if r := w.do(operator, run, ringi.Pause{}); r.Err != nil {
			t.Errorf("pause: %+v", r)
		}
		if n := count(w.kinds(run), "RunPaused"); n != 1 {
			t.Errorf("paused %d times, want 1", n)
		}
	})
}

func TestABadWriteSpoilsNoOther(t *testing.T) { // TC-38, TC-80
	bubble(t, func(t *testing.T, w *world) {
		bad, good := w.begin("nap", "bad", "null"), w.begin("nap", "good", "null")
		w.tap.set(func() {
			w.tap.before = func(writes []store.Write) error {
				<-time.After(time.Millisecond)
				for i, x := range writes {
					if x.Key.Run == bad {
						return &store.BadWrite{Index: i, Err: errors.New("constraint")}
					}
				}
				return nil
			}
		})
		var all sync.WaitGroup
		results := map[ringi.RunID]ringi.Result{}
		var mu sync.Mutex
		for _, run := range []ringi.RunID{bad, good} {
			all.Go(func() {
				r := w.do(operator, run, ringi.Pause{})
				mu.Lock()
				defer mu.Unlock()
				results[run] = r
			})
		}
		all.Wait()
		if ringi.ErrorCode(results[bad].Err) != ringi.CodeInternal {
			t.Errorf("bad run: %+v, want internal", results[bad])
		}
		if results[good].Err != nil {
			t.Errorf("good run: %+v", results[good])
		}
		page, err := w.eng.List(t.Context(), ringi.IncidentQuery{})
		if err != nil || len(page.Incidents) != 1 || page.Incidents[0].Run != bad || page.Incidents[0].Kind != ringi.IncidentCorrupt {
			t.Errorf("incidents: %+v, %v", page.Incidents, err)
		}
		w.tap.set(func() { w.tap.before = nil })
		<-time.After(2 * time.Minute)
		if r := w.do(operator, bad, ringi.Pause{}); r.Err != nil {
			t.Errorf("after its quarantine: %+v", r)
		}
		if page, _ := w.eng.List(t.Context(), ringi.IncidentQuery{}); len(page.Incidents) != 0 {
			t.Errorf("a run that was cured is still shown: %+v", page.Incidents)
		}
	})
}

func TestThreeActivitiesWriteTenRows(t *testing.T) { // W3
	bubble(t, func(t *testing.T, w *world) {
		polled := make(chan []ringi.Task, 1)
		next := func() {
			go func() { polled <- w.poll("w", 1, 20*time.Second) }()
			synctest.Wait()
		}
		next()
		w.tap.set(func() { w.tap.commits, w.tap.claims = nil, 0 })
		run := w.begin("three", "", "null")
		for range 3 {
			task := (<-polled)[0]
			if task.Token&0xffff != 1 || task.Lease != 5*time.Second {
				t.Errorf("task %+v is not a first hand-out", task)
			}
			next()
			w.complete(task, `"ok"`)
		}
		w.wantStatus(run, ringi.Completed)
		rows := map[string]int{}
		for _, c := range w.tap.commits {
			for _, x := range c {
				if x.Body != nil {
					rows["log"]++
				}
				if x.Start != nil || x.Run != nil {
					rows["run"]++
				}
				rows["task"] += len(x.Tasks)
				rows["other"] += len(x.Timers) + len(x.Waits) + len(x.Approvals) + len(x.Incidents) + len(x.Messages) + len(x.Audit)
				if x.Snapshot != nil {
					rows["other"]++
				}
			}
		}
		if rows["log"] != 4 || rows["run"] != 2 || rows["task"] != 4 || rows["other"] != 0 || w.tap.claims != 0 {
			t.Errorf("wrote %v with %d claims, want 4 log, 2 run, 4 task and nothing else, without a claim", rows, w.tap.claims)
		}
		w.clean()
	})
}
