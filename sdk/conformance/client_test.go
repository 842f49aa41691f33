package conformance_test

import (
	"slices"
	"testing"
)

// The clients publish, start with a key, watch, send events and cancel alike, and
// their errors carry what the server said.
func TestEveryClientDoesTheSame(t *testing.T) {
	want := []string{
		`{"created":true,"again":false}`,
		`{"created":true,"again":false,"same":true}`,
		`{"code":"start_key_conflict","hint":true,"retryable":false,"problems":false}`,
		`{"code":"not_found","hint":true,"retryable":false,"problems":false}`,
		`{"code":"invalid","hint":true,"retryable":false,"problems":true}`,
		`{"id":"e-1","outcome":"accepted","again":"repeated"}`,
		`{"status":"completed","output":{"key":"o-1","n":9007199254740993}}`,
		`{"status":"cancelled"}`,
	}
	for _, l := range languages(t) {
		if l.client == nil {
			continue // its client has tests of its own
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, l, "client")
			w.worker()
			source := w.definition(`  - { id: a, activity: echo, with: '${ input }', effect: pure }
  - { id: b, wait: { event: paid, key: '${ input.key }' } }`) + "output: '${ steps.a.output }'\n"
			if got := w.client(source); !slices.Equal(got, want) {
				t.Errorf("it said\n%q, want\n%q", got, want)
			}
		})
	}
}
