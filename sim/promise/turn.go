package promise

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// Tolerance is how far a node may be off when it tells the database's time: two
// seconds are taken for no jump.
const Tolerance = 3 * time.Second

// Handover is the length of a hand-over lease.
const Handover = 5 * time.Second

// A Turn is one transition of a run on its way into its books. The state goes
// on with each event; it is asked for what the run is at, never for what is
// right. It is not for concurrent use.
type Turn struct {
	*Books
	State   *ringi.State         // before the event at hand
	Def     *workflow.Definition // that the run is pinned to, as its digest names it; nil before its first event
	Events  []ringi.Event        // of the transition
	Rewound bool                 // a restore took events of the run away
	Jumped  bool                 // the database's clock was set within the last minute
	Tokens  map[string]int64     // the largest token handed out, by Call
	Keys    map[string]string    // idempotency keys of calls, by Call and edition

	// Fail is told of a broken promise, by its word in package story.
	Fail func(what, format string, args ...any)
	// Said is what a worker said of a failed attempt.
	Said func(ringi.CallRef) (ringi.Failure, bool)
	// Reached is for how long the node that commits had reached the store when it
	// last saw the attempt of a token; known is false when nobody can tell.
	Reached func(token int64) (node string, there time.Duration, known bool)

	dropped []*ringi.Incident // withdrawn just before
}

// Check looks at one event, before it is folded and noted.
func (t *Turn) Check(e ringi.Event) {
	t.flows(e)
	switch f := e.Fact.(type) {
	case ringi.ActivityScheduled:
		t.opens(f.Step, f.Scope, f.Direction)
		t.put(e.At, f)
	case ringi.ActivityRetried:
		t.tried(e.At, f)
	case ringi.ActivityStarted:
		t.permitted(f)
	case ringi.ActivityFailed:
		t.failedAs(f)
	case ringi.ActivityTimedOut:
		t.lostAs(e.At, f)
	case ringi.OutcomeUnknown:
		t.unknown(f)
	case ringi.DecisionRecorded:
		t.voted(e.At, f)
	case ringi.StepEnded:
		t.stepEnded(f)
	case ringi.UndoRegistered:
		t.registered(f)
	}
}

// End looks at the state that the whole transition has led to.
func (t *Turn) End() {
	t.believes()
	t.counted()
}

// has reports whether the transition holds such a fact.
func (t *Turn) has(is func(ringi.Fact) bool) bool {
	return slices.ContainsFunc(t.Events, func(e ringi.Event) bool { return is(e.Fact) })
}

// ordered reports whether a person resolved an incident in this transition.
func (t *Turn) ordered(how ...ringi.Resolution) bool {
	return t.has(func(f ringi.Fact) bool {
		r, ok := f.(ringi.IncidentResolved)
		return ok && slices.Contains(how, r.How)
	})
}
