package ringi

import (
	"encoding/json"
	"fmt"
	"time"
)

// Format is the format of event bodies and snapshots that this program
// writes. It reads this one and all older ones, and leaves a run alone whose
// log holds a newer one.
const Format = 1

type body struct {
	Format int         `json:"format"`
	Events []bodyEvent `json:"events"`
}

type bodyEvent struct {
	At   int64           `json:"at"` // microseconds since the epoch
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// EncodeEvents makes the bytes of one log row: the events of one transition,
// as they are hashed and kept for ever. Their sequences follow from the
// sequence of the first, which is the row's key.
func EncodeEvents(events []Event) ([]byte, error) {
	b := body{Format: Format, Events: make([]bodyEvent, len(events))}
	for i, e := range events {
		data, err := json.Marshal(e.Fact)
		if err != nil {
			return nil, fmt.Errorf("ringi: encode event %d (%s): %w", e.Seq, KindOf(e.Fact), err)
		}
		b.Events[i] = bodyEvent{At: e.At.UnixMicro(), Kind: KindOf(e.Fact), Data: data}
	}
	return json.Marshal(b)
}

// DecodeEvents reads a log row whose first event has the sequence first. A
// body of a newer format, an unknown kind or broken bytes are an error: the
// run must be left alone, not guessed at.
func DecodeEvents(first int64, raw []byte) ([]Event, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("ringi: log row %d cannot be read: %w", first, err)
	}
	if b.Format > Format || b.Format < 1 {
		return nil, fmt.Errorf("ringi: log row %d has format %d; this program reads up to %d, a newer one is needed", first, b.Format, Format)
	}
	events := make([]Event, len(b.Events))
	for i, e := range b.Events {
		fact, err := decodeFact(e.Kind, e.Data)
		if err != nil {
			return nil, fmt.Errorf("ringi: event %d cannot be read: %w", first+int64(i), err)
		}
		events[i] = Event{Seq: first + int64(i), At: time.UnixMicro(e.At).UTC(), Fact: fact}
	}
	return events, nil
}

// EncodeState makes a snapshot.
func EncodeState(s *State) ([]byte, error) { return json.Marshal(s) }

// DecodeState reads a snapshot that EncodeState made in the same Format.
func DecodeState(raw []byte) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("ringi: snapshot cannot be read: %w", err)
	}
	return s, nil
}

func fact[F Fact](raw []byte) (Fact, error) {
	var f F
	err := json.Unmarshal(raw, &f)
	return f, err
}

// KindOf names a fact as it stands in the log: the name of its struct.
func KindOf(f Fact) string {
	switch f.(type) {
	case RunStarted:
		return "RunStarted"
	case ActivityScheduled:
		return "ActivityScheduled"
	case ActivityRetried:
		return "ActivityRetried"
	case ActivityStarted:
		return "ActivityStarted"
	case ActivitySucceeded:
		return "ActivitySucceeded"
	case ActivityFailed:
		return "ActivityFailed"
	case ActivityTimedOut:
		return "ActivityTimedOut"
	case ActivityAwaited:
		return "ActivityAwaited"
	case ActivityWithdrawn:
		return "ActivityWithdrawn"
	case ProbeAnswered:
		return "ProbeAnswered"
	case OutcomeUnknown:
		return "OutcomeUnknown"
	case StepOpened:
		return "StepOpened"
	case StepEnded:
		return "StepEnded"
	case StepReopened:
		return "StepReopened"
	case ScopeOpened:
		return "ScopeOpened"
	case ScopeClosed:
		return "ScopeClosed"
	case ScopeHalted:
		return "ScopeHalted"
	case FailureCaught:
		return "FailureCaught"
	case VarsSet:
		return "VarsSet"
	case MessageEmitted:
		return "MessageEmitted"
	case TimerSet:
		return "TimerSet"
	case TimerFired:
		return "TimerFired"
	case WaitOpened:
		return "WaitOpened"
	case EventReceived:
		return "EventReceived"
	case ApprovalOpened:
		return "ApprovalOpened"
	case DecisionRecorded:
		return "DecisionRecorded"
	case DecisionWithdrawn:
		return "DecisionWithdrawn"
	case UndoRegistered:
		return "UndoRegistered"
	case UndoSettled:
		return "UndoSettled"
	case UndoReplaced:
		return "UndoReplaced"
	case CancelRequested:
		return "CancelRequested"
	case UnwindStarted:
		return "UnwindStarted"
	case IncidentOpened:
		return "IncidentOpened"
	case IncidentResolved:
		return "IncidentResolved"
	case RunPaused:
		return "RunPaused"
	case RunResumed:
		return "RunResumed"
	case LateResult:
		return "LateResult"
	case EvidenceCounted:
		return "EvidenceCounted"
	case LateEffectFound:
		return "LateEffectFound"
	case RunEnded:
		return "RunEnded"
	}
	return ""
}

