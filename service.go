package ringi

import (
	"context"
	"encoding/json"
	"time"
)

// Service is the waist of the system. The engine implements it in process,
// the API client over HTTP, and one suite runs against both. Workers, the
// console and the command line use only it and cannot tell which they hold.
// All methods may be called concurrently.
type Service interface {
	// Publish stores a definition version, or returns the one that exists
	// with this digest. Problems of the source are in Published, not an error.
	Publish(ctx context.Context, p Publication) (Published, error)
	// Do decides commands and returns when they are durable, one result per
	// command in their order. A refusal is in Result.Err.
	Do(ctx context.Context, commands ...Command) []Result
	// Poll takes tasks, waiting up to PollRequest.Wait for the first.
	Poll(ctx context.Context, p PollRequest) ([]Task, error)
	// Heartbeat extends leases, one answer per beat in their order.
	Heartbeat(ctx context.Context, beats ...Beat) ([]BeatAnswer, error)
	// Run reads one run from the store.
	Run(ctx context.Context, tenant Tenant, run RunID) (RunView, error)
	// History reads a page of a run's log from the store.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)
	// List reads a page of one noun from the store.
	List(ctx context.Context, q Query) (Page, error)
	// Close drains and releases everything. It is idempotent.
	Close() error
}

// A Publication is the source of a definition.
type Publication struct {
	Tenant Tenant `json:"-"`
	Actor  Actor  `json:"-"`
	File   string `json:"file,omitempty"` // for positions in problems
	Source []byte `json:"-"`              // YAML or JSON, at most 1 MiB
}

// Published is a definition version, or the problems that kept it from being one.
type Published struct {
	Name     string    `json:"name,omitempty"`
	Version  int       `json:"version,omitempty"` // 1, 2, 3 … per name
	Digest   string    `json:"digest,omitempty"`
	Created  bool      `json:"created"` // false: the version was there already
	Problems []Problem `json:"problems"`
}

// A Problem of a definition, as package workflow found it.
type Problem struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	ID         string `json:"id"`
	Severity   string `json:"severity"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

// A Result is the answer to one command.
type Result struct {
	Run     RunID
	Seq     int64 // the run's last event when the command was decided
	Status  Status
	Version int    // of the definition that the run is pinned to
	Created bool   // a start made a new run
	ID      string // of the event that SendEvent stored
	Answer  Answer
	Tasks   []Task // with CompleteActivity and FailActivity, when Want asked for some
	Err     error
}

// A Task is an attempt handed to a worker under a lease.
type Task struct {
	Tenant     Tenant          `json:"tenant"`
	Run        RunID           `json:"run"`
	CallRef                    // step, direction, attempt, token
	Activity   string          `json:"activity"`
	Queue      string          `json:"queue"`
	Definition string          `json:"definition"`
	Version    int             `json:"version"`
	Input      json.RawMessage `json:"input"`
	Key        string          `json:"key"` // the idempotency key for the outside service
	Effect     string          `json:"effect"`
	Begin      bool            `json:"begin"` // ask for permission before the call goes out
	Lease      time.Duration   `json:"-"`     // until the first heartbeat or begin is due
	Heartbeat  time.Duration   `json:"-"`     // length of the lease that a heartbeat gives
	Timeout    time.Duration   `json:"-"`     // after which the worker ends its function
	Started    time.Time       `json:"-"`     // unused by the engine; a worker may note its own clock
}

// A PollRequest asks for tasks.
type PollRequest struct {
	Tenant     Tenant
	Actor      Actor         // who asks; zero is a worker from outside, see Actor.Serves
	Worker     string        // names the worker process
	Queue      string        // one queue
	Activities []string      // nil takes every activity of the queue
	Max        int           // most tasks to take; at least 1
	Wait       time.Duration // at most 20 s; 0 returns at once
}

// A Beat extends one lease.
type Beat struct {
	Tenant Tenant
	Run    RunID
	CallRef
	Worker string
}

// A BeatAnswer tells whether the lease still stands.
type BeatAnswer struct {
	Outcome AnswerOutcome // accepted, or stale: stop working
	Cancel  bool          // stop if you can: the run is being undone or has ended
}

// A Query is one of RunQuery, ApprovalQuery, IncidentQuery, DefinitionQuery,
// WorkerQuery. The sum is sealed.
type Query interface{ query() }

// RunQuery lists runs, newest first.
type RunQuery struct {
	Tenant     Tenant
	Status     []Status // nil: all
	Definition string
	Key        string
	After      string // cursor of the page before
	Limit      int    // 0 is 50; at most 500
}

// ApprovalQuery lists open approvals, oldest first.
type ApprovalQuery struct {
	Tenant Tenant
	Run    RunID
	For    *Actor // only those that this person may vote on now
	After  string
	Limit  int
}

// IncidentQuery lists open incidents, oldest first.
type IncidentQuery struct {
	Tenant Tenant
	Run    RunID
	After  string
	Limit  int
}

// DefinitionQuery lists definition versions by name, newest version first.
type DefinitionQuery struct {
	Tenant Tenant
	Name   string
	After  string
	Limit  int
}

// WorkerQuery lists queues with their depth and the workers seen lately, all at once.
type WorkerQuery struct {
	Tenant Tenant
	After  string
	Limit  int
}

func (RunQuery) query()        {}
func (ApprovalQuery) query()   {}
func (IncidentQuery) query()   {}
func (DefinitionQuery) query() {}
func (WorkerQuery) query()     {}

// A Page is one page of one noun: only the list that was asked for is set.
type Page struct {
	Runs        []RunSummary
	Approvals   []ApprovalView
	Incidents   []IncidentView
	Definitions []DefinitionView
	Queues      []QueueView
	Next        string // cursor of the next page; "" when this is the last
}

// A RunSummary is a line of a list of runs.
type RunSummary struct {
	Run        RunID             `json:"run"`
	Definition string            `json:"definition"`
	Version    int               `json:"version"`
	Key        string            `json:"key,omitempty"`
	Title      string            `json:"title,omitempty"`
	Status     Status            `json:"status"`
	WaitingFor string            `json:"waitingFor,omitempty"`
	Requester  string            `json:"requester"`
	Labels     map[string]string `json:"labels,omitempty"`
	StartedAt  time.Time         `json:"startedAt"`
	EndedAt    time.Time         `json:"endedAt,omitzero"`
}

// A RunView is a run as one reads it.
type RunView struct {
	RunSummary
	Seq         int64           `json:"seq"`
	Steps       []StepView      `json:"steps"`
	Output      json.RawMessage `json:"output,omitempty"`
	Cause       *Cause          `json:"cause,omitempty"`
	EffectsLeft []string        `json:"effectsLeft"`
	Incidents   []Incident      `json:"incidents,omitempty"`
	Paused      *PauseState     `json:"paused,omitempty"` // by whom, why and since when it is held
	Waits       []WaitView      `json:"waits,omitempty"`  // what it waits for, one per open step
	RepairOf    RunID           `json:"repairOf,omitempty"`
}

// A WaitView is something that a run waits for.
type WaitView struct {
	Step      string    `json:"step"`
	For       string    `json:"for"` // approval, timer or event
	Event     string    `json:"event,omitempty"`
	Key       string    `json:"key,omitempty"`
	Until     time.Time `json:"until,omitzero"`      // when the timer fires, the wait times out, the approval expires
	Approvers []string  `json:"approvers,omitempty"` // who may still make the quorum: group:NAME, user:ID
}

// A StepView is a step of a RunView.
type StepView struct {
	ID       string          `json:"id"`
	Outcome  string          `json:"outcome"` // "open" while it has not ended
	Attempts int             `json:"attempts"`
	Undo     string          `json:"undo,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *Cause          `json:"error,omitempty"`
}

