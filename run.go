package ringi

import (
	"encoding/json"
	"time"
)

// A RunID is a UUIDv7 in its canonical text form. It is drawn once by the
// engine, never derived and never used twice.
type RunID string

// A Status is what a run as a whole is doing.
type Status string

// The statuses. The last five are final.
const (
	Running      Status = "running"
	Waiting      Status = "waiting"
	Paused       Status = "paused"
	Compensating Status = "compensating"
	InIncident   Status = "incident"
	Completed    Status = "completed"
	Failed       Status = "failed"
	Compensated  Status = "compensated"
	Cancelled    Status = "cancelled"
	Terminated   Status = "terminated"
)

// Statuses lists every status, the final ones last.
func Statuses() []Status {
	return []Status{Running, Waiting, Paused, Compensating, InIncident, Completed, Failed, Compensated, Cancelled, Terminated}
}

// Final reports whether a run of this status has ended.
func (s Status) Final() bool {
	switch s {
	case Completed, Failed, Compensated, Cancelled, Terminated:
		return true
	}
	return false
}

// An Outcome is what became of a step.
type Outcome string

// The outcomes. Open is a step that has not ended.
const (
	Open          Outcome = ""
	Succeeded     Outcome = "succeeded"
	StepFail      Outcome = "failed"
	TimedOut      Outcome = "timed_out"
	Unknown       Outcome = "unknown"
	Rejected      Outcome = "rejected"
	Expired       Outcome = "expired"
	Skipped       Outcome = "skipped"
	CancelledStep Outcome = "cancelled"
	NotRun        Outcome = "not_run"
	// Undone and UndoFailed are outcomes of a step's compensation.
	Undone     Outcome = "compensated"
	UndoFailed Outcome = "compensation_failed"
)

// A Cause is why a step or a run failed: the error that catch and on_failure see.
type Cause struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Step    string `json:"step,omitempty"`
}

// State is what a run's log adds up to: a tree of scopes with their steps.
// Only Evolve and Fold make one; everybody else reads it. A State that was
// published is never changed again, so it may be shared between goroutines.
type State struct {
	Tenant      Tenant            `json:"tenant"`
	Run         RunID             `json:"run"`
	Seq         int64             `json:"seq"` // of the last event; 0: not started
	Definition  string            `json:"definition"`
	Version     int               `json:"version"`
	Digest      string            `json:"digest"`
	Key         string            `json:"key,omitempty"`
	Input       json.RawMessage   `json:"input,omitempty"`
	InputDigest string            `json:"inputDigest,omitempty"`
	Requester   string            `json:"requester,omitempty"`
	Title       string            `json:"title,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	EventID     string            `json:"eventId,omitempty"`
	RepairOf    RunID             `json:"repairOf,omitempty"`
	StartedAt   time.Time         `json:"startedAt"`
	At          time.Time         `json:"at"` // of the last event

	Scopes    []*Scope                   `json:"scopes,omitempty"` // the open ones, in order of opening
	Steps     []*Step                    `json:"steps,omitempty"`  // all that have a record, in order of opening
	Vars      map[string]json.RawMessage `json:"vars,omitempty"`
	Timers    []*Timer                   `json:"timers,omitempty"`    // the running ones
	Undos     []*UndoEntry               `json:"undos,omitempty"`     // in order of completion of what they undo
	Incidents []*Incident                `json:"incidents,omitempty"` // the open ones
	Paused    *PauseState                `json:"paused,omitempty"`
	Unwind    *Unwind                    `json:"unwind,omitempty"`
	Cancel    *CancelRequested           `json:"cancel,omitempty"`
	Lanes     int                        `json:"lanes"` // lanes given out so far; lane 0 is the root's
	Evidence  int                        `json:"evidence,omitempty"`
	CountedAt time.Time                  `json:"countedAt,omitzero"` // of the last EvidenceCounted
	Payload   int                        `json:"payload"`            // bytes of data taken in so far
	End       *RunEnded                  `json:"end,omitempty"`
	EndedAt   time.Time                  `json:"endedAt,omitzero"`
}

// A Scope is an open block. Its path names it: "" is the root,
// "/deliver/ship" the branch ship of step deliver.
type Scope struct {
	Path   string `json:"path"`
	Step   string `json:"step,omitempty"` // the step that holds the block
	Branch string `json:"branch,omitempty"`
	Lane   int    `json:"lane"`
}

// A Step is the record of one step of the run.
type Step struct {
	ID       string          `json:"id"`
	Scope    string          `json:"scope"`
	Outcome  Outcome         `json:"outcome,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *Cause          `json:"error,omitempty"`
	By       string          `json:"by,omitempty"`
	Attempts int             `json:"attempts,omitempty"` // forward attempts scheduled
	Fresh    int             `json:"fresh,omitempty"`    // forward attempts before the last fresh budget

	Irreversible bool      `json:"irreversible,omitempty"`
	Effect       string    `json:"effect,omitempty"`
	Key          string    `json:"key,omitempty"`        // the forward idempotency key
	Doubt        bool      `json:"doubt,omitempty"`      // an attempt may have had an effect and nothing has settled it
	Call         *Call     `json:"call,omitempty"`       // the open forward call; idle while it is probed or in doubt
	Probe        *Call     `json:"probe,omitempty"`      // the open probe
	Settled      []Settled `json:"settled,omitempty"`    // the attempts that were answered, to tell repeats from late results
	Approval     *Approval `json:"approval,omitempty"`   // while it is open, and its votes after
	Wait         *Wait     `json:"wait,omitempty"`       // while it is open
	Holds        bool      `json:"holds,omitempty"`      // a step with blocks
	Halt         *Cause    `json:"halt,omitempty"`       // what will be caught once all inside is quiet
	Caught       string    `json:"caught,omitempty"`     // the catch branch that runs or ran
	Incident     int64     `json:"incident,omitempty"`   // the open incident that holds the step
	LateEffect   bool      `json:"lateEffect,omitempty"` // an effect was found after the step was decided otherwise
	Asked        int       `json:"asked,omitempty"`      // probes answered unknown since the last doubt
	OpenedAt     time.Time `json:"openedAt"`
	EndedAt      time.Time `json:"endedAt,omitzero"`
	TotalAt      time.Time `json:"totalAt,omitzero"` // end of timeouts.total
}

