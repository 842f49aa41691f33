package workflow

import (
	"encoding/json"
	"time"
)

// A Definition is one checked process: a tree of blocks, each a list of steps
// with exactly one verb. It is immutable once Parse has returned it and may be
// read by any number of goroutines; its expressions are compiled.
type Definition struct {
	Name        string            // what starts name; at most 256 bytes
	Title       *Value            // text shown for a run; nil when the file has none
	Description string            // free text for people
	Labels      map[string]string // at most 16; copied to the run's list row
	Input       *Schema           // schema of a start's input; nil accepts any JSON value
	StartKey    *Value            // over input only; nil when a start names its key itself or has none
	Deadline    *Deadline         // nil when the run may take as long as it needs
	Root        *Block            // the steps
	Output      *Value            // nil when the run's output is null
	OnFailure   *Block            // nil when nothing runs between the undo and the final status
	Digest      string            // hex SHA-256 of Source, see Canonical
	Source      json.RawMessage   // the document in canonical JSON, defaults not filled in

	steps  map[string]*Step
	blocks []*Block
}

// Step returns the step of that id anywhere in the tree, or nil.
func (d *Definition) Step(id string) *Step { return d.steps[id] }

// Steps counts the steps of the whole tree, also those without an id of their own.
func (d *Definition) Steps() int {
	n := 0
	for _, b := range d.blocks {
		n += len(b.Steps)
	}
	return n
}

// A Deadline ends a run that takes too long.
type Deadline struct {
	After time.Duration // from the start of the run
	Then  string        // "compensate" or "incident"
}

// A Block is a list of steps that run one after the other.
type Block struct {
	Owner  *Step  // the step that holds the block; nil for Definition.Root and OnFailure
	Branch string // its name inside the owner, unique there: see Step.Block; "" for Root, "on_failure" for OnFailure
	Steps  []*Step
}

// A Step is one step. Exactly one of the verb fields is set; Verb names it.
type Step struct {
	ID       string // unique in the file; generated ("fail_1", "finish_2") where the file may leave it out
	Title    *Value // nil when the file has none
	When     *Condition
	Timeouts Timeouts
	Retry    Retry
	Catch    []Catch
	Accepted string // why a finding about the step's effect is meant

	Verb     Verb
	Activity *Activity // also of the verb http
	Approval *Approval
	Wait     *Wait
	Choose   *Choose
	Parallel *Parallel
	Emit     *Emit
	Set      []Var
	Do       *Block
	Fail     *Fail
	Finish   *Finish

	In    *Block // the block that the step stands in
	Index int    // its place there, from 0
	Line  int    // where the file has it, from 1
}

// Block returns the block of that branch name inside the step, or nil:
// "do" for do, "if_0" … and "else" for choose, the branch's own name for
// parallel, "catch_0" … for catch.
func (s *Step) Block(branch string) *Block {
	for _, b := range s.Blocks() {
		if b.Branch == branch {
			return b
		}
	}
	return nil
}

// Blocks returns the blocks inside the step in the order of the file: its
// branches, then its catches.
func (s *Step) Blocks() []*Block {
	var out []*Block
	switch {
	case s.Do != nil:
		out = append(out, s.Do)
	case s.Choose != nil:
		for _, c := range s.Choose.Cases {
			out = append(out, c.Do)
		}
		if s.Choose.Else != nil {
			out = append(out, s.Choose.Else)
		}
	case s.Parallel != nil:
		out = append(out, s.Parallel.Branches...)
	}
	for _, c := range s.Catch {
		out = append(out, c.Do)
	}
	return out
}

// A Verb is what a step does.
type Verb string

// The verbs of the language.
const (
	VerbActivity Verb = "activity"
	VerbHTTP     Verb = "http"
	VerbApproval Verb = "approval"
	VerbWait     Verb = "wait"
	VerbChoose   Verb = "choose"
	VerbParallel Verb = "parallel"
	VerbEmit     Verb = "emit"
	VerbSet      Verb = "set"
	VerbDo       Verb = "do"
	VerbFail     Verb = "fail"
	VerbFinish   Verb = "finish"
)

// Timeouts bound a step. Zero means none, where the file and its defaults set none.
type Timeouts struct {
	Attempt   time.Duration // one attempt, from its hand-out; default 30 s
	Total     time.Duration // the step with all its attempts and their backoff; default 15 m
	Queue     time.Duration // an attempt that no worker takes; default none
	Heartbeat time.Duration // the length of the work lease; default 30 s
}

