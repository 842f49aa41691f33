// Package store is the contract of durable storage, with its reference in
// memory beside it. Drivers hold no rule: they write rows that were derived
// elsewhere, under conditions that every write names, and report alone each
// write whose condition failed. All of a run's rows are keyed by tenant and
// run. Times are passed in, in UTC and whole microseconds; a driver reads a
// clock only to answer what time its database has.
//
// The contract comes in five parts of at most eight methods, so that each
// consumer declares what it needs: Store (the write path), Records (reading),
// Catalog (definitions), Events (sent events) and Inspector (replay). Every
// driver passes the suite of package storetest.
//
// A row that cannot be read is no fault of the database: it is left out, named
// (Unreadable, Loaded.Err, Inspected.Bad) and never ErrUnavailable.
package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
)

// ErrUnavailable says that nothing was done: the store could not be reached,
// is read-only, locked or full. The same call may succeed later.
var ErrUnavailable = errors.New("store: unavailable")

// ErrLocked is an ErrUnavailable that says that somebody else has locked what
// the call needed, for longer than a call waits. Other calls may succeed.
var ErrLocked = fmt.Errorf("%w: locked by somebody else", ErrUnavailable)

// ErrDoubt says that a commit was sent and nobody knows whether it was done.
// Sending the same writes again, unchanged, settles it.
var ErrDoubt = errors.New("store: outcome of the commit is unknown")

// ErrNotFound says that there is no such row.
var ErrNotFound = errors.New("store: not found")

// A Key names a run.
type Key struct {
	Tenant ringi.Tenant
	Run    ringi.RunID
}

// A CommitID is drawn once per write and stored with its first event, so that
// a write that is sent again recognises itself.
type CommitID [16]byte

// A Write is one transition of one run with all its consequences, or, with a
// nil Body, only the claim that the run still stands where it was read.
// It is applied whole or not at all, and never changed once sent.
type Write struct {
	Key
	Commit CommitID
	First  int64  // sequence of the first event; the run must stand at First-1
	Last   int64  // sequence of the last event
	Prev   []byte // chain head that must stand at First-1; nil for a start
	Head   []byte // chain head at Last
	Body   []byte // ringi.EncodeEvents of the transition; nil: a claim only

	Needs []ringi.Need // conditions on task rows

	Start     *StartRow     // insert the run row; its start key must be free
	Run       *ringi.RunRow // change the run row
	Tasks     []TaskChange
	Timers    []TimerChange
	Waits     []WaitChange
	Approvals []ApprovalChange
	Incidents []IncidentChange
	Snapshot  *Snapshot
	Messages  []outbox.Message
	Audit     []AuditRecord
}

// A StartRow is the list row of a new run.
type StartRow struct {
	Definition  string
	Version     int
	Digest      string
	StartKey    string // "" holds no key
	InputDigest string
	Requester   string
	Title       string
	Labels      map[string]string
	StartedAt   time.Time
	RepairOf    ringi.RunID // "" for an ordinary run
	ringi.RunRow
}

// A TaskChange is what a transition does to the task row of one lane.
type TaskChange struct {
	Lane  int
	Row   *ringi.TaskRow // nil deletes the row
	Fresh bool           // a new attempt: hand-outs, lease and lapses begin anew; false keeps them
	Lease *Lease         // with Fresh: born leased, as its first hand-out
	Begun time.Time      // set when Row.Begun was set by this write: the work lease ends here and is confirmed
}

// A Lease is a hand-out.
type Lease struct {
	Worker string
	Until  time.Time
	At     time.Time // when it was handed out; the attempt's time runs from here
}

// A TimerChange puts a timer row (Row set) or deletes it.
type TimerChange struct {
	ID  string
	Row *ringi.TimerRow
}

// A WaitChange puts a wait row or deletes it.
type WaitChange struct {
	Step string
	Row  *ringi.WaitRow
}

