package ringi

import (
	"encoding/json"
	"time"
)

// A Command asks a run to change. Time, identity and ids are data in it: the
// committer stamps At once, in the order of decision, never below the run's
// last event.
type Command struct {
	Tenant Tenant
	Run    RunID
	At     time.Time // UTC, whole microseconds
	Actor  Actor
	Do     Action
	Lost   *Lost // set by the committer when the command is decided again
}

// Lost is what stood in the store when a write of this command lost its race.
// It turns "late", "taken" and "held by run X" into data for the rules.
type Lost struct {
	Holder *Holder      // the start key is held by this run
	Tasks  map[int]Seen // by lane: the task row as it stood
}

// A Holder is the run that holds a start key.
type Holder struct {
	Run         RunID
	Seq         int64 // its last event
	Version     int
	Status      Status
	InputDigest string
}

// Seen is a task row as it stood when a write that relied on it lost.
type Seen struct {
	Token  int64 // the largest token given out, or the base when none was
	Leased bool
}

// An Action is one of the structs of this file. The sum is sealed; each knows
// its word in the API, the audit and the docs.
type Action interface{ action() string }

// ActionName is the word for an action.
func ActionName(a Action) string { return a.action() }

// Start begins a run. The engine fills Version and Key (from the
// definition's start.key) before the command is decided.
type Start struct {
	Definition string
	Version    int // 0: the latest
	Key        string
	Input      json.RawMessage
	OnBehalfOf string  // the requester; "" is the actor
	EventID    string  // the event that started the run, which it can then not consume
	Repair     *Repair // set by the engine only

	// InputDigest is workflow.Digest of Input, by whoever looked at all of that
	// before; "" leaves it to the rules. It must not come from outside.
	InputDigest string
}

// A Repair undoes an effect that was found after its run had ended.
type Repair struct {
	Of     RunID           // the ended run
	Step   string          // whose effect was found
	Output json.RawMessage // what the late attempt answered
	State  *State          // the ended run, for the inputs of its undo
}

// CallRef names one attempt of a call as a worker knows it.
type CallRef struct {
	Step      string    `json:"step"`
	Direction Direction `json:"direction,omitempty"`
	Attempt   int       `json:"attempt"`
	Token     int64     `json:"token"`
}

// BeginActivity asks for permission to make a call that must not repeat.
type BeginActivity struct {
	CallRef
	Worker string
}

// CompleteActivity reports that the call had its effect.
type CompleteActivity struct {
	CallRef
	Worker string
	Output json.RawMessage // nil is null
	Want   *PollRequest    // tasks to bring with the answer, without waiting; nil: none
}

// FailActivity reports that the call failed.
type FailActivity struct {
	CallRef
	Worker  string
	Failure Failure
	Want    *PollRequest // as in CompleteActivity
}

// A Failure is what a worker says of an attempt that failed.
type Failure struct {
	Code      string  `json:"code"`
	Message   string  `json:"message,omitempty"`
	Retryable bool    `json:"retryable"`
	Applied   Applied `json:"applied,omitempty"` // "": by the effect contract
	// RetryAfterMS is how long the service asked to be left alone, in
	// milliseconds: the next attempt is not made before, whatever the step's
	// own backoff says. 0 is nothing; more than MaxRetryAfter counts as that.
	RetryAfterMS int64 `json:"retryAfterMs,omitempty"`
}

// Applied says whether an attempt had its effect.
type Applied string

// The answers to "did it happen?".
const (
	AppliedYes     Applied = "yes" // only probes say so
	AppliedNo      Applied = "no"
	AppliedUnknown Applied = "unknown"
)

// FireTimer says that a timer row is due. Another generation is dropped.
type FireTimer struct {
	Timer      string
	Generation int
}

// ExpireLease says that an attempt ran out of its lease, its time, its queue
// time or the step's total time. Token and LeaseEnd are what the sweep saw and
// become conditions of the write.
type ExpireLease struct {
	CallRef
	Why      Expiry
	LeaseEnd time.Time // zero when the task was not leased
}

// Expiry is which limit of an attempt was reached.
type Expiry string

// The limits of an attempt.
const (
	ExpiryLease   Expiry = "lease"   // nobody extended the lease
	ExpiryAttempt Expiry = "attempt" // timeouts.attempt
	ExpiryQueue   Expiry = "queue"   // timeouts.queue
	ExpiryTotal   Expiry = "total"   // timeouts.total
)

// DecideApproval is a vote. Digest is the subject that the voter saw.
type DecideApproval struct {
	Step    string
	Approve bool
	Digest  string
	Comment string
}

// WithdrawDecision takes the actor's own vote back while the approval is open.
type WithdrawDecision struct {
	Step   string
	Reason string
}

// DeliverEvent gives a stored event to one open wait.
type DeliverEvent struct {
	Step  string
	Event SentEvent
}

// A SentEvent is an event as it was stored when it was sent.
type SentEvent struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Key    string          `json:"key"`
	Data   json.RawMessage `json:"data,omitempty"`
	SentAt time.Time       `json:"sentAt"`
}

// SendEvent stores an event for the waits of that name and key. It belongs to
// no run: the engine stores it and sends a DeliverEvent to each run that waits.
type SendEvent struct {
	ID   string // repeats of an id are dropped; "" draws one
	Name string
	Key  string
	Data json.RawMessage
	Keep time.Duration // how long a wait may still open and find it; 0 is 24 h
}

// Cancel ends the run after undoing what it did.
type Cancel struct{ Reason string }

// Pause keeps anything new from being handed out or fired.
type Pause struct{ Reason string }

// Resume ends a pause; what was left of its timers is left again.
type Resume struct{ Reason string }

// Terminate ends the run at once and undoes nothing.
type Terminate struct{ Reason string }

// ResolveIncident is a person's answer to an incident.
type ResolveIncident struct {
	Incident int64 // its id
	How      Resolution
	Reason   string
	Output   json.RawMessage // with done: what the step answered
	Activity string          // with run_other
	Input    json.RawMessage // with run_other
}

// A Resolution is one way to close an incident.
type Resolution string

// The ways to close an incident. Which are open stands in Incident.Allowed.
const (
	ResolveRetry    Resolution = "retry"     // try again with a fresh budget
	ResolveDone     Resolution = "done"      // it happened, or is taken care of: evidence in Reason, output in Output
	ResolveNotDone  Resolution = "not_done"  // it certainly did not happen
	ResolveSkipUndo Resolution = "skip_undo" // leave this effect standing
	ResolveRunOther Resolution = "run_other" // run another activity in place of the undo
	ResolveUndoRest Resolution = "undo_rest" // stop going forward and undo what can be undone
	// ResolveWithdrawn is written when an incident became pointless; nobody may ask for it.
	ResolveWithdrawn Resolution = "withdrawn"
)

func (Start) action() string            { return "start" }
func (BeginActivity) action() string    { return "begin_activity" }
func (CompleteActivity) action() string { return "complete_activity" }
func (FailActivity) action() string     { return "fail_activity" }
func (FireTimer) action() string        { return "fire_timer" }
func (ExpireLease) action() string      { return "expire_lease" }
func (DecideApproval) action() string   { return "decide_approval" }
func (WithdrawDecision) action() string { return "withdraw_decision" }
func (DeliverEvent) action() string     { return "deliver_event" }
func (SendEvent) action() string        { return "send_event" }
func (Cancel) action() string           { return "cancel" }
func (Pause) action() string            { return "pause" }
func (Resume) action() string           { return "resume" }
func (Terminate) action() string        { return "terminate" }
func (ResolveIncident) action() string  { return "resolve_incident" }
