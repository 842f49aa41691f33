package engine_test

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/sqlite"
)

func TestAJumpOfTheClockFiresTimersAndTakesNoLeases(t *testing.T) { // TC-07
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ahead time.Duration
		mem := store.NewMemory(store.MemoryConfig{Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}})
		w := newWorldOn(t, mem)
		nap := w.begin("nap", "", "null")
		work := w.begin("one", "", "null")
		task := w.one("w")
		w.beat(task)
		mu.Lock()
		ahead = 5 * time.Minute
		mu.Unlock()
		for range 5 {
			<-time.After(9 * time.Second)
			if a := w.beat(task); a.Outcome != ringi.Accepted {
				t.Fatalf("heartbeat after the jump: %+v", a)
			}
		}
		mu.Lock()
		ahead = 14 * 24 * time.Hour
		mu.Unlock()
		<-time.After(2 * time.Second)
		w.wantStatus(nap, ringi.Completed)
		if n := count(w.kinds(nap), "TimerFired"); n != 1 {
			t.Errorf("fired %d times, want 1", n)
		}
		mu.Lock()
		ahead -= time.Hour
		mu.Unlock()
		<-time.After(2 * time.Second)
		late := w.begin("one", "late", "null") // stamped an hour before the others
		w.wantStatus(late, ringi.Running)
		if n := count(w.kinds(work), "ActivityRetried"); n != 0 {
			t.Errorf("a second attempt after a jump of the clock")
		}
		// Sweeps put rows off by the clock as it was before it was set back.
		r, err := replay.Run(t.Context(), mem, replay.Query{Now: time.Now().Add(14 * 24 * time.Hour)})
		if err != nil || len(r.Mismatches) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
		w.eng.Close()
	})
}

func TestAnotherDatabaseEmptiesTheMemory(t *testing.T) { // W5
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.do(alice, run, ringi.Pause{})
		if w.tap.loads != 0 {
			t.Fatalf("%d loads of a run in memory, want none", w.tap.loads)
		}
		w.tap.set(func() { w.tap.other = " restored" })
		w.do(alice, run, ringi.Resume{}) // its answer names the other database
		for range 2 {
			if _, other := w.begin("nap", "", "null"), w.begin("nap", "", "null"); other == "" {
				t.Fatal("no run")
			}
		}
		w.do(alice, run, ringi.Pause{})
		if w.tap.loads > 1 {
			t.Errorf("%d loads, want the one after the change", w.tap.loads)
		}
		w.wantStatus(run, ringi.Paused)
	})
}

func TestATaskOfAnotherNodeIsFoundWithinASecond(t *testing.T) { // TC-52
	bubble(t, func(t *testing.T, w *world) {
		other := &world{t: t, mem: w.mem, tap: &tap{Store: w.mem}, conf: w.conf}
		other.conf.Store = other.tap
		other.start()
		defer other.eng.Close()
		got := make(chan []ringi.Task, 1)
		go func() { got <- other.poll("w", 1, 20*time.Second) }()
		<-time.After(3300 * time.Millisecond)
		w.begin("one", "", "null")
		at := time.Now()
		if tasks := <-got; len(tasks) != 1 || time.Since(at) > 1100*time.Millisecond {
			t.Errorf("%d tasks after %s, want one within a second", len(tasks), time.Since(at))
		}
	})
}

func TestPollsThatWaitCostOneClaimASecond(t *testing.T) { // TC-85
	bubble(t, func(t *testing.T, w *world) {
		w.poll("w", 1, 0)
		before := w.tap.claims
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { w.poll("w", 1, 10*time.Second) })
		}
		all.Wait()
		if n := w.tap.claims - before; n > 12 {
			t.Errorf("a hundred polls of ten seconds cost %d claims, want about ten", n)
		}
	})
}

func TestRetriesAreHandedOutWhenTheirTimeHasCome(t *testing.T) { // W15
	bubble(t, func(t *testing.T, w *world) {
		w.begin("one", "", "null")
		task := w.one("w")
		w.do(operator, task.Run, ringi.FailActivity{CallRef: task.CallRef, Worker: "w", Failure: ringi.Failure{Code: "busy", Retryable: true}})
		at := time.Now()
		again := w.one("w")
		if d := time.Since(at); d > 1250*time.Millisecond || d < 800*time.Millisecond || again.Attempt != 2 {
			t.Errorf("attempt %d came after %s, want 2 after one second and a fifth at most", again.Attempt, d)
		}
	})
}

const lateStep = `
ringi: v1
name: late
steps:
  - id: a
    activity: work.charge
    effect: at_most_once
    accepted: "a test"
    on_unknown: assume_not_applied
    compensate: { activity: work.refund, with: { key: "${ step.key }" } }
`