func decodeFact(kind string, raw []byte) (Fact, error) {
	switch kind {
	case "RunStarted":
		return fact[RunStarted](raw)
	case "ActivityScheduled":
		return fact[ActivityScheduled](raw)
	case "ActivityRetried":
		return fact[ActivityRetried](raw)
	case "ActivityStarted":
		return fact[ActivityStarted](raw)
	case "ActivitySucceeded":
		return fact[ActivitySucceeded](raw)
	case "ActivityFailed":
		return fact[ActivityFailed](raw)
	case "ActivityTimedOut":
		return fact[ActivityTimedOut](raw)
	case "ActivityAwaited":
		return fact[ActivityAwaited](raw)
	case "ActivityWithdrawn":
		return fact[ActivityWithdrawn](raw)
	case "ProbeAnswered":
		return fact[ProbeAnswered](raw)
	case "OutcomeUnknown":
		return fact[OutcomeUnknown](raw)
	case "StepOpened":
		return fact[StepOpened](raw)
	case "StepEnded":
		return fact[StepEnded](raw)
	case "StepReopened":
		return fact[StepReopened](raw)
	case "ScopeOpened":
		return fact[ScopeOpened](raw)
	case "ScopeClosed":
		return fact[ScopeClosed](raw)
	case "ScopeHalted":
		return fact[ScopeHalted](raw)
	case "FailureCaught":
		return fact[FailureCaught](raw)
	case "VarsSet":
		return fact[VarsSet](raw)
	case "MessageEmitted":
		return fact[MessageEmitted](raw)
	}
	return decodeLaterFact(kind, raw)
}

func decodeLaterFact(kind string, raw []byte) (Fact, error) {
	switch kind {
	case "TimerSet":
		return fact[TimerSet](raw)
	case "TimerFired":
		return fact[TimerFired](raw)
	case "WaitOpened":
		return fact[WaitOpened](raw)
	case "EventReceived":
		return fact[EventReceived](raw)
	case "ApprovalOpened":
		return fact[ApprovalOpened](raw)
	case "DecisionRecorded":
		return fact[DecisionRecorded](raw)
	case "DecisionWithdrawn":
		return fact[DecisionWithdrawn](raw)
	case "UndoRegistered":
		return fact[UndoRegistered](raw)
	case "UndoSettled":
		return fact[UndoSettled](raw)
	case "UndoReplaced":
		return fact[UndoReplaced](raw)
	case "CancelRequested":
		return fact[CancelRequested](raw)
	case "UnwindStarted":
		return fact[UnwindStarted](raw)
	case "IncidentOpened":
		return fact[IncidentOpened](raw)
	case "IncidentResolved":
		return fact[IncidentResolved](raw)
	case "RunPaused":
		return fact[RunPaused](raw)
	case "RunResumed":
		return fact[RunResumed](raw)
	case "LateResult":
		return fact[LateResult](raw)
	case "EvidenceCounted":
		return fact[EvidenceCounted](raw)
	case "LateEffectFound":
		return fact[LateEffectFound](raw)
	case "RunEnded":
		return fact[RunEnded](raw)
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}