// An ApprovalChange puts the row of an open approval or deletes it.
type ApprovalChange struct {
	Step string
	Row  *ringi.ApprovalRow
}

// An IncidentChange puts the row of an open incident or deletes it.
type IncidentChange struct {
	ID  int64
	Row *ringi.Incident
}

// A Snapshot makes loading faster and is never the only proof of anything.
type Snapshot struct {
	Seq    int64
	Format int
	Body   []byte // ringi.EncodeState
}

// An AuditRecord is something that a person or an administrator did. It is
// written without a number; a sealer numbers and chains the records later.
type AuditRecord struct {
	At     time.Time   `json:"at"`
	Actor  string      `json:"actor"`
	Kind   string      `json:"kind"`   // the command, e.g. "decide_approval"
	Run    ringi.RunID `json:"run"`    // "" when it is about no run
	Answer string      `json:"answer"` // accepted, repeated, or the code of the refusal
	Data   []byte      `json:"data"`   // JSON: what was asked
	Head   []byte      `json:"head"`   // the run's chain head at that moment
}

// Committed is the answer to a commit that reached the store.
type Committed struct {
	Now         time.Time // the database's clock
	Incarnation string    // changes when the database is another one than before (restore, failover)
	Lost        []LostWrite
}

// A LostWrite is a write whose condition failed; the others were applied.
type LostWrite struct {
	Index int
	What  Condition
	Lost  ringi.Lost // what stood there
}

// A Condition names what a write relied on.
type Condition string

// The conditions.
const (
	CondSequence Condition = "sequence"  // the run has moved on, or its history is another one
	CondStartKey Condition = "start_key" // the key is taken: Lost.Holder
	CondTask     Condition = "task"      // the token or lease is another one: Lost.Tasks
)

// A BadWrite is a write that can never be applied, such as one that breaks a
// constraint of the database. The batch was not applied.
type BadWrite struct {
	Index int
	Err   error
}

// Error says which write of the batch is bad and why.
func (b *BadWrite) Error() string { return "store: write cannot be applied: " + b.Err.Error() }

// Unwrap returns the database's error.
func (b *BadWrite) Unwrap() error { return b.Err }

// Store is the write path and what workers live on. All calls take many runs
// at once and may be made concurrently.
type Store interface {
	// Commit applies the writes in one transaction, leaving out those whose
	// condition failed. At most one write per run. Without writes it only
	// reads clock and incarnation. Errors: ErrUnavailable, ErrDoubt, *BadWrite.
	Commit(ctx context.Context, writes ...Write) (Committed, error)
	// Load reads snapshot and tail of many runs in one go; a run that does
	// not exist is answered with Loaded.Rows empty. One answer per key, in
	// order. A snapshot that is ahead of its log is left out.
	Load(ctx context.Context, keys ...Key) ([]Loaded, error)
	// Claim hands out ready tasks of a queue, oldest first, tenants in turn
	// when Claim.Tenant is 0. Each hand-out has the next larger token.
	Claim(ctx context.Context, c Claim) ([]Claimed, error)
	// Beat extends leases whose token is current, also after their end;
	// one answer per beat, in order.
	Beat(ctx context.Context, beats ...Beat) ([]Beaten, error)
	// DueTimers claims timers that are due until claimUntil, so that n nodes
	// do not fire each one n times.
	DueTimers(ctx context.Context, now, claimUntil time.Time, limit int) ([]DueTimer, error)
	// DueTasks reads task rows whose check time has come. It claims nothing.
	DueTasks(ctx context.Context, now time.Time, limit int) ([]DueTask, error)
	// Settle applies what a sweep decided without an event.
	Settle(ctx context.Context, s Settlement) error
	// Close releases everything. It is idempotent.
	Close() error
}

// Loaded is a run as stored: the snapshot, when there is one, and the log rows
// after it.
type Loaded struct {
	Key      Key
	Snapshot *Snapshot
	Rows     []LogRow
	Head     []byte // chain head after the run's last event, also when Rows is empty; nil: no such run
	Err      error  // the rows of this run cannot be read; the others are fine
}

