package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

type chargeIn struct {
	Amount json.Number `json:"amount"`
}

type chargeOut struct {
	ID string `json:"id"`
}

func TestAFunctionGetsItsInputAndKeyAndItsOutputIsReported(t *testing.T) { // W10
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, worker.Func("charge", func(ctx context.Context, in chargeIn) (chargeOut, error) {
			return chargeOut{ID: worker.Key(ctx) + "/" + worker.Task(ctx).Step + "/" + in.Amount.String()}, nil
		}))
		given := task("charge", 7)
		given.Input = json.RawMessage(`{"amount":9007199254740993}`)
		s.give(given)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		told := s.told()
		if len(told) != 1 || told[0].Run != "r" || told[0].Actor.Kind != ringi.Machine || told[0].Tenant != ringi.DefaultTenant {
			t.Fatalf("told %+v", told)
		}
		do, ok := told[0].Do.(ringi.CompleteActivity)
		if !ok || string(do.Output) != `{"id":"key-7/charge_7/9007199254740993"}` || do.CallRef != given.CallRef || do.Worker != "w" {
			t.Errorf("reported %+v", told[0].Do)
		}
	})
}

// mute is an error whose text cannot be made.
type mute struct{}

func (mute) Error() string { panic("no text") }

func TestFailuresAreReportedAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(context.Context, chargeIn) (any, error)
		in   string
		want ringi.Failure
	}{
		{
			"a definite no", func(context.Context, chargeIn) (any, error) { return nil, worker.Fail("card_declined", "no money") }, `{}`,
			ringi.Failure{Code: "card_declined", Message: "no money", Applied: ringi.AppliedNo},
		},
		{
			"a failure inside an error", func(context.Context, chargeIn) (any, error) {
				return nil, fmt.Errorf("charge: %w", &worker.Failure{Code: "busy", Retryable: true, Applied: ringi.AppliedUnknown})
			}, `{}`,
			ringi.Failure{Code: "busy", Retryable: true, Applied: ringi.AppliedUnknown},
		},
		{
			"another error", func(context.Context, chargeIn) (any, error) { return nil, errors.New("connection reset") }, `{}`,
			ringi.Failure{Code: "error", Message: "connection reset", Retryable: true},
		},
		{
			"an input that does not fit", func(context.Context, chargeIn) (any, error) { panic("must not be called") }, `{"amount":[]}`,
			ringi.Failure{Code: "bad_input", Message: "does not fit", Applied: ringi.AppliedNo},
		},
		{
			"an output that is not JSON", func(context.Context, chargeIn) (any, error) { return math.Inf(1), nil }, `{}`,
			ringi.Failure{Code: "bad_output_value", Message: "not JSON", Applied: ringi.AppliedUnknown},
		},
		{
			"a panic", func(context.Context, chargeIn) (any, error) { panic("nil map") }, `{}`,
			ringi.Failure{Code: "panic", Message: "nil map", Retryable: true, Applied: ringi.AppliedUnknown},
		},
		{
			"the end of the goroutine", func(context.Context, chargeIn) (any, error) { runtime.Goexit(); return nil, nil }, `{}`,
			ringi.Failure{Code: "panic", Message: "without returning", Retryable: true, Applied: ringi.AppliedUnknown},
		},
		{
			"text that cannot be sent", func(context.Context, chargeIn) (any, error) {
				return nil, &worker.Failure{Code: "a\x00\xff" + strings.Repeat("b", 300), Message: strings.Repeat("é", 4000)}
			}, `{}`,
			ringi.Failure{Code: "a" + strings.Repeat("b", 254), Message: strings.Repeat("é", 2000)},
		},
		{
			"no failure, as an error", func(context.Context, chargeIn) (any, error) { var f *worker.Failure; return nil, f }, `{}`,
			ringi.Failure{Code: "error", Message: "<nil>", Retryable: true},
		},
		{
			"an error that cannot be shown", func(context.Context, chargeIn) (any, error) { return nil, mute{} }, `{}`,
			ringi.Failure{Code: "error", Message: "no text", Retryable: true},
		},
		{
			"what the server would refuse", func(context.Context, chargeIn) (any, error) {
				return nil, &worker.Failure{Code: "busy", Applied: "perhaps", RetryAfter: -time.Second}
			}, `{}`,
			ringi.Failure{Code: "busy", Applied: ringi.AppliedUnknown},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFake()
				stop := start(t, s, 1, worker.Func("charge", c.f))
				given := task("charge", 1)
				given.Input = json.RawMessage(c.in)
				s.give(given)
				synctest.Wait()
				if err := stop(); err != nil {
					t.Error(err)
				}
				do, ok := s.told()[0].Do.(ringi.FailActivity)
				got := do.Failure
				if !ok || !strings.Contains(got.Message, c.want.Message) {
					t.Fatalf("reported %+v", s.told()[0].Do)
				}
				got.Message = c.want.Message
				if got != c.want {
					t.Errorf("reported %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestWhatMustNotRepeatRunsOnlyWithPermission(t *testing.T) { // W14
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.begins["mail_2"] = ringi.Stale
		s.begins["mail_3"] = ringi.Repeated
		var ran atomic.Int64
		stop := start(t, s, 5, worker.Func("mail", func(ctx context.Context, _ struct{}) (struct{}, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !slices.Contains(s.begun, worker.Task(ctx).Step) {
				t.Errorf("%s ran without asking", worker.Task(ctx).Step)
			}
			ran.Add(1)
			return struct{}{}, nil
		}))
		for n := 1; n <= 3; n++ {
			m := task("mail", n)
			m.Begin = true
			s.give(m)
		}
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if ran.Load() != 2 || len(s.told()) != 2 {
			t.Errorf("%d ran, %d reported; the one that was refused must do neither", ran.Load(), len(s.told()))
		}
	})
}

func TestAskingForPermissionGoesOnWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		var ran atomic.Int64
		stop := start(t, s, 1, worker.Func("mail", func(context.Context, struct{}) (struct{}, error) {
			ran.Add(1)
			return struct{}{}, nil
		}))
		m := task("mail", 1)
		m.Begin = true
		s.leaveAfterHandOver(m)
		after(time.Minute)
		if ran.Load() != 0 {
			t.Fatal("ran without permission")
		}
		s.goAway(false)
		after(5 * time.Second)
		if ran.Load() != 1 {
			t.Errorf("ran %d times", ran.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAQuickFunctionSendsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, sleeper(time.Second))
		s.give(task("sleep", 1))
		after(time.Minute)
		if len(s.look().beats) != 0 {
			t.Errorf("beats %v", s.look().beats)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHeartbeatsComeInTimeAndTogether(t *testing.T) { // TC-85
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 20, sleeper(65*time.Second))
		s.give(tasks("sleep", 20)...)
		after(64 * time.Second)
		if len(s.look().beats) != 7 { // 1.5 s, then every 10 s
			t.Errorf("beats at %v", s.look().beatAt)
		}
		if s.look().beatAt[0] > 2*time.Second {
			t.Errorf("the first beat came after %v: a hand-over lapses without it", s.look().beatAt[0])
		}
		for i := 1; i < len(s.look().beatAt); i++ {
			if gap := s.look().beatAt[i] - s.look().beatAt[i-1]; gap > 10*time.Second {
				t.Errorf("%v between beats of a lease of 30 s", gap)
			}
		}
		for _, b := range s.look().beats {
			if len(b) != 20 {
				t.Errorf("%d tasks in a call", len(b))
			}
		}
		after(time.Minute)
		if len(s.look().beats) != 7 {
			t.Errorf("beats after the end: %v", s.look().beatAt)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWasPermittedIsNotConfirmedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, sleeper(19*time.Second))
		m := task("sleep", 1)
		m.Begin = true
		s.give(m)
		after(time.Minute)
		if len(s.look().beatAt) != 1 || s.look().beatAt[0] != 10*time.Second {
			t.Errorf("beats at %v: begin itself starts the lease", s.look().beatAt)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestALostLeaseAndACancelReachTheFunction(t *testing.T) { // W24, TC-71
	for _, c := range []struct {
		says ringi.BeatAnswer
		want error
	}{
		{ringi.BeatAnswer{Outcome: ringi.Stale}, worker.ErrLeaseLost},
		{ringi.BeatAnswer{Outcome: ringi.Accepted, Cancel: true}, worker.ErrCancelled},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newFake()
			s.beatSays["wait_1"] = c.says
			causes := make(chan error, 1)
			stop := start(t, s, 1, worker.Func("wait", func(ctx context.Context, _ struct{}) (struct{}, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return struct{}{}, ctx.Err()
			}))
			s.give(task("wait", 1))
			after(2 * time.Second)
			if got := <-causes; !errors.Is(got, c.want) {
				t.Errorf("%+v: the context ended with %v", c.says, got)
			}
			do, ok := s.told()[0].Do.(ringi.FailActivity)
			if !ok || do.Failure.Code != worker.CodeInterrupted || !do.Failure.Retryable {
				t.Errorf("%+v: reported %+v", c.says, s.told()[0].Do)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASuccessAfterALostLeaseIsStillReported(t *testing.T) { // W12: evidence
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.beatSays["stubborn_1"] = ringi.BeatAnswer{Outcome: ringi.Stale}
		stop := start(t, s, 1, worker.Func("stubborn", func(context.Context, struct{}) (string, error) {
			<-time.After(10 * time.Second)
			return "done", nil
		}))
		s.give(task("stubborn", 1))
		after(time.Minute)
		if do, ok := s.told()[0].Do.(ringi.CompleteActivity); !ok || string(do.Output) != `"done"` {
			t.Errorf("reported %+v", s.told()[0].Do)
		}
		if len(s.look().beats) != 1 {
			t.Errorf("%d beats for a lease that is lost", len(s.look().beats))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAFunctionIsEndedAtItsTimeout(t *testing.T) { // TC-13
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, sleeper(time.Hour))
		m := task("sleep", 1)
		m.Attempt, m.Timeout = 3, 30*time.Second
		s.give(m)
		after(30*time.Second + time.Millisecond)
		do, ok := s.told()[0].Do.(ringi.FailActivity)
		if !ok || do.Failure.Code != worker.CodeTimedOut || !do.Failure.Retryable || do.Failure.Applied != "" {
			t.Errorf("reported %+v", s.told()[0].Do)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAServerAwayForTwoMinutesLosesNothing(t *testing.T) { // TC-17
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		var ran atomic.Int64
		stop := start(t, s, 20, worker.Func("work", func(ctx context.Context, _ struct{}) (string, error) {
			n := ran.Add(1)
			select {
			case <-time.After(time.Duration(n) * 10 * time.Second): // some end while it is away, some after
			case <-ctx.Done():
				t.Errorf("%s was ended: %v", worker.Task(ctx).Step, context.Cause(ctx))
			}
			return worker.Key(ctx), nil
		}))
		s.give(tasks("work", 20)...)
		after(5 * time.Second)
		s.goAway(true)
		after(2 * time.Minute)
		if len(s.told()) != 0 {
			t.Fatal("the server was not away")
		}
		s.goAway(false)
		after(2500 * time.Millisecond)
		if len(s.look().batches) < 1 || len(s.look().batches[0]) != 12 {
			t.Errorf("%d calls after it came back, want one with the 12 that had finished", len(s.look().batches))
		}
		if last := s.look().beats[len(s.look().beats)-1]; len(last) < 7 {
			t.Errorf("%d leases extended after it came back", len(last))
		}
		after(2 * time.Minute)
		if ran.Load() != 20 || len(s.told()) != 20 {
			t.Errorf("%d ran, %d reported", ran.Load(), len(s.told()))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWorkerThatCannotReportTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		for n := range 9 {
			s.refuse[task("work", n).Step] = &ringi.Error{Code: ringi.CodeForbidden, Message: "the key was changed"}
		}
		stop := start(t, s, 2, worker.Func("work", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }))
		s.give(tasks("work", 9)...)
		after(time.Minute)
		if len(s.look().ready) != 5 {
			t.Errorf("%d of 9 tasks are left to other workers", len(s.look().ready))
		}
		s.mu.Lock()
		clear(s.refuse)
		s.mu.Unlock()
		after(5 * time.Second)
		if len(s.look().ready) != 0 {
			t.Errorf("%d tasks are left once it may report again", len(s.look().ready))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFourReportsAreUnderWayAtATimeAndTheRestGoesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.slow = 100 * time.Millisecond
		var ran atomic.Int64
		stop := start(t, s, 50, worker.Func("work", func(context.Context, struct{}) (struct{}, error) {
			<-time.After(time.Duration(ran.Add(1)) * time.Millisecond)
			return struct{}{}, nil
		}))
		s.give(tasks("work", 50)...)
		after(time.Second)
		if s.look().most != 4 {
			t.Errorf("%d reports were under way at once", s.look().most)
		}
		if len(s.look().batches) != 5 || len(s.told()) != 50 {
			t.Errorf("%d reports in %d calls", len(s.told()), len(s.look().batches))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSlotsAreNeverExceededAndTasksComeWithReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		var now, most, ran atomic.Int64
		stop := start(t, s, 4, worker.Func("work", func(context.Context, struct{}) (struct{}, error) {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-time.After(time.Duration(50+ran.Add(1)%7) * time.Millisecond)
			now.Add(-1)
			return struct{}{}, nil
		}))
		s.give(tasks("work", 200)...)
		after(10 * time.Second)
		if len(s.told()) != 200 || most.Load() != 4 {
			t.Errorf("%d reported, %d at once in 4 slots", len(s.told()), most.Load())
		}
		if len(s.look().polls) > 20 {
			t.Errorf("%d polls for 200 tasks: they should come with the answers to reports", len(s.look().polls))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyRegisteredNamesAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 3, sleeper(0))
		s.give(task("unknown", 1), task("sleep", 1))
		after(time.Second)
		if len(s.look().ready) != 1 || len(s.told()) != 1 {
			t.Errorf("%d left, %d reported", len(s.look().ready), len(s.told()))
		}
		for _, p := range s.look().polls {
			if !slices.Equal(p.Activities, []string{"sleep"}) || p.Queue != "default" || p.Worker != "w" || p.Max < 1 {
				t.Errorf("polled %+v", p)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestStoppingLetsWhatRunsFinish(t *testing.T) { // TC-23
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, sleeper(20*time.Second))
		s.give(tasks("sleep", 2)...)
		after(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(s.told()) != 1 || len(s.look().ready) != 1 {
			t.Errorf("%d reported, %d left: a worker that stops takes nothing", len(s.told()), len(s.look().ready))
		}
		if _, ok := s.told()[0].Do.(ringi.CompleteActivity); !ok {
			t.Errorf("reported %+v", s.told()[0].Do)
		}
	})
}

func TestStoppingEndsWhatRunsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 1, sleeper(time.Hour))
		s.give(task("sleep", 1))
		after(time.Second)
		before := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took < worker.DefaultDrain || took > worker.DefaultDrain+time.Second {
			t.Errorf("it took %v", took)
		}
		if do, ok := s.told()[0].Do.(ringi.FailActivity); !ok || do.Failure.Code != worker.CodeInterrupted || !strings.Contains(do.Failure.Message, "stopping") {
			t.Errorf("reported %+v", s.told()[0].Do)
		}
	})
}

func TestStoppingWhileTheServerIsAwaySaysWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		stop := start(t, s, 2, sleeper(2*time.Second))
		s.give(task("sleep", 1))
		after(time.Second)
		s.goAway(true)
		after(5 * time.Second)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "1 that the server has not taken") {
			t.Errorf("error %v", err)
		}
	})
}

func TestAReportThatIsRefusedForGoodIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.refuse["sleep_1"] = &ringi.Error{Code: ringi.CodeNotFound, Message: "no such run"}
		stop := start(t, s, 1, sleeper(0))
		s.give(task("sleep", 1))
		after(time.Minute)
		if len(s.look().batches) != 1 {
			t.Errorf("reported %d times", len(s.look().batches))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutputThatIsNotTakenBecomesAFailureThatMayHaveBeenApplied(t *testing.T) {
	for refusal, want := range map[ringi.Code]string{ringi.CodeTooLarge: worker.CodeTooLarge, ringi.CodeInvalid: worker.CodeBadOutput} {
		synctest.Test(t, func(t *testing.T) {
			s := newFake()
			s.refuse["sleep_1"] = &ringi.Error{Code: refusal, Message: "not taken"}
			stop := start(t, s, 1, sleeper(0))
			s.give(task("sleep", 1))
			after(time.Second)
			if len(s.look().batches) != 2 {
				t.Fatalf("%s: reported %d times", refusal, len(s.look().batches))
			}
			if do, ok := s.look().batches[1][0].Do.(ringi.FailActivity); !ok || do.Failure.Code != want || do.Failure.Retryable || do.Failure.Applied != ringi.AppliedUnknown {
				t.Errorf("%s: reported %+v", refusal, s.look().batches[1][0].Do)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTroubleIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		s.goAway(true)
		seen := make(chan error, 1000)
		w, err := worker.New(worker.Config{
			Service: s, Queues: []worker.Queue{{Activities: []worker.Activity{sleeper(0)}}}, Trouble: func(err error) { seen <- err },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if len(seen) < 5 || len(seen) > 20 {
			t.Errorf("%d polls in 20 s of an absent server", len(seen))
		}
		if err := <-seen; !errors.Is(err, errAway) || !strings.Contains(err.Error(), "poll") {
			t.Errorf("trouble %v", err)
		}
		if err := w.Run(ctx); err == nil {
			t.Error("Run twice: no error")
		}
	})
}

func TestAWorkerThatCannotWorkIsNotMade(t *testing.T) {
	s := newFake()
	a := sleeper(0)
	for name, config := range map[string]worker.Config{
		"no service":        {Queues: []worker.Queue{{Activities: []worker.Activity{a}}}},
		"no queue":          {Service: s},
		"no activity":       {Service: s, Queues: []worker.Queue{{}}},
		"a queue twice":     {Service: s, Queues: []worker.Queue{{Activities: []worker.Activity{a}}, {Name: "default", Activities: []worker.Activity{a}}}},
		"an activity twice": {Service: s, Queues: []worker.Queue{{Activities: []worker.Activity{a, a}}}},
		"negative slots":    {Service: s, Queues: []worker.Queue{{Slots: -1, Activities: []worker.Activity{a}}}},
		"a nameless one":    {Service: s, Queues: []worker.Queue{{Activities: []worker.Activity{worker.Func("", func(context.Context, int) (int, error) { return 0, nil })}}}},
		"an engine's queue": {Service: s, Queues: []worker.Queue{{Name: "ringi.http", Activities: []worker.Activity{a}}}},
		"an empty activity": {Service: s, Queues: []worker.Queue{{Activities: []worker.Activity{{}}}}},
	} {
		if _, err := worker.New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestQueuesHaveSlotsOfTheirOwn(t *testing.T) { // W26
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		w, err := worker.New(worker.Config{Service: s, Queues: []worker.Queue{
			{Slots: 1, Activities: []worker.Activity{sleeper(time.Minute)}},
			{Name: "fast", Slots: 2, Activities: []worker.Activity{worker.Func("quick", func(context.Context, struct{}) (int, error) { return 1, nil })}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		s.give(tasks("sleep", 3)...)
		for _, q := range tasks("quick", 30) {
			q.Queue = "fast"
			s.give(q)
		}
		after(10 * time.Second)
		if len(s.told()) != 30 || len(s.look().ready) != 2 {
			t.Errorf("%d quick ones reported, %d slow ones left: a slow queue must not hold up another", len(s.told()), len(s.look().ready))
		}
		cancel()
		if err := <-done; err == nil { // one runs for a minute, longer than the drain
			t.Log("the slow one ended with its context")
		}
	})
}
