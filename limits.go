package ringi

import (
	"fmt"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// Limits of a run. They keep one process from using up the system; a run that
// meets one waits in an incident of kind limit.
const (
	// MaxPayload is the largest input or output of one step, in bytes: what
	// a database row and an HTTP body carry without strain.
	MaxPayload = 256 << 10
	// MaxRunPayload is the most data that a run may take in, in bytes.
	MaxRunPayload = 4 << 20
	// MaxHistory is the most events of a run: bounded load time, whatever
	// its definition does.
	MaxHistory = 100_000
	// MaxEvidence is the most late results that are kept one by one.
	MaxEvidence = 1000
	// EvidenceEvery is how often a count is written beyond MaxEvidence.
	EvidenceEvery = time.Minute
	// MaxRetryAfter is the longest wish of a service to be left alone that is
	// followed: rate limits of a day exist, and longer ones are mistakes.
	MaxRetryAfter = 24 * time.Hour
	// UndoWithin bounds the tries of one undo, from its first on: after that
	// a person is the better help.
	UndoWithin = workflow.DefaultUndoTotal
)

// checkHistory opens the incident once, when the log grows past its limit.
func (t *turn) checkHistory() {
	if t.s.End != nil || t.s.Seq < MaxHistory {
		return
	}
	first := t.s.Seq - int64(len(t.out))
	if first < MaxHistory {
		t.openIncident(IncidentLimit, nil, fmt.Sprintf("the history has %d events, the limit is %d", t.s.Seq, MaxHistory), ResolveDone, ResolveUndoRest)
	}
}

// fits reports whether a payload may still be taken in, and why not.
func (t *turn) fits(raw []byte) (string, bool) {
	switch {
	case len(raw) > MaxPayload:
		return fmt.Sprintf("%d bytes, the limit for one payload is %d", len(raw), MaxPayload), false
	case t.s.Payload+len(raw) > MaxRunPayload:
		return fmt.Sprintf("%d bytes on top of %d, the limit for a run is %d", len(raw), t.s.Payload, MaxRunPayload), false
	}
	return "", true
}
