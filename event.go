package ringi

import (
	"encoding/json"
	"time"
)

// An Event is something that has happened to a run. Events are stored for
// ever as they were written; see codec.go for their bytes.
type Event struct {
	Seq  int64     // 1, 2, 3 … without a gap
	At   time.Time // UTC, whole microseconds, never below the event before
	Fact Fact
}

// A Fact is one of the structs of this file. The sum is sealed; each knows
// the name that it has in the log.
type Fact interface{ kind() string }

// KindOf names a fact as it stands in the log: the name of its struct.
func KindOf(f Fact) string { return f.kind() }

// Direction tells the calls of a step apart.
type Direction string

// The directions.
const (
	Forward Direction = ""      // the step itself
	Undo    Direction = "undo"  // its compensation
	Probe   Direction = "probe" // asking what became of it
)

// RunStarted opens every log.
type RunStarted struct {
	Definition  string            `json:"definition"`
	Version     int               `json:"version"`
	Digest      string            `json:"digest"`
	Key         string            `json:"key,omitempty"`
	Input       json.RawMessage   `json:"input"`
	InputDigest string            `json:"inputDigest"`
	Requester   string            `json:"requester"`
	Actor       string            `json:"actor"`
	Title       string            `json:"title,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	EventID     string            `json:"eventId,omitempty"`
	RepairOf    RunID             `json:"repairOf,omitempty"`
}

// ActivityScheduled puts attempt 1 of a call into its queue; for a forward
// call it also opens the step. It holds all that a worker is told.
type ActivityScheduled struct {
	Step         string          `json:"step"`
	Scope        string          `json:"scope,omitempty"`
	Lane         int             `json:"lane,omitempty"`
	Direction    Direction       `json:"direction,omitempty"`
	Attempt      int             `json:"attempt"`
	Activity     string          `json:"activity"`
	Queue        string          `json:"queue"`
	Input        json.RawMessage `json:"input"`
	Key          string          `json:"key"`
	Effect       string          `json:"effect"`
	Irreversible bool            `json:"irreversible,omitempty"`
	AttemptMS    int64           `json:"attemptMs"`
	HeartbeatMS  int64           `json:"heartbeatMs"`
	QueueMS      int64           `json:"queueMs,omitempty"`
	TotalAt      *time.Time      `json:"totalAt,omitempty"` // end of the step's total time
}

// ActivityRetried puts the next attempt of an open call into its queue.
type ActivityRetried struct {
	Step      string    `json:"step"`
	Direction Direction `json:"direction,omitempty"`
	Attempt   int       `json:"attempt"`
	ReadyAt   time.Time `json:"readyAt"`
	Fresh     bool      `json:"fresh,omitempty"` // a person gave it a new budget
}

// ActivityStarted is the permission that a begin was answered with.
type ActivityStarted struct {
	CallRef
	Worker string `json:"worker,omitempty"`
	By     string `json:"by,omitempty"` // whose key the worker used
}

// ActivitySucceeded ends a call with its output.
type ActivitySucceeded struct {
	CallRef
	Worker  string          `json:"worker,omitempty"`
	By      string          `json:"by,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Problem string          `json:"problem,omitempty"` // the output breaks schema or size: applied, but the step cannot go on with it
}

// ActivityFailed ends an attempt that its worker reported as failed.
type ActivityFailed struct {
	CallRef
	Worker  string  `json:"worker,omitempty"`
	By      string  `json:"by,omitempty"`
	Failure Failure `json:"failure"`
}

// ActivityTimedOut ends an attempt that nobody answered for.
type ActivityTimedOut struct {
	CallRef
	Why     Expiry  `json:"why"`
	Applied Applied `json:"applied"` // no or unknown
}

// ActivityAwaited says that a call under way is let finish while its scope halts.
type ActivityAwaited struct {
	Step string `json:"step"`
}

// ActivityWithdrawn takes a call back that was not under way.
type ActivityWithdrawn struct {
	Step    string  `json:"step"`
	Applied Applied `json:"applied"` // no, or unknown when an earlier hand-out may have had its effect
}

// ProbeAnswered says what the service knew of a doubtful attempt.
type ProbeAnswered struct {
	CallRef
	Worker  string          `json:"worker,omitempty"`
	By      string          `json:"by,omitempty"`
	Applied Applied         `json:"applied"`
	Output  json.RawMessage `json:"output,omitempty"`
	Problem string          `json:"problem,omitempty"` // as in ActivitySucceeded
}

// OutcomeUnknown says that nobody knows whether the step had its effect, and
// what the contract takes for true.
type OutcomeUnknown struct {
	Step   string  `json:"step"`
	Assume Applied `json:"assume,omitempty"` // no: as if it had not happened
}

// StepOpened opens a step that holds blocks: choose, parallel, do.
type StepOpened struct {
	Step  string `json:"step"`
	Scope string `json:"scope,omitempty"`
}

