package store

import (
	"context"
	"time"
)

// SeenFor is how long a node counts as running after it was last seen.
const SeenFor = time.Minute

// Fleet is which nodes run on a store, and the format of events that they may
// write. A newer format is written only once the store's was raised to it, and
// it is raised only when every node that was seen lately can read it, so that
// nodes can be upgraded one after the other. Errors: ErrUnavailable. Safe for
// concurrent use.
type Fleet interface {
	// Meet says that a node runs now, and answers who else does.
	Meet(ctx context.Context, n Node) (Met, error)
	// Leave says that a node has ended. One that is not known is no error.
	Leave(ctx context.Context, id string) error
	// Raise raises the store's format, unless it is that high already or a node
	// that was seen within SeenFor reads less. It is never lowered.
	Raise(ctx context.Context, format int) error
}

// A Node is one running program.
type Node struct {
	ID      string // drawn at its start
	Version string // for people
	Format  int    // the newest that it reads
}

// Met is the answer of a meeting.
type Met struct {
	Format int    // the newest that may be written to this store
	Nodes  []Node // seen within SeenFor, by id; the asker is one of them
}
