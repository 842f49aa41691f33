package sim

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/story"
)

// A tracer folds all that happens into a digest, and keeps it as a story when
// somebody wants to read it.
type tracer struct {
	hash  hash.Hash
	buf   []byte
	lines []story.Line
	on    bool
}

func newTracer(story bool) *tracer { return &tracer{hash: sha256.New(), on: story} }

// trace adds texts to the digest.
func (w *world) trace(parts ...string) {
	t := w.tracer
	t.buf = t.buf[:0]
	for _, p := range parts {
		t.buf = append(t.buf, p...)
	}
	t.buf = append(t.buf, '\n')
	t.hash.Write(t.buf)
}

// tell adds a line to the story; it costs nothing when there is none.
func (w *world) tell(format string, args ...any) {
	if !w.tracer.on {
		return
	}
	at := w.now.Sub(epoch)
	w.tracer.lines = append(w.tracer.lines, story.Line{At: clockText(at), Text: indent(w.depth) + fmt.Sprintf(format, args...)})
}

func indent(depth int) string {
	const deep = "          "
	return deep[:min(2*depth, len(deep))]
}

// clockText writes the time since the beginning as 1d02:03:04.567.
func clockText(d time.Duration) string {
	days := d / (24 * time.Hour)
	d -= days * 24 * time.Hour
	text := fmt.Sprintf("%02d:%02d:%02d.%03d", d/time.Hour, d/time.Minute%60, d/time.Second%60, d/time.Millisecond%1000)
	if days > 0 {
		return fmt.Sprintf("%dd%s", days, text)
	}
	return text
}

// ofRun names a run in a sentence, if there is one.
func ofRun(run ringi.RunID) string {
	if run == "" {
		return ""
	}
	return " run " + short(run)
}
