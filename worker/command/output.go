package command

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
)

// Marker begins a line of standard error that speaks to the worker; a JSON object
// follows it, see Word.
const Marker = "::ringi "

// A Word is what a program says about its failure, in a line behind Marker. The
// last one counts; what it leaves open follows from the exit code.
type Word struct {
	Code         string `json:"code"`         // what retry.stop_on and catch.on name
	Message      string `json:"message"`      // for a person
	Retryable    *bool  `json:"retryable"`    // whether another attempt may succeed
	Applied      string `json:"applied"`      // no or unknown
	RetryAfterMS int64  `json:"retryAfterMs"` // least pause before the next attempt
}

// output keeps what a program writes to standard output, up to MaxOutput.
type output struct {
	kept  []byte        // no bytes.Buffer: its ReadFrom would read without end
	full  chan struct{} // closed when there was more
	over  bool
	heard chan struct{} // gets a hint when something came
}

// Write never fails: a program that writes more is ended by who sees full.
func (o *output) Write(b []byte) (int, error) {
	hint(o.heard)
	switch {
	case o.over:
	case len(o.kept)+len(b) > MaxOutput:
		o.over = true
		close(o.full)
	default:
		o.kept = append(o.kept, b...)
	}
	return len(b), nil
}

func hint(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// lines takes standard error apart: words to the worker, and lines for the log.
type lines struct {
	log   *slog.Logger
	heard chan struct{}

	mu     sync.Mutex // a pipe that outlives the program may still write
	line   []byte     // the present one, up to maxLine
	cut    bool       // it had more
	logged int
	tail   []byte // the last lines, for a failure without a message
	word   Word
}

// Write takes any part of the stream. It never fails.
func (l *lines) Write(b []byte) (int, error) {
	hint(l.heard)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.add(b)
			return n, nil
		}
		l.add(b[:i])
		l.finish()
		b = b[i+1:]
	}
}

func (l *lines) add(b []byte) {
	if room := maxLine - len(l.line); len(b) > room {
		b, l.cut = b[:room], true
	}
	l.line = append(l.line, b...)
}

// end takes the last line, which may have no line break.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.finish()
	}
}

// finish acts on the present line.
func (l *lines) finish() {
	text := strings.TrimRight(strings.ToValidUTF8(string(l.line), "\uFFFD"), "\r")
	if l.cut {
		text += " …"
	}
	l.line, l.cut = l.line[:0], false
	if said, ok := strings.CutPrefix(text, Marker); ok {
		l.hear(said)
		return
	}
	l.tail = append(append(l.tail, text...), '\n')
	if over := len(l.tail) - maxTail; over > 0 {
		l.tail = l.tail[over:]
	}
	before := l.logged
	if l.logged += len(text) + 1; l.logged <= maxLogged {
		l.log.Info(text, "stream", "stderr")
	} else if before <= maxLogged {
		l.log.Warn("the program writes more to standard error than is logged of one attempt", "bytes", maxLogged)
	}
}

// hear takes a word to the worker. One that cannot be read is shown, not obeyed.
func (l *lines) hear(said string) {
	var w Word
	if err := json.Unmarshal([]byte(said), &w); err != nil {
		l.log.Warn("a line to the worker cannot be read: it is "+Marker+"and a JSON object on one line", "line", said, "err", err)
		return
	}
	if w != (Word{}) { // an empty one only says that the program lives
		l.word = w
	}
}

// said is the last word, and the last lines beside it.
func (l *lines) said() (Word, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.word, strings.TrimSpace(strings.ToValidUTF8(string(l.tail), ""))
}
