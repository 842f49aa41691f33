package ndjson_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/outbox/ndjson"
)

// id returns the n-th message id.
func id(n int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012x", n) }

// order returns a message about an order of tenant 1.
func order(n int, aggregate string) outbox.Message {
	return outbox.Message{
		ID: id(n), Tenant: 1, AggregateType: "Order", AggregateID: aggregate, Type: "order.placed",
		Payload: []byte(`{"n":1}`), ContentType: "application/json", CreatedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	}
}

// idsIn returns the ids of the events of a file or stream, one per line.
func idsIn(t *testing.T, text []byte) []string {
	t.Helper()
	var ids []string
	for line := range bytes.Lines(text) {
		var e struct {
			SpecVersion, ID string
		}
		if err := json.Unmarshal(line, &e); err != nil || e.SpecVersion != "1.0" {
			t.Fatalf("not an event: %q (%v)", line, err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func taken(results []error) bool {
	return errors.Join(results...) == nil
}

func openFile(t *testing.T, path string) *ndjson.File {
	t.Helper()
	f, err := ndjson.OpenFile(path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAFileSurvivesItsTornLastLine(t *testing.T) { // O7
	whole := order(1, "a")
	line := append(outbox.AppendCloudEvent(nil, "", &whole), '\n')
	second := order(2, "a")
	next := outbox.AppendCloudEvent(nil, "", &second)
	for _, tc := range []struct {
		name string
		torn []byte
	}{
		{"nothing torn", nil},
		{"one byte", next[:1]},
		{"inside the first words", next[:10]},
		{"in the middle", next[:len(next)/2]},
		{"all but its end", next},
		{"NULs that the file system left", make([]byte, 100)},
		{"half a line, then NULs", append(bytes.Clone(next[:30]), make([]byte, 50)...)},
	} {
		path := filepath.Join(t.TempDir(), "events.ndjson")
		if err := os.WriteFile(path, append(bytes.Clone(line), tc.torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		if !taken(f.Publish(t.Context(), []outbox.Message{second, order(3, "b")})) {
			t.Fatalf("%s: not published", tc.name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(idsIn(t, text), " "), id(1)+" "+id(2)+" "+id(3); got != want {
			t.Errorf("%s: got %s, want %s", tc.name, got, want)
		}
	}
}

func TestAFileThatIsNotOursIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"notes.txt": "my notes, without an end of line",
		"big":       strings.Repeat("x", 5<<20),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ndjson.OpenFile(path, ""); err == nil {
			t.Errorf("%s: opened", name)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%s: changed (%v)", name, err)
		}
	}
	if _, err := ndjson.OpenFile(dir, ""); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := ndjson.OpenFile(os.DevNull, ""); err == nil {
		t.Error("a device was opened")
	}
}

func TestAFileThatIsClosedOrAwayTakesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	f := openFile(t, path)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if results := f.Publish(ended, []outbox.Message{order(1, "a")}); taken(results) || len(results) != 1 {
		t.Errorf("got %v after the context ended", results)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	results := f.Publish(t.Context(), []outbox.Message{order(1, "a"), order(2, "a")})
	if len(results) != 2 || !errors.Is(results[1], fs.ErrClosed) || outbox.Refused(results[0]) {
		t.Errorf("got %v after Close", results)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) != 0 {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestARelayWritesAFileInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	source := &memory.Outbox{}
	var want []string
	for n := range 600 {
		if err := source.Insert(order(n, "a")); err != nil {
			t.Fatal(err)
		}
		want = append(want, id(n))
	}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: source, Sink: openFile(t, path)})
	if err != nil {
		t.Fatal(err)
	}
	for worked := true; worked; {
		if worked, err = relay.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := idsIn(t, text); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %d events, not the %d written in their order", len(got), len(want))
	}
}