// StepEnded gives a step its outcome where no more telling event does.
type StepEnded struct {
	Step    string          `json:"step"`
	Scope   string          `json:"scope,omitempty"`
	Outcome Outcome         `json:"outcome"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   *Cause          `json:"error,omitempty"`
	By      string          `json:"by,omitempty"`
}

// StepReopened takes a failed step up again, by a person's order.
type StepReopened struct {
	Step string `json:"step"`
}

// ScopeOpened opens a block of a step.
type ScopeOpened struct {
	Scope  string `json:"scope"`
	Step   string `json:"step,omitempty"`
	Branch string `json:"branch"`
	Lane   int    `json:"lane,omitempty"`
}

// ScopeClosed says that a block ran to its end or was given up.
type ScopeClosed struct {
	Scope string `json:"scope"`
}

// ScopeHalted stops everything inside a step, because a failure there will be
// caught by it once all is quiet.
type ScopeHalted struct {
	Step  string `json:"step"`
	Error Cause  `json:"error"`
}

// FailureCaught hands a failure to a catch of the step.
type FailureCaught struct {
	Step   string `json:"step"`
	Branch string `json:"branch"`
	Error  Cause  `json:"error"`
}

// VarsSet ends a set step.
type VarsSet struct {
	Step  string                     `json:"step"`
	Scope string                     `json:"scope,omitempty"`
	Vars  map[string]json.RawMessage `json:"vars"`
}

// MessageEmitted ends an emit step; its message is in the outbox.
type MessageEmitted struct {
	Step          string          `json:"step"`
	Scope         string          `json:"scope,omitempty"`
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	AggregateType string          `json:"aggregateType"`
	AggregateID   string          `json:"aggregateId"`
	Data          json.RawMessage `json:"data"`
}

// TimerSet starts a timer, or starts it anew under a larger generation.
type TimerSet struct {
	Timer      string    `json:"timer"`
	Generation int       `json:"generation"`
	Step       string    `json:"step,omitempty"`
	FireAt     time.Time `json:"fireAt"`
	Moves      bool      `json:"moves,omitempty"` // a pause moves it
}

// TimerFired says that a timer did its work.
type TimerFired struct {
	Timer      string `json:"timer"`
	Generation int    `json:"generation"`
}

// WaitOpened opens a wait step. For time it has only the step; its timer follows.
type WaitOpened struct {
	Step  string `json:"step"`
	Scope string `json:"scope,omitempty"`
	Event string `json:"event,omitempty"`
	Key   string `json:"key,omitempty"`
}

// EventReceived ends a wait with the event's data as output.
type EventReceived struct {
	Step   string          `json:"step"`
	ID     string          `json:"id"`
	Data   json.RawMessage `json:"data,omitempty"`
	SentAt time.Time       `json:"sentAt"`
}

// ApprovalOpened asks people.
type ApprovalOpened struct {
	Step     string   `json:"step"`
	Scope    string   `json:"scope,omitempty"`
	Approval Approval `json:"approval"`
}

// DecisionRecorded is a vote that counts, with the voter's right at that moment.
type DecisionRecorded struct {
	Step    string   `json:"step"`
	Person  string   `json:"person"`
	Approve bool     `json:"approve"`
	Lanes   []int    `json:"lanes"` // the lanes that the person may vote in
	Groups  []string `json:"groups,omitempty"`
	Digest  string   `json:"digest"`
	Comment string   `json:"comment,omitempty"`
}

// DecisionWithdrawn takes a vote back.
type DecisionWithdrawn struct {
	Step   string `json:"step"`
	Person string `json:"person"`
	Reason string `json:"reason,omitempty"`
}

// UndoRegistered puts a step into the order of undoing, with its frozen input.
type UndoRegistered struct {
	Step        string          `json:"step"`
	Activity    string          `json:"activity"`
	Queue       string          `json:"queue"`
	Input       json.RawMessage `json:"input,omitempty"`
	Key         string          `json:"key,omitempty"`
	Effect      string          `json:"effect"`
	AttemptMS   int64           `json:"attemptMs"`
	HeartbeatMS int64           `json:"heartbeatMs"`
	Problem     string          `json:"problem,omitempty"` // its expressions failed: a person must say what to run
	Late        bool            `json:"late,omitempty"`    // found after the step was decided otherwise
	Edition     int             `json:"edition,omitempty"` // counts undos of one step
}

// UndoSettled ends an undo by a person's word instead of a call.
type UndoSettled struct {
	Step   string `json:"step"`
	Undone bool   `json:"undone"` // false: its effect is left standing
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// UndoReplaced gives an undo another activity, by a person's order.
type UndoReplaced struct {
	Step     string          `json:"step"`
	Activity string          `json:"activity"`
	Queue    string          `json:"queue,omitempty"` // "": the one of the activity before
	Input    json.RawMessage `json:"input,omitempty"`
	By       string          `json:"by"`
	Reason   string          `json:"reason"`
}

// CancelRequested records the intent.
type CancelRequested struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// UnwindStarted turns the run around: from here on it only undoes.
type UnwindStarted struct {
	Cause Cause  `json:"cause"`
	Final Status `json:"final"` // cancelled, or failed (which becomes compensated when something is undone)
}

// IncidentOpened says that a person is needed.
type IncidentOpened struct {
	Incident Incident `json:"incident"`
}

// IncidentResolved closes an incident.
type IncidentResolved struct {
	ID     int64      `json:"id"`
	How    Resolution `json:"how"`
	By     string     `json:"by"`
	Reason string     `json:"reason,omitempty"`
}

// RunPaused holds the run.
type RunPaused struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// RunResumed lets it go on.
type RunResumed struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// LateResult is evidence: a result that came too late to move the run.
type LateResult struct {
	CallRef
	Worker string          `json:"worker,omitempty"`
	By     string          `json:"by,omitempty"`
	Kind   string          `json:"kind"` // succeeded, failed or started
	Code   string          `json:"code,omitempty"`
	Output json.RawMessage `json:"output,omitempty"` // of a success that may mean a second effect
}

// EvidenceCounted stands for late results beyond the limit that is kept.
type EvidenceCounted struct {
	Count int `json:"count"` // how many in all
}

// LateEffectFound says that a step which was decided otherwise had its effect after all.
type LateEffectFound struct {
	Step   string          `json:"step"`
	Output json.RawMessage `json:"output,omitempty"`
}

// RunEnded closes the log.
type RunEnded struct {
	Status      Status          `json:"status"`
	Output      json.RawMessage `json:"output,omitempty"`
	Cause       *Cause          `json:"cause,omitempty"`
	EffectsLeft []string        `json:"effectsLeft,omitempty"` // steps whose effects stand although the run did not complete
	By          string          `json:"by,omitempty"`
	Reason      string          `json:"reason,omitempty"`
}

func (RunStarted) kind() string        { return "RunStarted" }
func (ActivityScheduled) kind() string { return "ActivityScheduled" }
func (ActivityRetried) kind() string   { return "ActivityRetried" }
func (ActivityStarted) kind() string   { return "ActivityStarted" }
func (ActivitySucceeded) kind() string { return "ActivitySucceeded" }
func (ActivityFailed) kind() string    { return "ActivityFailed" }
func (ActivityTimedOut) kind() string  { return "ActivityTimedOut" }
func (ActivityAwaited) kind() string   { return "ActivityAwaited" }
func (ActivityWithdrawn) kind() string { return "ActivityWithdrawn" }
func (ProbeAnswered) kind() string     { return "ProbeAnswered" }
func (OutcomeUnknown) kind() string    { return "OutcomeUnknown" }
func (StepOpened) kind() string        { return "StepOpened" }
func (StepEnded) kind() string         { return "StepEnded" }
func (StepReopened) kind() string      { return "StepReopened" }
func (ScopeOpened) kind() string       { return "ScopeOpened" }
func (ScopeClosed) kind() string       { return "ScopeClosed" }
func (ScopeHalted) kind() string       { return "ScopeHalted" }
func (FailureCaught) kind() string     { return "FailureCaught" }
func (VarsSet) kind() string           { return "VarsSet" }
func (MessageEmitted) kind() string    { return "MessageEmitted" }
func (TimerSet) kind() string          { return "TimerSet" }
func (TimerFired) kind() string        { return "TimerFired" }
func (WaitOpened) kind() string        { return "WaitOpened" }
func (EventReceived) kind() string     { return "EventReceived" }
func (ApprovalOpened) kind() string    { return "ApprovalOpened" }
func (DecisionRecorded) kind() string  { return "DecisionRecorded" }
func (DecisionWithdrawn) kind() string { return "DecisionWithdrawn" }
func (UndoRegistered) kind() string    { return "UndoRegistered" }
func (UndoSettled) kind() string       { return "UndoSettled" }
func (UndoReplaced) kind() string      { return "UndoReplaced" }
func (CancelRequested) kind() string   { return "CancelRequested" }
func (UnwindStarted) kind() string     { return "UnwindStarted" }
func (IncidentOpened) kind() string    { return "IncidentOpened" }
func (IncidentResolved) kind() string  { return "IncidentResolved" }
func (RunPaused) kind() string         { return "RunPaused" }
func (RunResumed) kind() string        { return "RunResumed" }
func (LateResult) kind() string        { return "LateResult" }
func (EvidenceCounted) kind() string   { return "EvidenceCounted" }
func (LateEffectFound) kind() string   { return "LateEffectFound" }
func (RunEnded) kind() string          { return "RunEnded" }
