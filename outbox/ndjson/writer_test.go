package ndjson_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/ndjson"
)

// short is a writer that takes only some bytes and then fails once.
type short struct {
	bytes.Buffer
	left int // bytes until it fails; negative: never
}

func (s *short) Write(p []byte) (int, error) {
	if s.left < 0 || len(p) <= s.left {
		return s.Buffer.Write(p)
	}
	n, _ := s.Buffer.Write(p[:s.left])
	s.left = -1
	return n, io.ErrShortWrite
}

func TestAWriterGetsOneEventPerLine(t *testing.T) {
	var out bytes.Buffer
	sink := ndjson.NewWriter(&out, "//shop")
	if !taken(sink.Publish(t.Context(), []outbox.Message{order(1, "a"), order(2, "b")})) {
		t.Fatal("not published")
	}
	if got := strings.Join(idsIn(t, out.Bytes()), " "); got != id(1)+" "+id(2) {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(out.String(), `"source":"//shop"`) {
		t.Errorf("the source is missing: %s", out.String())
	}
}

func TestAWriterStartsANewLineAfterATornOne(t *testing.T) {
	for _, left := range []int{0, 1, 50} {
		out := &short{left: left}
		sink := ndjson.NewWriter(out, "")
		if taken(sink.Publish(t.Context(), []outbox.Message{order(1, "a")})) {
			t.Fatal("a short write was taken for a delivery")
		}
		if !taken(sink.Publish(t.Context(), []outbox.Message{order(1, "a")})) {
			t.Fatal("not published")
		}
		text := out.Bytes()
		if left > 0 {
			text = text[left+1:]
		}
		if got := idsIn(t, text); len(got) != 1 || got[0] != id(1) {
			t.Errorf("after %d bytes: got %v", left, got)
		}
	}
}

func TestAWriterTakesNothingAfterTheContextEnded(t *testing.T) {
	var out bytes.Buffer
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if taken(ndjson.NewWriter(&out, "").Publish(ended, []outbox.Message{order(1, "a")})) || out.Len() > 0 {
		t.Error("published")
	}
}
