package ringi

import "time"

// Rows is what must stand beside the log while a run stands as it does. The
// effects of a write are the difference of Standing before and after it.
type Rows struct {
	Run       RunRow
	Tasks     []TaskRow     // by lane
	Timers    []TimerRow    // by id
	Waits     []WaitRow     // by step
	Approvals []ApprovalRow // by step
	Incidents []Incident    // by id
}

// A RunRow is the part of the list row that the state fixes.
type RunRow struct {
	Status    Status
	WaitsFor  string // approval, timer, event; "" when it waits for nothing of these
	WaitsStep string // the step that waits
	EndedAt   time.Time
}

// A TaskRow is a call that workers can take, one per open lane.
type TaskRow struct {
	Lane      int
	Step      string
	Direction Direction
	Attempt   int
	Seq       int64 // base of the tokens: token = Seq<<16 | hand-outs
	InputSeq  int64 // the event that holds the input
	Activity  string
	Queue     string
	ReadyAt   time.Time     // not handed out before
	GiveUpAt  time.Time     // end of queue time or total time while nobody holds it; zero: none
	TotalAt   time.Time     // end of total time; zero: none
	Timeout   time.Duration // one attempt
	Heartbeat time.Duration // length of the work lease
	Begin     bool          // a hand-out is not yet permission: the worker must begin
	Begun     int64         // the token that was permitted to begin; 0: none
	Held      bool          // not handed out: the run is paused, or only this attempt is let finish
	Awaited   bool          // only this attempt is let finish: when its lease ends it is never given back
}

// Token returns the n-th token of the task's attempt; n = 0 is the base that
// no worker ever holds. Larger for ever, never used twice.
func (t TaskRow) Token(n int) int64 { return t.Seq<<16 | int64(n) }

// TokenSeq returns the event sequence that a token was made from.
func TokenSeq(token int64) int64 { return token >> 16 }

// A TimerRow is a timer to be fired.
type TimerRow struct {
	ID         string
	Generation int
	FireAt     time.Time
}

// A WaitRow is a wait that events are matched with.
type WaitRow struct {
	Step       string
	Event      string
	Key        string
	Generation int64
	OpenedAt   time.Time
	NotEvent   string // the id of the event that started the run
}

// An ApprovalRow is an open approval as people's lists show it.
type ApprovalRow struct {
	Step      string
	Requester string
	OpenedAt  time.Time // when people were asked; lists are ordered by it
	Approval  Approval
}

// A Need is a condition on a task row that a decision relies on. It becomes a
// condition of the write.
type Need struct {
	Lane     int
	Token    int64
	How      NeedHow
	LeaseEnd time.Time // with NeedExpired: the lease end that was seen
}

// NeedHow is the form of a Need.
type NeedHow int

// The forms.
const (
	NeedToken     NeedHow = iota // Token is the row's current token
	NeedUntouched                // the row's attempt was never handed out: its token is the base
	NeedFree                     // Token is current and nobody holds a lease
	NeedExpired                  // Token is current and its lease still ends at LeaseEnd
)

// A Decision is what the rules made of a command.
type Decision struct {
	Events []Event
	After  *State // what Fold makes of the state and Events, so that nobody has to fold them again; the state as it was when there are none
	Needs  []Need
	Answer Answer
	Repair *Start // a run to start because an effect was found after this one had ended
}

// An Answer is what the sender is told when the decision holds.
type Answer struct {
	Outcome AnswerOutcome
	By      string // who or what settled it before, for repeated and stale
}

// AnswerOutcome says whether a command counted.
type AnswerOutcome string

// The outcomes of a command that was not refused.
const (
	Accepted AnswerOutcome = "accepted"
	Repeated AnswerOutcome = "repeated" // the same was done before; nothing changed
	Stale    AnswerOutcome = "stale"    // it came too late to count; kept as evidence
)