// An ApprovalView is an open approval of a run.
type ApprovalView struct {
	Run        RunID     `json:"run"`
	Step       string    `json:"step"`
	Definition string    `json:"definition"`
	Requester  string    `json:"requester"`
	OpenedAt   time.Time `json:"openedAt"`
	Approval
}

// An IncidentView is an open incident of a run.
type IncidentView struct {
	Run        RunID  `json:"run"`
	Definition string `json:"definition"`
	Incident
}

// A DefinitionView is a definition version.
type DefinitionView struct {
	Name        string          `json:"name"`
	Version     int             `json:"version"`
	Digest      string          `json:"digest"`
	Description string          `json:"description,omitempty"`
	PublishedAt time.Time       `json:"publishedAt"`
	Source      json.RawMessage `json:"source,omitempty"` // with DefinitionQuery.Name only
}

// A QueueView is a queue of tasks and who serves it. The one without a name holds
// the workers that send heartbeats and have polled no queue lately.
type QueueView struct {
	Queue    string       `json:"queue"`
	Ready    int          `json:"ready"`
	Leased   int          `json:"leased"`
	OldestMS int64        `json:"oldestMs"`          // age of the oldest ready task
	Lapsed   int          `json:"lapsed"`            // tasks whose hand-over lapsed five times in a row
	Workers  []WorkerView `json:"workers,omitempty"` // seen in the last minute, by any node
}

// A WorkerView is a worker that polls a queue. One that heartbeats but has not
// polled is no capacity.
type WorkerView struct {
	Worker   string    `json:"worker"`
	LastPoll time.Time `json:"lastPoll,omitzero"` // of this queue
	LastSeen time.Time `json:"lastSeen,omitzero"` // its last poll or heartbeat
	Capacity bool      `json:"capacity"`
}

// A HistoryQuery asks for events after a sequence.
type HistoryQuery struct {
	Tenant Tenant
	Run    RunID
	After  int64
	Limit  int // 0 is 200; at most 1,000, and a page is at most 1 MiB
}

// A HistoryPage is a page of a run's log.
type HistoryPage struct {
	Events []HistoryEvent `json:"events"`
	Next   int64          `json:"next,omitempty"` // 0 when this is the last page
}

// A HistoryEvent is an event as it is shown.
type HistoryEvent struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}