// A Call is an open call to a worker, in either direction or as a probe.
type Call struct {
	Direction   Direction     `json:"direction,omitempty"`
	Attempt     int           `json:"attempt"`
	Seq         int64         `json:"seq"`      // event that scheduled this attempt; the base of its tokens
	InputSeq    int64         `json:"inputSeq"` // event that holds the input
	Lane        int           `json:"lane"`
	Activity    string        `json:"activity"`
	Queue       string        `json:"queue"`
	Effect      string        `json:"effect"`
	Timeout     time.Duration `json:"timeout"`
	Heartbeat   time.Duration `json:"heartbeat"`
	QueueTime   time.Duration `json:"queueTime,omitempty"`
	ReadyAt     time.Time     `json:"readyAt"`
	TotalAt     time.Time     `json:"totalAt,omitzero"`
	ScheduledAt time.Time     `json:"scheduledAt"`       // of attempt 1 since the last fresh budget
	AttemptAt   time.Time     `json:"attemptAt"`         // when this attempt was scheduled
	Begun       int64         `json:"begun,omitempty"`   // the token that was permitted to begin
	Awaited     bool          `json:"awaited,omitempty"` // let finish while its scope halts
	Idle        bool          `json:"idle,omitempty"`    // the attempt was answered and no further one is scheduled
	NoMore      bool          `json:"noMore,omitempty"`  // its last failure was not retryable
	FailedAt    time.Time     `json:"failedAt,omitzero"` // of its first failure since then: where the patience with an undo begins
	Fresh       int           `json:"fresh,omitempty"`   // attempts before the last fresh budget
}

// Settled is an attempt that was answered.
type Settled struct {
	Direction Direction `json:"direction,omitempty"`
	Attempt   int       `json:"attempt"`
	Token     int64     `json:"token"`
	Worker    string    `json:"worker,omitempty"`
	Kind      string    `json:"kind"` // succeeded or failed
}

// A Timer is a running timer of the run.
type Timer struct {
	ID         string    `json:"id"`
	Generation int       `json:"generation"`
	Step       string    `json:"step,omitempty"`
	FireAt     time.Time `json:"fireAt"`
	SetAt      time.Time `json:"setAt"`
	Moves      bool      `json:"moves,omitempty"`
}

