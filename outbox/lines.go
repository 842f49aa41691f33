package outbox

import (
	"context"
	"fmt"
	"io"
)

// Lines is the Sink that writes one CloudEvent per line to an io.Writer, such
// as standard output. A line counts as delivered when the writer has taken it;
// what becomes of it behind a pipe nobody knows. Use it from one goroutine.
type Lines struct {
	w      io.Writer
	source string
	torn   bool // the last write ended inside a line
}

var _ Sink = (*Lines)(nil)

// NewLines returns a sink over w. source is the events' CloudEvents source;
// empty means DefaultEventSource.
func NewLines(w io.Writer, source string) *Lines {
	return &Lines{w: w, source: source}
}

// Publish implements Sink, with one write per batch. After a write that failed
// in the middle the next batch begins on a line of its own.
func (s *Lines) Publish(ctx context.Context, msgs []Message) []error {
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
		return answers(len(msgs), fmt.Errorf("outbox: write %d messages: %w", len(msgs), err))
	}
	s.torn = false
	return answers(len(msgs), nil)
}

// appendLines appends messages as newline-delimited CloudEvents.
func appendLines(dst []byte, source string, msgs []Message) []byte {
	for i := range msgs {
		dst = AppendCloudEvent(dst, source, &msgs[i])
		dst = append(dst, '\n')
	}
	return dst
}
