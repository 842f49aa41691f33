package ndjson

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// A disk that fails cannot be had from outside, so this test takes the
// descriptor away.
func TestAFileThatFailedIsOpenedAnewAndKeepsWhatWasTaken(t *testing.T) { // O7
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s, err := OpenFile(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	publish := func(id string) error {
		return s.Publish(t.Context(), []outbox.Message{{ID: id, Type: "t", AggregateType: "a", AggregateID: "b", CreatedAt: time.Unix(0, 0)}})[0]
	}
	if err := publish("one"); err != nil {
		t.Fatal(err)
	}
	broken, err := os.Open(path) // cannot be written
	if err != nil {
		t.Fatal(err)
	}
	if err := s.f.Close(); err != nil {
		t.Fatal(err)
	}
	s.f = broken
	if err := publish("two"); err == nil || outbox.Refused(err) {
		t.Errorf("got %v, want an error of the destination", err)
	}
	if err := publish("two"); err != nil {
		t.Errorf("after opening anew: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n != 2 || bytes.Count(text, []byte(`"two"`)) != 1 {
		t.Errorf("got %d lines:\n%s", n, text)
	}
}
