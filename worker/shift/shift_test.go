package shift_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/shift"
)

var errAway = &ringi.Error{Code: ringi.CodeUnavailable, Message: "no answer"}

// begun is when each test begins; nothing here looks at a clock.
var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newShift(slots int) *shift.Shift {
	return shift.New(shift.Config{
		Worker: "w", Tenant: 1, Actor: ringi.Actor{ID: "w", Kind: ringi.Machine}, Drain: 30 * time.Second,
		Queues: []shift.Queue{{Name: "q", Slots: slots, Activities: []string{"do"}}},
	})
}

func tasks(n int) []ringi.Task {
	out := make([]ringi.Task, n)
	for i := range out {
		out[i] = ringi.Task{
			Tenant: 1, Run: "r", CallRef: ringi.CallRef{Step: fmt.Sprint(i), Attempt: 1, Token: 1}, Activity: "do", Queue: "q",
			Lease: 5 * time.Second, Heartbeat: 30 * time.Second,
		}
	}
	return out
}

// polled gives n tasks to a shift that asks for as many.
func polled(t *testing.T, s *shift.Shift, now time.Time, n int) []*shift.Attempt {
	t.Helper()
	req, _ := s.Poll(0, now)
	if req.Max < n {
		t.Fatalf("it asks for %d tasks, want at least %d", req.Max, n)
	}
	return s.Polled(0, req.Max, tasks(n), nil, now, now)
}

func TestSlotsAreAskedForOnceAndLeftToReports(t *testing.T) {
	s, now := newShift(3), begun
	req, in := s.Poll(0, now)
	if req.Max != 3 || in != 0 || req.Worker != "w" || req.Queue != "q" || req.Wait != shift.LongPoll {
		t.Fatalf("it polls with %+v, in %v", req, in)
	}
	if again, in := s.Poll(0, now); again.Max != 0 || in != shift.Never {
		t.Errorf("while a poll is under way it asks for %d more, in %v", again.Max, in)
	}
	attempts := s.Polled(0, 3, tasks(3), nil, now, now)
	s.Succeeded(attempts[0], nil)
	if req, _ := s.Poll(0, now); req.Max != 0 {
		t.Errorf("a poll asks for %d tasks in the slot of a call whose report is about to be sent", req.Max)
	}
	b, _ := s.Report(now)
	if do, ok := b.Commands[0].Do.(ringi.CompleteActivity); !ok || do.Want == nil || do.Want.Max != 1 {
		t.Errorf("it reports %+v, want a wish for one task", b.Commands[0].Do)
	}
	if more, _ := s.Reported(b, []ringi.Result{{Tasks: tasks(1)}}, now); len(more) != 1 || s.Running() != 3 || s.Open() != 3 {
		t.Errorf("%d tasks came along, %d run, %d are open", len(more), s.Running(), s.Open())
	}
}

func TestFailedPollsAreFollowedByLongerPauses(t *testing.T) {
	s, now := newShift(1), begun
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
		req, in := s.Poll(0, now)
		if req.Max != 1 {
			t.Fatalf("it does not poll, but in %v", in)
		}
		s.Polled(0, 1, nil, errAway, now, now)
		if _, in = s.Poll(0, now); in != want*time.Millisecond {
			t.Errorf("the next poll comes in %v, want %v", in, want*time.Millisecond)
		}
		now = now.Add(in)
	}
	s.Poll(0, now)
	s.Polled(0, 1, nil, nil, now, now.Add(shift.LongPoll))
	if req, in := s.Poll(0, now.Add(shift.LongPoll)); req.Max != 1 {
		t.Errorf("after an empty long poll the next comes in %v", in)
	}
}

func TestOnlyTheAnswerToBeginIsThePermission(t *testing.T) { // W14
	for _, c := range []struct {
		name  string
		res   ringi.Result
		ended bool
		want  shift.Verdict
		open  int
	}{
		{"accepted", ringi.Result{Answer: ringi.Answer{Outcome: ringi.Accepted}}, false, shift.Call, 1},
		{"repeated", ringi.Result{Answer: ringi.Answer{Outcome: ringi.Repeated}}, false, shift.Call, 1},
		{"stale", ringi.Result{Answer: ringi.Answer{Outcome: ringi.Stale}}, false, shift.Forget, 0},
		{"nobody answers", ringi.Result{Err: errAway}, false, shift.Again, 1},
		{"nobody answers, and the time is up", ringi.Result{Err: errAway}, true, shift.Forget, 0},
		{"refused", ringi.Result{Err: &ringi.Error{Code: ringi.CodeNotFound}}, false, shift.Forget, 0},
	} {
		s := newShift(1)
		s.Poll(0, begun)
		task := tasks(1)[0]
		task.Begin = true
		a := s.Polled(0, 1, []ringi.Task{task}, nil, begun, begun)[0]
		if !a.Due().IsZero() {
			t.Errorf("%s: a lease is extended that nobody has begun", c.name)
		}
		v, in, _ := s.Begun(a, c.res, c.ended, begun)
		if v != c.want || s.Open() != c.open || (v == shift.Again) != (in > 0) {
			t.Errorf("%s: verdict %d in %v with %d open, want %d with %d", c.name, v, in, s.Open(), c.want, c.open)
		}
	}
}

