package main

import (
	"strings"
	"testing"
)

// O1, O7, O9, O10: the dual write loses an event and the outbox keeps it.
func TestTheOutboxKeepsWhatTheDualWriteLoses(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"order A2: reserved, but the event went nowhere",
		"books: A2 is reserved and was never charged: its event is lost",
		"books: A1 is reserved and was charged 1 time(s)",
		"books: A3 is reserved and was charged 1 time(s)",
		"books: B1 is reserved and was charged 1 time(s)",
		"books: B2 is reserved and was charged 1 time(s)",
		"books: B3 is reserved and was charged 1 time(s)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
