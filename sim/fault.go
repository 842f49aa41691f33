package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Fault names a way in which the world breaks. A fault is counted when it
// strikes, not when it is rolled: a lost message that nobody sent, or a restore
// of a database that has not changed, is none.
type Fault string

// The faults.
const (
	NodeCrash            Fault = "node_crash"               // between two rounds
	NodeCrashBeforeStore Fault = "node_crash_before_store"  // inside a round, before its call reaches the store
	NodeCrashAfterStore  Fault = "node_crash_after_store"   // inside a round, when the store has done it
	WorkerCrashBefore    Fault = "worker_crash_before_call" // the task is taken, or permitted, and not called
	WorkerCrashDuring    Fault = "worker_crash_during_call" // the call is out
	WorkerCrashAfter     Fault = "worker_crash_after_call"  // the answer is there and not reported
	CommitNotDone        Fault = "commit_doubt_not_done"    // nobody knows, and it was not
	CommitDone           Fault = "commit_doubt_done"        // nobody knows, and it was
	CommitLate           Fault = "commit_doubt_late"        // nobody knows, and it is done afterwards
	RequestLost          Fault = "request_lost"             // on its way to a node
	AnswerLost           Fault = "answer_lost"              // on its way back
	RequestRepeated      Fault = "request_repeated"         // delivered twice
	AnswerRepeated       Fault = "answer_repeated"          // delivered twice
	MessageReordered     Fault = "message_reordered"        // overtaken by a later one of its sender
	PollAnswerLost       Fault = "poll_answer_lost"         // with tasks in it
	LeaseExpired         Fault = "lease_expired"            // an attempt was given up because nobody extended its lease
	HandOverLapsed       Fault = "hand_over_lapsed"         // a task was given back that nobody confirmed
	WorkerStalled        Fault = "worker_stalled"           // a worker stands still with tasks in its hands
	ZombieWoken          Fault = "zombie_woken"             // it goes on although an attempt was given up meanwhile
	LateResult           Fault = "late_result"              // a result came for an attempt that was given up
	TimerRepeated        Fault = "timer_repeated"           // the same timer was handed to two firings
	ClockJump            Fault = "clock_jump"               // of the database, forward or back
	NodeStalled          Fault = "node_stalled"             // a node stands still, and its clock goes on
	NodeSuspended        Fault = "node_suspended"           // a node stands still, and so does its clock
	ClockDrift           Fault = "clock_drift"              // a node's clock runs at another speed
	StoreOutage          Fault = "store_outage"             // for all nodes
	StoreOutageLong      Fault = "store_outage_long"        // longer than a work lease, while the worker lives
	StoreCut             Fault = "store_cut"                // for one node
	StoreRefuses         Fault = "store_refuses"            // one call
	StoreSlow            Fault = "store_slow"               // a call takes time, in which others go on
	StaleCache           Fault = "stale_cache"              // a node decided on a state that another had moved on
	StoreRestored        Fault = "store_restored"           // to an earlier state
	EvidenceFlood        Fault = "evidence_flood"           // a worker repeats a late result a thousand times
	DoubleClick          Fault = "approval_double_click"    // the same vote twice
	WithdrawRace         Fault = "approval_withdraw_race"   // a vote is withdrawn while others vote
	ExpiryRace           Fault = "approval_expiry_race"     // a vote at the moment of the expiry
	ForeignVote          Fault = "approval_foreign_vote"    // by somebody who may not
	EventEarly           Fault = "event_early"              // consumed by a wait that opened after it was sent
	EventLate            Fault = "event_late"               // sent after the wait for it was over
	EventRepeated        Fault = "event_repeated"           // sent again under its id
	StartRepeated        Fault = "start_repeated"           // of a key that is taken
	RelayCrash           Fault = "relay_crash"              // with claimed messages
	SinkDown             Fault = "sink_down"                // the broker does not answer
	SinkUnheard          Fault = "sink_answer_lost"         // the broker has the message, its answer got lost
	BadOutput            Fault = "bad_output"               // an activity answers what its schema forbids
	ServiceFlaky         Fault = "service_flaky"            // a call fails and nobody knows whether it took place
	ProbeUnknown         Fault = "probe_unknown"            // a service does not know what became of a call
	HeartbeatRace        Fault = "heartbeat_race"           // a lease is extended at the moment at which it is looked at as lost
	OperatorRace         Fault = "operator_race"            // a run is paused, resumed or cancelled at the moment at which something of it is due
	CommandAtEnded       Fault = "command_at_ended_run"     // an operator is too late
	SweepRepeated        Fault = "sweep_repeated"           // what a sweep found is acted on once more, perhaps minutes later
	TimerEarly           Fault = "timer_early"              // a timer is fired before its time
)

