package ringi

import (
	"slices"
	"strings"

	"github.com/ringiflow/ringi/workflow"
)

// A Tenant is a customer within the installation. Every row, key, query and
// command carries one.
type Tenant int64

// DefaultTenant is the only tenant until tenants can be made.
const DefaultTenant Tenant = 1

// ActorKind tells people from programs: only people decide approvals.
type ActorKind string

// The kinds of actors.
const (
	Person  ActorKind = "person"
	Machine ActorKind = "machine"
	System  ActorKind = "system" // the engine itself: timers, leases
)

// An Actor is who sends a command. The edge establishes it, from a key or a
// session alone; the rules decide what the actor may do, and record it.
type Actor struct {
	ID     string    `json:"id"`
	Kind   ActorKind `json:"kind"`
	Groups []string  `json:"groups,omitempty"`
}

// Engine is the actor of timers, leases and deliveries.
func Engine() Actor { return Actor{ID: "ringi", Kind: System} }

// Serves reports whether the actor may take tasks of a queue and report them.
// Queues whose names begin with workflow.ReservedPrefix belong to the engine: a
// task there holds what the engine sends to other services, and its report is
// what they answered, so that no worker from outside may see or say either.
func (a Actor) Serves(queue string) bool {
	return a.Kind == System || !strings.HasPrefix(queue, workflow.ReservedPrefix)
}

// In reports whether the actor belongs to the group.
func (a Actor) In(group string) bool { return slices.Contains(a.Groups, group) }
