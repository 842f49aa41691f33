package store

import (
	"context"
	"time"

	"github.com/ringiflow/ringi"
)

// SeenFor is how long a node counts as running after it was last seen.
const SeenFor = time.Minute

// Fleet is which nodes run on a store, which workers they see, and the format of
// events that they may write. A newer format is written only once the store's was raised to it, and
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
	// Sight says when workers gave signs of life, at most once per tenant,
	// worker and queue in one call. An earlier time never replaces a later one.
	// What is SightingsKept older than the latest of the call is removed.
	Sight(ctx context.Context, seen ...Sighting) error
	// Sightings lists the workers of a tenant that any node has seen after that
	// time, by worker and queue.
	Sightings(ctx context.Context, tenant ringi.Tenant, after time.Time) ([]Sighting, error)
}

// SightingsKept is how long the last sign of life of a worker is kept.
const SightingsKept = time.Hour

// A Sighting is the last that was seen of a worker in one queue.
type Sighting struct {
	Tenant ringi.Tenant
	Worker string
	Queue  string    // "" for a worker that was seen and has polled no queue
	Polled time.Time // its last poll of the queue; zero with Queue ""
	Seen   time.Time // its last poll or heartbeat
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
