package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// drive brings one run of three activities to its end however often the
// engine is replaced: what is not answered is sent again, as clients and
// workers do. It returns the run and how often each activity was called.
func (w *world) drive(crashed func() bool) (run ringi.RunID, calls map[string]int) {
	w.t.Helper()
	again := func(do func() error) {
		for range 100 {
			err := do()
			if crashed() {
				w.eng.Close()
				w.restart()
			}
			if err == nil {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		w.t.Fatal("a hundred tries in vain")
	}
	again(func() error {
		r := w.do(operator, "", ringi.Start{Definition: "three", Key: "k", Input: json.RawMessage("1")})
		run = r.Run
		return r.Err
	})
	calls = map[string]int{}
	for {
		v := w.view(run)
		if v.Status.Final() {
			return run, calls
		}
		var tasks []ringi.Task
		again(func() (err error) {
			tasks, err = w.eng.Poll(w.t.Context(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1, Wait: 10 * time.Second})
			return err
		})
		for _, task := range tasks {
			calls[task.Key]++
			again(func() error { return w.complete(task, `"ok"`).Err })
		}
	}
}

func TestARunSurvivesACrashAtEachCommit(t *testing.T) { // W5, W31, S5
	for _, moment := range []string{"before", "after"} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s commit %d", moment, n), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					commits, crashed := 0, false
					cut := func(due string) error {
						if due == "before" {
							commits++
						}
						if moment != due || commits != n {
							return nil
						}
						commits++ // once
						crashed = true
						w.tap.cut()
						go w.eng.Close() // the process is gone: whoever waits for it gives up
						return fmt.Errorf("killed: %w", store.ErrDoubt)
					}
					w.eng.Close()
					w.conf.Drain = time.Second
					w.restartOn(&tap{
						Store:  w.mem,
						before: func([]store.Write) error { return cut("before") },
						after:  func([]store.Write, error) error { return cut("after") },
					})
					run, calls := w.drive(func() bool {
						is := crashed
						crashed = false
						return is
					})
					w.wantStatus(run, ringi.Completed)
					kinds := w.kinds(run)
					if n := count(kinds, "ActivitySucceeded"); n != 3 || count(kinds, "RunStarted") != 1 {
						t.Errorf("log is %v, want three completions", kinds)
					}
					if len(calls) != 3 {
						t.Errorf("calls by key: %v, want three keys", calls)
					}
					w.clean()
				})
			})
		}
	}
}

func TestASnapshotIsWrittenNowAndThenAndLoadsTheSame(t *testing.T) { // W5, TC-77
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		for range 250 {
			if r := w.do(alice, run, ringi.Pause{}); r.Err != nil {
				t.Fatal(r.Err)
			}
			if r := w.do(alice, run, ringi.Resume{}); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		snapshots := 0
		for _, c := range w.tap.commits {
			if c[0].Snapshot != nil {
				snapshots++
			}
		}
		if snapshots < 2 || snapshots > 6 {
			t.Errorf("%d snapshots, want one every 200 events", snapshots)
		}
		before := w.view(run)
		w.crash()
		w.restart()
		if after := w.view(run); after.Seq != before.Seq || after.Status != before.Status {
			t.Errorf("after a restart the run is %+v, before it was %+v", after, before)
		}
		if r := w.do(alice, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
			t.Errorf("cancel: %+v", r)
		}
		w.clean()
	})
}

func TestADrainingNodeFinishesWhatItTookAndClaimsNothing(t *testing.T) { // TC-23
	bubble(t, func(t *testing.T, w *world) {
		w.tap.set(func() {
			w.tap.before = func([]store.Write) error {
				<-time.After(time.Second)
				return nil
			}
		})
		answered := make(chan ringi.Result, 1)
		go func() { answered <- w.do(operator, "", ringi.Start{Definition: "three"}) }()
		polled := make(chan []ringi.Task, 1)
		go func() { polled <- w.poll("w", 1, 20*time.Second) }()
		<-time.After(time.Millisecond)
		at := time.Now()
		w.eng.Close()
		if r := <-answered; r.Err != nil || !r.Created {
			t.Errorf("a command that was taken in was answered %+v", r)
		}
		if d := time.Since(at); d > 2*time.Second {
			t.Errorf("Close took %s", d)
		}
		<-polled
		if r := w.do(operator, "", ringi.Start{Definition: "three"}); ringi.ErrorCode(r.Err) != ringi.CodeUnavailable {
			t.Errorf("a command after Close: %+v, want unavailable", r)
		}
		if _, err := w.eng.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: "default"}); ringi.ErrorCode(err) != ringi.CodeUnavailable {
			t.Errorf("a poll after Close: %v, want unavailable", err)
		}
		if err := w.eng.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestACommitThatNeverEndsDoesNotKeepCloseForEver(t *testing.T) { // TC-28
	bubble(t, func(t *testing.T, w *world) {
		w.eng.Close()
		w.conf.Drain = 3 * time.Second
		w.restart()
		run := w.begin("nap", "", "null")
		w.tap.set(func() {
			w.tap.after = func([]store.Write, error) error { return store.ErrDoubt }
		})
		answered := make(chan ringi.Result, 1)
		go func() { answered <- w.do(operator, run, ringi.Pause{}) }()
		<-time.After(time.Second)
		w.eng.Close()
		if r := <-answered; ringi.ErrorCode(r.Err) != ringi.CodeUnavailable {
			t.Errorf("a command in doubt was answered %+v, want unavailable", r)
		}
	})
}
