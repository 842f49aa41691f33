package ndjson

import (
	"context"
	"fmt"
	"io"

	"github.com/ringiflow/ringi/outbox"
)

// Writer is the outbox.Sink that writes one CloudEvent per line to an io.Writer, such
// as standard output. A line counts as delivered when the writer has taken it;
// what becomes of it behind a pipe nobody knows. Use it from one goroutine.
type Writer struct {
	w      io.Writer
	source string
	torn   bool // the last write ended inside a line
}

var _ outbox.Sink = (*Writer)(nil)

// NewWriter returns a sink over w. source is the events' CloudEvents source;
// empty means outbox.DefaultEventSource.
func NewWriter(w io.Writer, source string) *Writer {
	return &Writer{w: w, source: source}
}

// Publish implements outbox.Sink, with one write per batch. After a write that failed
// in the middle the next batch begins on a line of its own.
func (s *Writer) Publish(ctx context.Context, msgs []outbox.Message) []error {
	if err := ctx.Err(); err != nil {
		return answers(len(msgs), err)
	}
	var buf []byte
	if s.torn {
		buf = append(buf, '\n')
	}
	buf = appendLines(buf, s.source, msgs)
	n, err := s.w.Write(buf)
	if err != nil {
		if n > 0 {
			s.torn = buf[n-1] != '\n'
		}
		return answers(len(msgs), fmt.Errorf("ndjson: write %d messages: %w", len(msgs), err))
	}
	s.torn = false
	return answers(len(msgs), nil)
}

// appendLines appends messages as newline-delimited CloudEvents.
func appendLines(dst []byte, source string, msgs []outbox.Message) []byte {
	for i := range msgs {
		dst = outbox.AppendCloudEvent(dst, source, &msgs[i])
		dst = append(dst, '\n')
	}
	return dst
}

// answers is one answer for all of n messages.
func answers(n int, err error) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}
