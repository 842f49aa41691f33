package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

// server is a ringi.Service that hands out the tasks that a test gives it and
// remembers what it was told. It can be away.
type server struct {
	ringi.Service // nil: what is not below is never called

	mu        sync.Mutex
	arrived   chan struct{} // closed and made anew when ready grows
	away      bool
	refuse    map[string]error               // by step: what its report is answered with
	begins    map[string]ringi.AnswerOutcome // by step; absent is accepted
	beatSays  map[string]ringi.BeatAnswer    // by step; absent is accepted
	slow      time.Duration                  // that a report takes
	began     time.Time
	leaving   bool // it goes away with the next hand-over
	reporting int  // calls of Do with reports that are under way
	seen
}

// seen is what a server saw.
type seen struct {
	ready   []ringi.Task // not handed out yet
	polls   []ringi.PollRequest
	batches [][]ringi.Command // of reports
	begun   []string
	beats   [][]string // by call, the steps
	beatAt  []time.Duration
	most    int // reports that were under way at once
}

// look returns a copy of what the server saw.
func (s *server) look() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	out.ready, out.polls, out.batches = slices.Clone(s.ready), slices.Clone(s.polls), slices.Clone(s.batches)
	out.begun, out.beats, out.beatAt = slices.Clone(s.begun), slices.Clone(s.beats), slices.Clone(s.beatAt)
	return out
}

func newFake() *server {
	return &server{
		arrived: make(chan struct{}), refuse: map[string]error{}, begins: map[string]ringi.AnswerOutcome{},
		beatSays: map[string]ringi.BeatAnswer{}, began: time.Now(),
	}
}

// task is the n-th task of an activity; its step tells it apart.
func task(activity string, n int) ringi.Task {
	return ringi.Task{
		Tenant: 1, Run: "r", CallRef: ringi.CallRef{Step: fmt.Sprintf("%s_%d", activity, n), Attempt: 1, Token: int64(n+1)<<16 | 1},
		Activity: activity, Queue: "default", Input: json.RawMessage(`{}`), Key: fmt.Sprintf("key-%d", n),
		Lease: 5 * time.Second, Heartbeat: 30 * time.Second, Timeout: time.Hour,
	}
}

func tasks(activity string, n int) []ringi.Task {
	out := make([]ringi.Task, n)
	for i := range out {
		out[i] = task(activity, i)
	}
	return out
}

func (s *server) give(tasks ...ringi.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, tasks...)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

func (s *server) goAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// leaveAfterHandOver gives a task and is away as soon as a worker has it.
func (s *server) leaveAfterHandOver(t ringi.Task) {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.give(t)
}

var errAway = &ringi.Error{Code: ringi.CodeUnavailable, Message: "no answer"}

// takeLocked hands out what fits a request.
func (s *server) takeLocked(p ringi.PollRequest) []ringi.Task {
	var out []ringi.Task
	s.ready = slices.DeleteFunc(s.ready, func(t ringi.Task) bool {
		if len(out) < p.Max && t.Queue == p.Queue && slices.Contains(p.Activities, t.Activity) {
			out = append(out, t)
			return true
		}
		return false
	})
	return out
}

func (s *server) Poll(ctx context.Context, p ringi.PollRequest) ([]ringi.Task, error) {
	s.mu.Lock()
	s.polls = append(s.polls, p)
	s.mu.Unlock()
	timer := time.NewTimer(p.Wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		if s.away {
			s.mu.Unlock()
			return nil, errAway
		}
		out, arrived := s.takeLocked(p), s.arrived
		s.away = s.leaving && len(out) > 0
		s.mu.Unlock()
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-arrived:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *server) Do(_ context.Context, commands ...ringi.Command) []ringi.Result {
	results := make([]ringi.Result, len(commands))
	s.mu.Lock()
	if s.away {
		s.mu.Unlock()
		for i := range results {
			results[i].Err = errAway
		}
		return results
	}
	if b, ok := commands[0].Do.(ringi.BeginActivity); ok {
		defer s.mu.Unlock()
		s.begun = append(s.begun, b.Step)
		results[0].Answer.Outcome = ringi.Accepted
		if outcome, ok := s.begins[b.Step]; ok {
			results[0].Answer.Outcome = outcome
		}
		return results
	}
	s.reporting++
	s.most = max(s.most, s.reporting)
	slow := s.slow
	s.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reporting--
	s.batches = append(s.batches, commands)
	for i, c := range commands {
		step, want := said(c)
		results[i].Err = s.refuse[step]
		results[i].Answer.Outcome = ringi.Accepted
		if want != nil {
			results[i].Tasks = s.takeLocked(*want)
		}
	}
	return results
}

// said is which step a report is about, and what it wants.
func said(c ringi.Command) (string, *ringi.PollRequest) {
	switch do := c.Do.(type) {
	case ringi.CompleteActivity:
		return do.Step, do.Want
	case ringi.FailActivity:
		return do.Step, do.Want
	}
	return "", nil
}

func (s *server) Heartbeat(_ context.Context, beats ...ringi.Beat) ([]ringi.BeatAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	var steps []string
	out := make([]ringi.BeatAnswer, len(beats))
	for i, b := range beats {
		steps = append(steps, b.Step)
		out[i].Outcome = ringi.Accepted
		if a, ok := s.beatSays[b.Step]; ok {
			out[i] = a
		}
	}
	s.beats = append(s.beats, steps)
	s.beatAt = append(s.beatAt, time.Since(s.began))
	return out, nil
}

// told are all reports that were answered without an error, in order.
func (s *server) told() []ringi.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ringi.Command
	for _, b := range s.batches {
		for _, c := range b {
			if step, _ := said(c); s.refuse[step] == nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// start runs a worker over s until the returned function is called, which
// returns what Run did.
func start(t *testing.T, s *server, slots int, activities ...worker.Activity) (stop func() error) {
	t.Helper()
	w, err := worker.New(worker.Config{
		Service: s, Name: "w", Queues: []worker.Queue{{Slots: slots, Activities: activities}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// sleeper is an activity that takes so long, or ends with its context.
func sleeper(d time.Duration) worker.Activity {
	return worker.Func("sleep", func(ctx context.Context, _ struct{}) (struct{}, error) {
		select {
		case <-time.After(d):
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		}
	})
}

// after lets time pass in a synctest bubble, and everything that is due then.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