// Faults lists every fault, in the order of this file.
func Faults() []Fault {
	return []Fault{
		NodeCrash, NodeCrashBeforeStore, NodeCrashAfterStore, WorkerCrashBefore, WorkerCrashDuring, WorkerCrashAfter,
		CommitNotDone, CommitDone, CommitLate, RequestLost, AnswerLost, RequestRepeated, AnswerRepeated, MessageReordered,
		PollAnswerLost, LeaseExpired, HandOverLapsed, WorkerStalled, ZombieWoken, LateResult, TimerRepeated,
		ClockJump, NodeStalled, NodeSuspended, ClockDrift, StoreOutage, StoreOutageLong, StoreCut, StoreRefuses, StoreSlow, StaleCache, StoreRestored,
		EvidenceFlood, DoubleClick, WithdrawRace, ExpiryRace, ForeignVote, EventEarly, EventLate, EventRepeated, StartRepeated,
		RelayCrash, SinkDown, SinkUnheard, BadOutput, ServiceFlaky, ProbeUnknown, HeartbeatRace, OperatorRace, CommandAtEnded,
		SweepRepeated, TimerEarly,
	}
}

// ParseFaults reads a list of faults, separated by commas. "all" is nil, which
// draws some for every seed; "every" is all at once; "none" is none.
func ParseFaults(text string) ([]Fault, error) {
	switch text {
	case "", "all":
		return nil, nil
	case "none":
		return []Fault{}, nil
	case "every":
		return Faults(), nil
	}
	out := []Fault{}
	for name := range strings.SplitSeq(text, ",") {
		f := Fault(strings.TrimSpace(name))
		if !slices.Contains(Faults(), f) {
			return nil, fmt.Errorf("sim: there is no fault %q; there are all, every, none, %s", f, joined(Faults()))
		}
		out = append(out, f)
	}
	return out, nil
}

func joined(faults []Fault) string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f)
	}
	return strings.Join(names, ",")
}

// drawFaults picks what may strike under a seed: every other fault, as strong
// as drawn, so that a rare fault is not always hidden behind a loud one.
func drawFaults(d *dice, of []Fault) map[Fault]float64 {
	strength := map[Fault]float64{}
	for _, f := range Faults() {
		drawn, much := d.hit(0.55), one(d, 0.5, 1, 1, 2)
		switch {
		case of == nil && drawn:
			strength[f] = much
		case slices.Contains(of, f):
			strength[f] = 1
		}
	}
	return strength
}

// strikes draws whether a fault strikes now. The caller says struck once it has
// an effect.
func (w *world) strikes(f Fault, p float64) bool {
	if w.calm || w.strength[f] == 0 {
		return false
	}
	return w.faults.hit(p*w.strength[f]) && w.allowed()
}

// struck counts a fault and tells it.
func (w *world) struck(f Fault, format string, args ...any) {
	w.count.faults[string(f)]++
	w.trace("! ", string(f))
	w.tell("fault "+string(f)+": "+format, args...)
}

// allowed gives the next perturbation its number and says whether it may take
// place; shrinking leaves some out.
func (w *world) allowed() bool {
	w.ordinal++
	return !w.options.Skip.has(w.ordinal)
}
