package demo

import (
	"errors"
	"testing"

	"github.com/ringiflow/ringi"
)

// W31: what a demo has to prove, and what is said when it did not.
func TestADemoIsCleanOnlyIfItProvedEverything(t *testing.T) {
	good := Result{Orders: 25, AsExpected: 25, ServerKills: 5, WorkerKills: 5, TasksInFlightAtKills: 1, Redelivered: 1}
	if f := good.Failings(); len(f) != 0 {
		t.Errorf("a good demo fails: %q", f)
	}
	one := 1
	for name, spoil := range map[string]func(*Result){
		"an order that is not as expected": func(r *Result) { r.AsExpected-- },
		"a double effect":                  func(r *Result) { r.DoubleEffects++ },
		"a lost order":                     func(r *Result) { r.Lost++ },
		"four kills of the server":         func(r *Result) { r.ServerKills-- },
		"four kills of the worker":         func(r *Result) { r.WorkerKills-- },
		"kills that hit nothing":           func(r *Result) { r.TasksInFlightAtKills = 0 },
		"nothing delivered again":          func(r *Result) { r.Redelivered = 0 },
		"a row that replay finds wrong":    func(r *Result) { r.Mismatches = &one },
	} {
		r := good
		spoil(&r)
		if f := r.Failings(); len(f) != 1 {
			t.Errorf("%s: %q", name, f)
		}
	}
}

// W31: the demo's requests are made again while the server is away, and only
// then.
func TestRequestsInsistOnlyWhileTheServerIsAway(t *testing.T) {
	tries := 0
	got, err := insist(t.Context(), func() (int, error) {
		if tries++; tries < 3 {
			return 0, &ringi.Error{Code: ringi.CodeUnavailable, Message: "away"}
		}
		return tries, nil
	})
	if got != 3 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	no := errors.New("no")
	if _, err := insist(t.Context(), func() (int, error) { return 0, &ringi.Error{Code: ringi.CodeForbidden, Err: no} }); !errors.Is(err, no) {
		t.Errorf("a refusal became %v", err)
	}
}