// A LogRow is one transition.
type LogRow struct {
	First  int64
	Last   int64    // sequence of the last event, as the row says
	Commit CommitID // zero when the row has none that can be read
	Head   []byte
	Body   []byte
}

// A TaskRef names the task of a run that stands in a lane.
type TaskRef struct {
	Key  Key
	Lane int
}

// A Claim asks for tasks.
type Claim struct {
	Tenant     ringi.Tenant // 0: all, in turn
	Queue      string
	Activities []string // nil: all
	Worker     string
	Max        int
	Now        time.Time
	Handover   time.Duration // length of the lease until the first sign of life

	// Due is when a task must have been ready; zero is Now. A node that leaves to
	// others what they have just made says a moment before Now.
	Due time.Time

	// Only are the tasks to take, as far as they are ready, at most Max; nil is the
	// oldest ones. They are of the queue; Tenant and Activities do not count then.
	Only []TaskRef
}

// ReadyBy is when a task that the claim takes must have been ready.
func (c *Claim) ReadyBy() time.Time {
	if c.Due.IsZero() {
		return c.Now
	}
	return c.Due
}

// A Claimed task is one hand-out, with all that the worker must be told.
type Claimed struct {
	Key        Key
	Row        ringi.TaskRow
	Token      int64
	Definition string
	Version    int
	InputFirst int64  // sequence of the first event of InputBody
	InputBody  []byte // the log row that holds event Row.InputSeq
}

// A Beat is one heartbeat.
type Beat struct {
	Key       Key
	Step      string
	Direction ringi.Direction
	Token     int64
	Now       time.Time // the lease is extended to Now plus the row's heartbeat, not beyond the attempt's end
}

// Beaten answers a heartbeat.
type Beaten struct {
	OK   bool
	Held bool // the run is paused
}

// A DueTimer is a claimed timer.
type DueTimer struct {
	Key Key
	ringi.TimerRow
}

// A DueTask is a task row that a sweep looks at.
type DueTask struct {
	Key Key
	Row ringi.TaskRow
	TaskLease
}

// A TaskLease is the part of a task row that the log does not fix.
type TaskLease struct {
	Token      int64 // of the latest hand-out, or the base
	Leased     bool
	Confirmed  bool // the worker has shown that it received the task
	Worker     string
	LeaseEnd   time.Time
	AttemptEnd time.Time // Row.Timeout after the hand-out, not after Row.TotalAt
	Lapsed     int       // hand-overs in a row that lapsed
}

// A Settlement is what a sweep decided without an event. Each part has its
// conditions; what no longer holds is left alone.
type Settlement struct {
	Lapses []Lapse
	Checks []Check
	Drops  []DueTimer // delete these rows if the generation still matches
}

// A Lapse gives a task back whose hand-over nobody confirmed, unless the row is
// awaited: that one is never handed out again, so its end is a command.
type Lapse struct {
	Key      Key
	Lane     int
	Token    int64     // condition: current
	LeaseEnd time.Time // condition: unchanged
	ReadyAt  time.Time // when it may be handed out again
	// Unsent says that the hand-out left for nobody, so that it never was one: its
	// token is taken back, and it does not count as a lapse. Conditions and token
	// keep a later hand-out of the same number apart, since no lease has two ends.
	Unsent bool
}

// A Check moves the check time of a task row.
type Check struct {
	Key   Key
	Lane  int
	Token int64 // condition: current
	At    time.Time
	// LeaseEnd is a condition when it is set: unchanged since the sweep looked.
	// It keeps a lease that a heartbeat gave meanwhile from being looked at late.
	LeaseEnd time.Time
}