func TestALeaseIsExtendedUntilTheReportIsTakenOrTheServerSaysItIsLost(t *testing.T) { // TC-85
	s, now := newShift(3), begun
	attempts := polled(t, s, now, 3)
	if r, in := s.Beat(now); r != nil || in != 1500*time.Millisecond {
		t.Fatalf("the first heartbeat comes in %v", in)
	}
	now = now.Add(1500 * time.Millisecond)
	r, _ := s.Beat(now)
	if len(r.Beats) != 3 {
		t.Fatalf("%d of 3 go together", len(r.Beats))
	}
	if other, in := s.Beat(now); other != nil || in != shift.Never {
		t.Errorf("a second heartbeat goes out while one is under way, in %v", in)
	}
	endings := s.Beaten(r, nil, errAway, now)
	if _, in := s.Beat(now); len(endings) != 0 || in != time.Second {
		t.Errorf("without an answer %d calls end, and the next heartbeat comes in %v", len(endings), in)
	}
	now = now.Add(time.Second)
	r, _ = s.Beat(now)
	endings = s.Beaten(r, []ringi.BeatAnswer{{Outcome: ringi.Stale}, {Outcome: ringi.Accepted, Cancel: true}, {Outcome: ringi.Accepted}}, nil, now)
	if len(endings) != 2 || endings[0].Attempt != attempts[0] || !errors.Is(endings[0].Cause, shift.ErrLeaseLost) ||
		endings[1].Attempt != attempts[1] || !errors.Is(endings[1].Cause, shift.ErrCancelled) {
		t.Errorf("the calls that end: %+v", endings)
	}
	if _, in := s.Beat(now); in != 10*time.Second {
		t.Errorf("the next heartbeat comes in %v, want three in a lease", in)
	}
	s.Succeeded(attempts[2], nil)
	r, _ = s.Beat(now.Add(10 * time.Second))
	if len(r.Beats) != 2 {
		t.Errorf("%d leases are extended, want those of the call that ends and of the report", len(r.Beats))
	}
	b, _ := s.Report(now)
	s.Reported(b, []ringi.Result{{}}, now)
	if again := s.Beaten(r, []ringi.BeatAnswer{{Outcome: ringi.Accepted}, {Outcome: ringi.Stale}}, nil, now); len(again) != 0 || !attempts[2].Due().IsZero() {
		t.Errorf("a late answer ends %+v, and the lease of what was reported is due at %v", again, attempts[2].Due())
	}
}

func TestAReportIsSentUntilItIsTaken(t *testing.T) { // TC-17
	s, now := newShift(2), begun
	attempts := polled(t, s, now, 2)
	s.Failed(attempts[0], shift.Unexplained("gone", shift.ErrTimeout))
	s.Succeeded(attempts[1], nil)
	b, _ := s.Report(now)
	if _, ok := b.Commands[0].Do.(ringi.CompleteActivity); !ok || len(b.Commands) != 2 {
		t.Errorf("the batch begins with %+v, want the completion", b.Commands[0].Do)
	}
	_, errs := s.Reported(b, nil, now)
	if _, in := s.Report(now); in != 100*time.Millisecond || s.Waiting() != 2 || len(errs) != 2 {
		t.Errorf("after no answer it reports again in %v, %d wait, %v", in, s.Waiting(), errs)
	}
	now = now.Add(100 * time.Millisecond)
	b, _ = s.Report(now)
	s.Reported(b, []ringi.Result{{Err: &ringi.Error{Code: ringi.CodeInvalid, Message: "no"}}, {Err: &ringi.Error{Code: ringi.CodeNotFound}}}, now)
	b, _ = s.Report(now)
	if do, ok := b.Commands[0].Do.(ringi.FailActivity); !ok || len(b.Commands) != 1 || do.Failure.Code != shift.CodeBadOutput || do.Failure.Applied != ringi.AppliedUnknown {
		t.Errorf("an output that is refused is reported as %+v", b.Commands)
	}
	if s.Reported(b, []ringi.Result{{}}, now); s.Open() != 0 {
		t.Errorf("%d are open when all is taken", s.Open())
	}
}

func TestAnActivityThatNobodyRegisteredIsReportedAndNotCalled(t *testing.T) {
	s, now := newShift(1), begun
	s.Poll(0, now)
	task := tasks(1)[0]
	task.Activity = "other"
	if attempts := s.Polled(0, 1, []ringi.Task{task}, nil, now, now); len(attempts) != 0 {
		t.Errorf("%d to perform", len(attempts))
	}
	b, _ := s.Report(now)
	if do, ok := b.Commands[0].Do.(ringi.FailActivity); !ok || do.Failure.Code != shift.CodeNoHandler || do.Failure.Applied != ringi.AppliedNo {
		t.Errorf("reported %+v", b.Commands[0].Do)
	}
}

func TestAStoppedShiftTakesNothingAndComesToItsEnd(t *testing.T) { // TC-23
	s, now := newShift(2), begun
	attempts := polled(t, s, now, 1)
	s.Stop(now)
	if req, in := s.Poll(0, now); req.Max != 0 || in != shift.Never {
		t.Errorf("it asks for %d more", req.Max)
	}
	for _, c := range []struct {
		at   time.Duration
		want shift.Phase
		in   time.Duration
	}{{0, shift.Finishing, 30 * time.Second}, {30 * time.Second, shift.Hurrying, shift.LastWord}, {32 * time.Second, shift.Over, 0}} {
		if p, in := s.Drain(now.Add(c.at)); p != c.want || in != c.in {
			t.Errorf("after %v: phase %d for %v, want %d for %v", c.at, p, in, c.want, c.in)
		}
	}
	s.Succeeded(attempts[0], nil)
	b, _ := s.Report(now)
	if do, ok := b.Commands[0].Do.(ringi.CompleteActivity); !ok || do.Want != nil {
		t.Errorf("its report asks for more: %+v", b.Commands[0].Do)
	}
	s.Reported(b, []ringi.Result{{}}, now)
	if p, _ := s.Drain(now); p != shift.Over {
		t.Errorf("with nothing open it is in phase %d", p)
	}
}