// Retry says how often and how far apart attempts of a step are made.
type Retry struct {
	Attempts int           // tries in all, at least 1
	Initial  time.Duration // before the second try
	Factor   float64       // growth of the pause, at least 1
	Max      time.Duration // longest pause
	StopOn   []string      // codes of failures after which no further try is made
}

// Catch handles failures of its step. On holds failure codes, or one of
// timed_out, rejected, expired, cancelled, bad_output, expression, or "*".
type Catch struct {
	On []string
	Do *Block // branch "catch_0", "catch_1", …
}

// An Effect says what a side effect can bear when an answer is lost.
type Effect string

// The effect contracts, DESIGN "Effect contracts".
const (
	Pure       Effect = "pure"         // only reads or computes: run again
	Idempotent Effect = "idempotent"   // the service honours the key: run again with it
	Probeable  Effect = "probeable"    // not idempotent, but can be asked
	AtMostOnce Effect = "at_most_once" // never tried twice blindly
)

// NeedsBegin reports whether a worker must ask for permission (begin) before
// the call goes out, so that "perhaps begun" is never confused with "not begun".
func (e Effect) NeedsBegin() bool { return e == Probeable || e == AtMostOnce }

// OnUnknown says what follows when nobody knows whether an attempt had its effect.
type OnUnknown string

// The answers to an unknown outcome.
const (
	UnknownIncident         OnUnknown = "incident" // ask a person; the default
	UnknownAssumeApplied    OnUnknown = "assume_applied"
	UnknownAssumeNotApplied OnUnknown = "assume_not_applied"
	UnknownCompensate       OnUnknown = "compensate"
	UnknownFail             OnUnknown = "fail"
)

// Activity is a call to a worker. An http step is one too: its name is
// HTTPActivity, its queue HTTPQueue, and With yields the request with method,
// url, headers, query, body and expect, as far as the definition has them.
type Activity struct {
	Name         string // e.g. "payment.charge"
	With         *Value // input; nil sends {}
	Queue        string // default "default"
	Key          *Value // idempotency key; nil: run and step
	Effect       Effect // never "" after parsing: undeclared is AtMostOnce
	Probe        *Call  // set exactly when Effect is Probeable
	OnUnknown    OnUnknown
	Irreversible bool    // the pivot
	Compensate   *Call   // nil when there is nothing to undo
	Output       *Schema // nil accepts any JSON value
}

// Call is the activity of a probe or of a compensation, or an http call in the
// form of Activity.
type Call struct {
	Name   string
	With   *Value
	Queue  string // the step's queue
	Key    *Value // nil: run, step and direction
	Effect Effect // Pure for a probe; Idempotent for a compensation unless given
	Retry  Retry
}

// Approval waits for people.
type Approval struct {
	Title       *Value
	Summary     *Value // nil when absent
	Risk        string // low, normal or high
	Subject     *Value // an object; its digest is bound into every vote
	Show        []Show
	Consequence *Value // nil when absent
	Ask         []Lane // all must reach their quorum
	Separation  []*Value
	ExpireAfter time.Duration // default 72 h; then the approval is rejected
	OnReject    string        // "fail" or "continue"
}

// Show is a line or a table that the approver sees.
type Show struct {
	Label string
	Value *Value // exactly one of Value and Table is set
	Table *Value
}

// A Lane is a group of approvers and how many of them must agree.
type Lane struct {
	Name   string
	From   []*Value // each evaluates to "group:NAME" or "user:ID"
	Quorum int      // at least 1
}

// Wait waits for time or for an event. Exactly one of For, Until and Event is set.
type Wait struct {
	For     time.Duration
	Until   *Value // an RFC 3339 instant
	Event   string
	Key     *Value // with Event
	Timeout time.Duration
	Then    string // at Timeout: "fail" or "continue"
}

// Choose takes the first case whose condition holds.
type Choose struct {
	Cases []Case
	Else  *Block // branch "else"; nil when absent
}

// A Case is one condition of a choose and its block, branch "if_0", "if_1", ….
type Case struct {
	If *Condition
	Do *Block
}

// Parallel runs its branches side by side and joins all.
type Parallel struct {
	Branches []*Block // in the order of the file
}

// Emit writes a message to the outbox in the transition's own transaction.
type Emit struct {
	Type          string
	AggregateType string
	AggregateID   *Value
	Data          *Value
}

// A Var is one name that a set step gives a value.
type Var struct {
	Name  string
	Value *Value
}

// Fail ends its scope with a failure.
type Fail struct {
	Code    string
	Message *Value // nil when absent
}

// Finish completes the run. It may not stand inside a parallel.
type Finish struct {
	Output *Value // nil: null
}
