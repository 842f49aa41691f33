// Package fault names the ways in which a simulated world breaks, and says in
// plain words what each of them means. It has no state.
package fault

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind names a way in which the world breaks. A fault is counted when it
// strikes, not when it is rolled: a lost message that nobody sent, or a restore
// of a database that has not changed, is none.
type Kind string

// The faults.
const (
	NodeCrash            Kind = "node_crash"               // between two rounds
	NodeCrashBeforeStore Kind = "node_crash_before_store"  // inside a round, before its call reaches the store
	NodeCrashAfterStore  Kind = "node_crash_after_store"   // inside a round, when the store has done it
	WorkerCrashBefore    Kind = "worker_crash_before_call" // the task is taken, or permitted, and not called
	WorkerCrashDuring    Kind = "worker_crash_during_call" // the call is out
	WorkerCrashAfter     Kind = "worker_crash_after_call"  // the answer is there and not reported
	CommitNotDone        Kind = "commit_doubt_not_done"    // nobody knows, and it was not
	CommitDone           Kind = "commit_doubt_done"        // nobody knows, and it was
	CommitLate           Kind = "commit_doubt_late"        // nobody knows, and it is done afterwards
	RequestLost          Kind = "request_lost"             // on its way to a node
	AnswerLost           Kind = "answer_lost"              // on its way back
	RequestRepeated      Kind = "request_repeated"         // delivered twice
	AnswerRepeated       Kind = "answer_repeated"          // delivered twice
	MessageReordered     Kind = "message_reordered"        // overtaken by a later one of its sender
	PollAnswerLost       Kind = "poll_answer_lost"         // with tasks in it
	LeaseExpired         Kind = "lease_expired"            // an attempt was given up because nobody extended its lease
	HandOverLapsed       Kind = "hand_over_lapsed"         // a task was given back that nobody confirmed
	WorkerStopped        Kind = "worker_stopped"           // a worker is told to stop, and finishes what it has
	WorkerStalled        Kind = "worker_stalled"           // a worker stands still with tasks in its hands
	ZombieWoken          Kind = "zombie_woken"             // it goes on although an attempt was given up meanwhile
	LateResult           Kind = "late_result"              // a result came for an attempt that was given up
	TimerRepeated        Kind = "timer_repeated"           // the same timer was handed to two firings
	ClockJump            Kind = "clock_jump"               // of the database, forward or back
	NodeStalled          Kind = "node_stalled"             // a node stands still, and its clock goes on
	NodeSuspended        Kind = "node_suspended"           // a node stands still, and so does its clock
	ClockDrift           Kind = "clock_drift"              // a node's clock runs at another speed
	StoreOutage          Kind = "store_outage"             // for all nodes
	StoreOutageLong      Kind = "store_outage_long"        // longer than a work lease, while the worker lives
	StoreCut             Kind = "store_cut"                // for one node
	StoreRefuses         Kind = "store_refuses"            // one call
	StoreSlow            Kind = "store_slow"               // a call takes time, in which others go on
	StaleCache           Kind = "stale_cache"              // a node decided on a state that another had moved on
	StoreRestored        Kind = "store_restored"           // to an earlier state
	EvidenceFlood        Kind = "evidence_flood"           // a worker repeats a late result a thousand times
	DoubleClick          Kind = "approval_double_click"    // the same vote twice
	WithdrawRace         Kind = "approval_withdraw_race"   // a vote is withdrawn while others vote
	ExpiryRace           Kind = "approval_expiry_race"     // a vote at the moment of the expiry
	ForeignVote          Kind = "approval_foreign_vote"    // by somebody who may not
	EventEarly           Kind = "event_early"              // consumed by a wait that opened after it was sent
	EventLate            Kind = "event_late"               // sent after the wait for it was over
	EventRepeated        Kind = "event_repeated"           // sent again under its id
	StartRepeated        Kind = "start_repeated"           // of a key that is taken
	RelayCrash           Kind = "relay_crash"              // with claimed messages
	SinkDown             Kind = "sink_down"                // the broker does not answer
	SinkUnheard          Kind = "sink_answer_lost"         // the broker has the message, its answer got lost
	BadOutput            Kind = "bad_output"               // an activity answers what its schema forbids
	ServiceFlaky         Kind = "service_flaky"            // a call fails and nobody knows whether it took place
	ProbeUnknown         Kind = "probe_unknown"            // a service does not know what became of a call
	HeartbeatRace        Kind = "heartbeat_race"           // a lease is extended at the moment at which it is looked at as lost
	OperatorRace         Kind = "operator_race"            // a run is paused, resumed or cancelled at the moment at which something of it is due
	CommandAtEnded       Kind = "command_at_ended_run"     // an operator is too late
	SweepRepeated        Kind = "sweep_repeated"           // what a sweep found is acted on once more, perhaps minutes later
	TimerEarly           Kind = "timer_early"              // a timer is fired before its time
	EventOwn             Kind = "event_own"                // a run is offered the event that it was started by
	EventUndelivered     Kind = "event_undelivered"        // stored for an open wait, by a node that dies before it delivers it
	EventLastMoment      Kind = "event_last_moment"        // stored just before its wait is looked at as timed out, and its delivery fails
	RestoreOverslept     Kind = "restore_overslept"        // a node slept through a restore until others had made a history as long as the one it knows
)

// Means says in plain words what a fault is; "" for a word that is none.
func (k Kind) Means() string { return firstWords()[k] + otherWords()[k] }