func TestAnEffectFoundAfterTheEndIsUndoneByARepairRun(t *testing.T) { // S-5, W12
	bubble(t, func(t *testing.T, w *world) {
		if p, err := w.eng.Publish(t.Context(), ringi.Publication{Source: []byte(lateStep)}); err != nil || p.Version != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		run := w.begin("late", "k", "null")
		task := w.one("w")
		w.do(operator, run, ringi.BeginActivity{CallRef: task.CallRef, Worker: "w"})
		<-time.After(2 * time.Minute)
		w.wantStatus(run, ringi.Failed)
		for range 3 {
			if r := w.complete(task, `{"charged":true}`); r.Err != nil || r.Answer.Outcome != ringi.Stale {
				t.Fatalf("late completion: %+v, want stale", r)
			}
		}
		page, err := w.eng.List(t.Context(), ringi.RunQuery{Definition: "late"})
		if err != nil || len(page.Runs) != 2 {
			t.Fatalf("runs %+v, %v: want the run and one repair", page.Runs, err)
		}
		repair := page.Runs[0]
		if v := w.view(repair.Run); v.RepairOf != run {
			t.Errorf("repair run %+v does not name the run %s", v, run)
		}
		undo := w.one("w")
		if undo.Activity != "work.refund" || undo.Run != repair.Run {
			t.Errorf("task %+v, want the refund", undo)
		}
		w.complete(undo, `null`)
		w.wantStatus(repair.Run, ringi.Compensated)
		r := w.do(operator, "", ringi.Start{Definition: "late", Key: "repair/" + string(run) + "/b", Input: json.RawMessage("null")})
		if ringi.ErrorCode(r.Err) != ringi.CodeInvalid {
			t.Errorf("a client took the key of a repair: %+v", r)
		}
		w.clean()
	})
}

func TestARunOnSQLiteSurvivesTheProcess(t *testing.T) { // W5, S5
	path := filepath.Join(t.TempDir(), "ringi.db")
	open := func() (*sqlite.Store, *engine.Engine) {
		db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := engine.New(engine.Config{Store: db, Records: db, Catalog: db, Events: db})
		if err != nil {
			t.Fatal(err)
		}
		eng.Start()
		return db, eng
	}
	db, eng := open()
	if p, err := eng.Publish(t.Context(), ringi.Publication{Source: []byte(threeSteps)}); err != nil || p.Version != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	start := eng.Do(t.Context(), ringi.Command{Actor: alice, Do: ringi.Start{Definition: "three", Key: "k"}})[0]
	if start.Err != nil {
		t.Fatal(start.Err)
	}
	for range 3 {
		tasks, err := eng.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: 10 * time.Second})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%d tasks, %v", len(tasks), err)
		}
		eng.Close()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db, eng = open()
		r := eng.Do(t.Context(), ringi.Command{Run: start.Run, Actor: operator, Do: ringi.CompleteActivity{CallRef: tasks[0].CallRef, Worker: "w"}})[0]
		if r.Err != nil || r.Answer.Outcome != ringi.Accepted {
			t.Fatalf("completion: %+v", r)
		}
	}
	defer db.Close()
	defer eng.Close()
	if v, err := eng.Run(t.Context(), 0, start.Run); err != nil || v.Status != ringi.Completed {
		t.Errorf("run %+v, %v", v, err)
	}
	if r, err := replay.Run(t.Context(), db, replay.Query{}); err != nil || len(r.Mismatches) > 0 || r.Runs != 1 {
		t.Errorf("replay %+v, %v", r, err)
	}
}

func TestABusyTenantHoldsUpNoOther(t *testing.T) { // TC-94, W26
	bubble(t, func(t *testing.T, w *world) {
		if p, err := w.eng.Publish(t.Context(), ringi.Publication{Tenant: 2, Source: []byte(oneStep)}); err != nil || p.Version != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		w.tap.set(func() {
			w.tap.before = func([]store.Write) error {
				<-time.After(10 * time.Millisecond)
				return nil
			}
		})
		var all sync.WaitGroup
		for range 4000 { // of tenant 1: about eight commits for each committer
			all.Go(func() { w.do(operator, "", ringi.Start{Definition: "nap"}) })
		}
		<-time.After(time.Millisecond)
		at := time.Now()
		r := w.eng.Do(t.Context(), ringi.Command{Tenant: 2, Actor: operator, Do: ringi.Start{Definition: "one"}})[0]
		if d := time.Since(at); r.Err != nil || d > 25*time.Millisecond {
			t.Errorf("the other tenant's start took %s (%v), want the commit under way and the next", d, r.Err)
		}
		all.Wait()
	})
}