// Records is the reading side. It reads committed rows only. Run, Standing and
// the lists leave out what they cannot read and name it in an *Unreadable that
// comes beside the answer; a page is as long as if such rows were not there.
type Records interface {
	// Run reads the list row; ErrNotFound when there is none.
	Run(ctx context.Context, key Key) (RunRecord, error)
	// Log reads log rows whose last event is after the sequence, until
	// maxBytes of bodies are passed (at least one row if there is one).
	Log(ctx context.Context, key Key, after int64, maxBytes int) ([]LogRow, error)
	// Standing reads the rows that ringi.Standing fixes, for replay.
	Standing(ctx context.Context, key Key) (ringi.Rows, error)
	// Runs lists list rows, newest first.
	Runs(ctx context.Context, q ringi.RunQuery) ([]RunRecord, string, error)
	// Approvals lists open approvals, oldest first.
	Approvals(ctx context.Context, q ringi.ApprovalQuery) ([]ringi.ApprovalView, string, error)
	// Incidents lists open incidents, oldest first.
	Incidents(ctx context.Context, q ringi.IncidentQuery) ([]ringi.IncidentView, string, error)
	// Queues measures the queues.
	Queues(ctx context.Context, tenant ringi.Tenant, now time.Time) ([]ringi.QueueView, error)
	// Audit reads audit records about a run, or all with an empty run, in order of writing.
	Audit(ctx context.Context, key Key, limit int) ([]AuditRecord, error)
}

// A RunRecord is a list row.
type RunRecord struct {
	Key Key
	StartRow
	TasksReady  int // open tasks that nobody holds
	TasksLeased int
}

// Catalog keeps definition versions.
type Catalog interface {
	// PutDefinition stores the next version of the name, or answers the
	// version that has the digest already.
	PutDefinition(ctx context.Context, d Definition, audit AuditRecord) (version int, created bool, err error)
	// Definition reads a version; 0 is the latest. ErrNotFound when there is none.
	Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (Definition, error)
	// Definitions lists versions, by name and newest first.
	Definitions(ctx context.Context, q ringi.DefinitionQuery) ([]Definition, string, error)
}

// A Definition is a stored version.
type Definition struct {
	Tenant      ringi.Tenant
	Name        string
	Version     int
	Digest      string
	Description string
	Source      []byte // canonical JSON
	PublishedAt time.Time
	PublishedBy string
}

// Events keeps sent events and finds the waits that they belong to.
type Events interface {
	// Send stores an event until keepUntil unless its id is known for this
	// tenant. One that is known with the same name, key and bytes is a repeat
	// (false, nil); with anything else the answer is an *EventKnown.
	Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keepUntil time.Time) (created bool, err error)
	// Pairs finds open waits with an event for them that both stand in the
	// store: of one name and key, or of all when Name is "". An event pairs
	// with a wait that was open when it was sent, or opened before the event
	// expired; never with the run that it started. Oldest event first, one
	// pair per wait.
	Pairs(ctx context.Context, q PairQuery) ([]Pair, error)
	// Expire deletes events whose keep time has passed and that no open wait pairs with.
	Expire(ctx context.Context, now time.Time, limit int) (int, error)
}

// EventKnown says that an event was not stored because its id belongs to one
// that differs.
type EventKnown struct{ Event ringi.SentEvent } // the one that is stored

// Error names the event.
func (e *EventKnown) Error() string {
	return fmt.Sprintf("store: event id %q is known, with another name, key or data", e.Event.ID)
}

// A PairQuery asks for pairs.
type PairQuery struct {
	Tenant ringi.Tenant // 0: all
	Name   string
	Key    string
	Limit  int
}

// A Pair is an event and a wait that it satisfies.
type Pair struct {
	Key   Key
	Step  string
	Event ringi.SentEvent
}

// Chain returns the head of a run's hash chain after a log row: SHA-256 over
// the head before it (nothing for the first row) and the row's stored bytes.
func Chain(prev, body []byte) []byte {
	h := sha256.New()
	h.Write(prev)
	h.Write(body)
	return h.Sum(nil)
}