// firstWords are the words for the first half of the list.
func firstWords() map[Kind]string {
	return map[Kind]string{
		NodeCrash:            "a node dies between two rounds",
		NodeCrashBeforeStore: "a node dies before its call reaches the store",
		NodeCrashAfterStore:  "a node dies when the store has done what it asked for",
		WorkerCrashBefore:    "a worker dies with a task that it has not begun",
		WorkerCrashDuring:    "a worker dies while its call is out",
		WorkerCrashAfter:     "a worker dies with an answer that it has not reported",
		CommitNotDone:        "nobody knows whether a commit was done, and it was not",
		CommitDone:           "nobody knows whether a commit was done, and it was",
		CommitLate:           "nobody knows whether a commit was done, and it is done afterwards",
		RequestLost:          "a request never arrives",
		AnswerLost:           "an answer never arrives",
		RequestRepeated:      "a request arrives twice",
		AnswerRepeated:       "an answer arrives twice",
		MessageReordered:     "a message is overtaken by a later one of its sender",
		PollAnswerLost:       "tasks are handed out and never arrive",
		LeaseExpired:         "an attempt was given up because nobody extended its lease",
		HandOverLapsed:       "a task was given back that nobody confirmed",
		WorkerStopped:        "a worker is told to stop, and finishes what it has",
		WorkerStalled:        "a worker stands still with tasks in its hands",
		ZombieWoken:          "it goes on although an attempt was given up meanwhile",
		LateResult:           "a result came for an attempt that was given up",
		TimerRepeated:        "a timer is handed out twice",
		ClockJump:            "the clock of the database is set",
		NodeStalled:          "a node stands still, and its clock goes on",
		NodeSuspended:        "a node stands still, and so does its clock",
		ClockDrift:           "a node's clock runs at another speed",
		StoreOutage:          "the store is away for all nodes",
		StoreOutageLong:      "the store is away for longer than a lease",
	}
}

// otherWords are the words for the rest.
func otherWords() map[Kind]string {
	return map[Kind]string{
		StoreCut:         "one node cannot reach the store",
		StoreRefuses:     "the store refuses one call",
		StoreSlow:        "a call to the store takes time, in which others go on",
		StaleCache:       "a node decided on a state that another had moved on",
		StoreRestored:    "the store is brought back to an earlier state",
		EvidenceFlood:    "a worker repeats a late result a thousand times",
		DoubleClick:      "somebody votes twice",
		WithdrawRace:     "a vote is withdrawn while others vote",
		ExpiryRace:       "a vote at the moment of the expiry",
		ForeignVote:      "somebody votes who may not",
		EventEarly:       "an event came before the wait that takes it",
		EventLate:        "an event comes when the wait for it is over",
		EventRepeated:    "an event is sent again under its id",
		StartRepeated:    "a start is repeated",
		RelayCrash:       "the relay dies with messages in its hands",
		SinkDown:         "the broker does not answer",
		SinkUnheard:      "the broker has the message, its answer got lost",
		BadOutput:        "an activity answers what its schema forbids",
		ServiceFlaky:     "a call fails and nobody knows whether it took place",
		ProbeUnknown:     "a service does not know what became of a call",
		HeartbeatRace:    "a lease is extended at the moment at which it is looked at as lost",
		OperatorRace:     "a run is paused, resumed or cancelled at the moment at which something of it is due",
		CommandAtEnded:   "an operator is too late",
		SweepRepeated:    "what a sweep found is acted on once more, perhaps minutes later",
		TimerEarly:       "a timer is fired before its time",
		EventOwn:         "a run is offered the event that it was started by",
		EventUndelivered: "a node stores an event for a wait and dies before it delivers it",
		EventLastMoment:  "an event comes just before its wait times out, and its delivery fails",
		RestoreOverslept: "a node slept through a restore until others had made a history as long as the one it knows",
	}
}

// Kinds lists every fault, in the order of this file.
func Kinds() []Kind {
	return []Kind{
		NodeCrash, NodeCrashBeforeStore, NodeCrashAfterStore, WorkerCrashBefore, WorkerCrashDuring, WorkerCrashAfter,
		CommitNotDone, CommitDone, CommitLate, RequestLost, AnswerLost, RequestRepeated, AnswerRepeated, MessageReordered,
		PollAnswerLost, LeaseExpired, HandOverLapsed, WorkerStopped, WorkerStalled, ZombieWoken, LateResult, TimerRepeated,
		ClockJump, NodeStalled, NodeSuspended, ClockDrift, StoreOutage, StoreOutageLong, StoreCut, StoreRefuses, StoreSlow, StaleCache, StoreRestored,
		EvidenceFlood, DoubleClick, WithdrawRace, ExpiryRace, ForeignVote, EventEarly, EventLate, EventRepeated, StartRepeated,
		RelayCrash, SinkDown, SinkUnheard, BadOutput, ServiceFlaky, ProbeUnknown, HeartbeatRace, OperatorRace, CommandAtEnded,
		SweepRepeated, TimerEarly, EventOwn, EventUndelivered, EventLastMoment, RestoreOverslept,
	}
}

// Parse reads a list of faults, separated by commas. "all" is nil, which
// draws some for every seed; "every" is all at once; "none" is none.
func Parse(text string) ([]Kind, error) {
	switch text {
	case "", "all":
		return nil, nil
	case "none":
		return []Kind{}, nil
	case "every":
		return Kinds(), nil
	}
	out := []Kind{}
	for name := range strings.SplitSeq(text, ",") {
		f := Kind(strings.TrimSpace(name))
		if !slices.Contains(Kinds(), f) {
			return nil, fmt.Errorf("sim: there is no fault %q; there are all, every, none, %s", f, Join(Kinds()))
		}
		out = append(out, f)
	}
	return out, nil
}

// Join writes kinds as Parse reads them: with commas between.
func Join(faults []Kind) string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f)
	}
	return strings.Join(names, ",")
}
