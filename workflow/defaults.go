package workflow

import (
	"time"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// The defaults of the language, DESIGN section 13. They are filled into the
// steps by Parse and are no part of the digest: a definition that says nothing
// follows the program's defaults at the time when it is read.
const (
	// DefaultQueue is where activities go that name no queue.
	DefaultQueue = "default"

	// DefaultAttempts is how often a step is tried whose contract allows a
	// repeat: enough to outlive a restart of the service, few enough to fail
	// while somebody still remembers the start.
	DefaultAttempts = 5
	// DefaultBackoffInitial is the pause before the second try: a hiccup is over by then.
	DefaultBackoffInitial = time.Second
	// DefaultBackoffFactor is the growth of the pause.
	DefaultBackoffFactor = 2
	// DefaultBackoffMax is the longest pause: nobody waits an hour for a service that is back.
	DefaultBackoffMax = time.Minute

	// AtMostOnceAttempts is how often an at_most_once step is tried. It is no
	// default but the meaning of the contract.
	AtMostOnceAttempts = 1

	// DefaultProbeAttempts is how many unknown answers of a probe are taken
	// before on_unknown decides.
	DefaultProbeAttempts = 5

	// DefaultUndoAttempts is how often a compensation is tried before a person is asked.
	DefaultUndoAttempts = 5
	// DefaultUndoInitial and DefaultUndoFactor give pauses of 5 s, 20 s, 80 s
	// and 5 m: quick after a hiccup, patient with an outage, and together
	// well within DefaultUndoTotal.
	DefaultUndoInitial = 5 * time.Second
	// DefaultUndoFactor is the growth of the pause between tries of an undo.
	DefaultUndoFactor = 4
	// DefaultUndoMax is the longest pause between two tries of an undo.
	DefaultUndoMax = 5 * time.Minute
	// DefaultUndoTotal is the time in which an undo must succeed before it
	// becomes an incident: a person should hear of it while it can be mended.
	DefaultUndoTotal = 15 * time.Minute

	// DefaultAttemptTimeout bounds one attempt: most calls answer in seconds.
	DefaultAttemptTimeout = 30 * time.Second
	// DefaultTotalTimeout bounds a step with all its attempts and pauses.
	DefaultTotalTimeout = 15 * time.Minute
	// DefaultQueueTimeout bounds the wait for a worker; none, since a missing
	// worker is shown and is seldom the fault of the run.
	DefaultQueueTimeout = time.Duration(0)
	// DefaultHeartbeat is the length of the work lease: how soon a dead worker is noticed.
	DefaultHeartbeat = 30 * time.Second

	// DefaultApprovalExpiry is how long people have: a weekend and a day.
	DefaultApprovalExpiry = 72 * time.Hour
	// DefaultRisk is shown for an approval that names no risk.
	DefaultRisk = "normal"
	// DefaultQuorum is how many of a lane must agree where it does not say.
	DefaultQuorum = 1
)

// The bounds of the language. They hold for every definition and keep its
// reading cheap; the quotas that an operator may raise are far below them and are
// checked at publishing, see Check.
const (
	// MaxSteps bounds the steps of a definition.
	MaxSteps = 1000
	// MaxDepth bounds how deep blocks stand in each other; the steps of the file are depth 1.
	MaxDepth = 32
	// MaxWidth bounds the branches of one parallel or choose.
	MaxWidth = grammar.MaxWidth
	// MaxExpressions bounds the expressions of a definition, which are
	// compiled one by one.
	MaxExpressions = 5000
	// MaxExpressionBytes bounds the text of all expressions together.
	MaxExpressionBytes = 128 << 10
	// MaxSchemaBytes bounds the schemas of a definition together, as JSON.
	MaxSchemaBytes = 256 << 10
	// MaxLabels bounds the labels of a definition: they are columns of the list row.
	MaxLabels = grammar.MaxLabels
	// MaxName bounds names, keys, titles and codes, in bytes.
	MaxName = grammar.MaxName
	// MaxDescription bounds text for people, in bytes.
	MaxDescription = grammar.MaxDescription
	// MaxDuration bounds every duration: the longest time that a run may take by default is 400 days.
	MaxDuration = 10 * 365 * 24 * time.Hour
	// MaxAttempts bounds retry.attempts.
	MaxAttempts = grammar.MaxAttempts
	// MaxQuorum bounds the quorum of a lane.
	MaxQuorum = grammar.MaxQuorum
)

// A Size is what quotas measure in a definition.
type Size struct {
	Steps int // all steps of the tree
	Depth int // blocks in each other; a definition without branches has 1
	Width int // the most branches that run side by side in one parallel; at least 1
}

// Measure returns the definition's size, for quotas that are checked when it
// is published.
func (d *Definition) Measure() Size {
	s := Size{Steps: d.Steps(), Width: 1}
	for _, b := range d.blocks {
		s.Depth = max(s.Depth, b.depth())
		if b.Owner != nil && b.Owner.Parallel != nil {
			s.Width = max(s.Width, len(b.Owner.Parallel.Branches))
		}
	}
	return s
}

// depth counts the blocks around and including this one.
func (b *Block) depth() int {
	n := 1
	for b.Owner != nil {
		b = b.Owner.In
		n++
	}
	return n
}
