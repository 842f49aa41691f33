package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// An altered store gives runs back other than they were written.
type altered struct {
	store.Store
	loaded func(*store.Loaded)
}

func (a altered) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	l, err := a.Store.Load(ctx, keys...)
	for i := range l {
		a.loaded(&l[i])
	}
	return l, err
}

// A snapshot is never the only proof of anything.
func TestASnapshotThatCannotBeUsedIsLeftAside(t *testing.T) { // W5, TC-80
	for name, spoil := range map[string]func(*store.Snapshot){
		"of a newer format": func(s *store.Snapshot) {
			s.Format = ringi.Format + 1
			s.Body = []byte(strings.Replace(string(s.Body), `"requester":"op"`, `"requester":{"id":"op"}`, 1))
		},
		"of a newer format that looks like ours": func(s *store.Snapshot) {
			s.Format = ringi.Format + 1
			s.Body = []byte(strings.Replace(string(s.Body), `"requester":"op"`, `"requester":"eve"`, 1))
		},
		"not JSON":         func(s *store.Snapshot) { s.Body = s.Body[:len(s.Body)-1] },
		"empty":            func(s *store.Snapshot) { s.Body = []byte("null") },
		"of another event": func(s *store.Snapshot) { s.Body = []byte(strings.Replace(string(s.Body), `"seq":`, `"seq":1`, 1)) },
		"senseless": func(s *store.Snapshot) {
			s.Body = []byte(strings.Replace(string(s.Body), `"steps":[`, `"steps":[null,`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.eng.Close()
				w.conf.SnapshotEvery = 2
				w.restart()
				run := w.begin("three", "", "null")
				w.complete(w.one("w"), `1`)
				task := w.one("w")
				before := w.view(run)
				w.eng.Close()
				spoiled := 0
				w.restartOn(&tap{Store: altered{w.mem, func(l *store.Loaded) {
					if l.Snapshot != nil {
						s := *l.Snapshot
						spoil(&s)
						l.Snapshot = &s
						spoiled++
					}
				}}})
				if v := w.view(run); v.Requester != before.Requester || v.Seq != before.Seq || v.Status != before.Status {
					t.Errorf("the run is shown as %+v, want %+v", v, before)
				}
				if r := w.complete(task, `2`); r.Err != nil || r.Answer.Outcome != ringi.Accepted {
					t.Errorf("completion: %+v", r)
				}
				w.complete(w.one("w"), `3`)
				w.wantStatus(run, ringi.Completed)
				if spoiled == 0 {
					t.Error("no snapshot was read")
				}
				w.clean()
			})
		})
	}
}

func TestARunOfANewerFormatIsLeftAloneAndSaysSo(t *testing.T) { // W5, TC-38
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.eng.Close()
		newer := true
		w.restartOn(&tap{Store: altered{w.mem, func(l *store.Loaded) {
			for i := range l.Rows {
				if newer {
					l.Rows[i].Body = []byte(strings.Replace(string(l.Rows[i].Body), `{"format":1,`, `{"format":2,`, 1))
				}
			}
		}}})
		for range 2 {
			r := w.do(operator, run, ringi.Pause{})
			if ringi.ErrorCode(r.Err) != ringi.CodeUnavailable || !strings.Contains(r.Err.Error(), "format 2") {
				t.Errorf("a command to it: %+v, want one that names the format", r)
			}
		}
		if v := w.view(run); len(v.Incidents) != 1 || !strings.Contains(v.Incidents[0].Message, "format 2") {
			t.Errorf("view %+v, want an incident that names the format", v)
		}
		if n := len(w.tap.commits); n != 0 {
			t.Errorf("%d writes to a run that this program does not understand", n)
		}
		newer = false // this server is upgraded
		for range 7 {
			<-time.After(10 * time.Second)
			w.do(operator, run, ringi.Resume{}) // asking again makes it no longer
		}
		if r := w.do(operator, run, ringi.Pause{}); r.Err != nil {
			t.Errorf("a minute later: %+v", r)
		}
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