// A Wait is an open wait for an event.
type Wait struct {
	Event      string    `json:"event"`
	Key        string    `json:"key"`
	Generation int64     `json:"generation"` // the sequence of its opening
	OpenedAt   time.Time `json:"openedAt"`
}

// An Approval is what people are asked. All text is final: templates were
// evaluated when it was opened.
type Approval struct {
	Title       string          `json:"title"`
	Summary     string          `json:"summary,omitempty"`
	Risk        string          `json:"risk"`
	Subject     json.RawMessage `json:"subject"`
	Digest      string          `json:"digest"` // of Subject; bound into every vote
	Show        []Shown         `json:"show,omitempty"`
	Consequence string          `json:"consequence,omitempty"`
	Lanes       []Lane          `json:"lanes"`
	Separation  []string        `json:"separation,omitempty"` // who may not vote besides the requester
	ExpiresAt   time.Time       `json:"expiresAt"`
	OnReject    string          `json:"onReject"`
	Votes       []Vote          `json:"votes,omitempty"`
}

// Shown is a line or table of an approval.
type Shown struct {
	Label string          `json:"label"`
	Value json.RawMessage `json:"value,omitempty"`
	Table json.RawMessage `json:"table,omitempty"`
}

// A Lane is a group of approvers with its quorum.
type Lane struct {
	Name   string   `json:"name"`
	From   []string `json:"from"` // "group:NAME" or "user:ID"
	Quorum int      `json:"quorum"`
}

// A Vote is one person's counted decision.
type Vote struct {
	Person  string    `json:"person"`
	Approve bool      `json:"approve"`
	Lanes   []int     `json:"lanes"`
	At      time.Time `json:"at"`
	Comment string    `json:"comment,omitempty"`
}

// An UndoEntry is an effect that unwinding has to undo.
type UndoEntry struct {
	Step      string          `json:"step"`
	Activity  string          `json:"activity"`
	Queue     string          `json:"queue"`
	Input     json.RawMessage `json:"input,omitempty"`
	Key       string          `json:"key"`
	Effect    string          `json:"effect"`
	Timeout   time.Duration   `json:"timeout"`
	Heartbeat time.Duration   `json:"heartbeat"`
	Problem   string          `json:"problem,omitempty"`
	Edition   int             `json:"edition,omitempty"` // how often a person replaced the activity
	Late      bool            `json:"late,omitempty"`    // found after the step was decided otherwise
	Call      *Call           `json:"call,omitempty"`
	Outcome   Outcome         `json:"outcome,omitempty"` // Undone, Skipped or open
	Incident  int64           `json:"incident,omitempty"`
}

// An Incident is a need for a person: what is wrong, since when, and what may
// be done about it.
type Incident struct {
	ID        int64        `json:"id"` // the sequence of its event
	Kind      IncidentKind `json:"kind"`
	Step      string       `json:"step,omitempty"`
	Direction Direction    `json:"direction,omitempty"`
	Message   string       `json:"message"`
	Since     time.Time    `json:"since"`
	Allowed   []Resolution `json:"allowed"`
}

// An IncidentKind is what is wrong.
type IncidentKind string

// The kinds of incidents.
const (
	IncidentUnknown    IncidentKind = "unknown"             // nobody knows whether the step had its effect
	IncidentExpression IncidentKind = "expression"          // an expression failed at run time
	IncidentUndo       IncidentKind = "compensation_failed" // the budget of an undo is used up
	IncidentBadOutput  IncidentKind = "bad_output"          // applied, but its answer breaks the schema or the size
	IncidentLimit      IncidentKind = "limit"               // a quota is used up
	IncidentPastPivot  IncidentKind = "past_pivot"          // a failure after the point of no return
	IncidentDeadline   IncidentKind = "deadline"            // the deadline passed and asks for a person
	IncidentTwoEffects IncidentKind = "two_effects"         // a superseded attempt succeeded: two effects may stand
	IncidentCorrupt    IncidentKind = "corrupt"             // the run cannot be read or decided; it is quarantined
)

// PauseState says since when a run is held.
type PauseState struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Unwind says why the run is being undone and how it will end.
type Unwind struct {
	Cause Cause  `json:"cause"`
	Final Status `json:"final"`
	Told  bool   `json:"told,omitempty"` // on_failure was begun
}
