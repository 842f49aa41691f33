package ringi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// FirstFormat is the format that every program reads: what a node writes until it
// knows that more is allowed.
const FirstFormat = 1

type body struct {
	Format int         `json:"format"`
	Events []bodyEvent `json:"events"`
}

type bodyEvent struct {
	At   int64           `json:"at"` // microseconds since the epoch
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// EncodeEvents makes the bytes of one log row in this program's own Format: the
// events of one transition, as they are hashed and kept for ever. Their
// sequences follow from the sequence of the first, which is the row's key.
func EncodeEvents(events []Event) ([]byte, error) { return EncodeEventsIn(Format, events) }

// EncodeEventsIn is EncodeEvents in an older format, for stores that older
// programs read too. A format that this program does not know is an error.
func EncodeEventsIn(format int, events []Event) ([]byte, error) {
	if format < FirstFormat || format > Format {
		return nil, fmt.Errorf("ringi: events cannot be written in format %d; this program writes %d to %d", format, FirstFormat, Format)
	}
	var b bytes.Buffer
	b.Grow(encodedBytes * len(events))
	enc := plainEncoder(&b)
	b.WriteString(`{"format":`)
	b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(format), 10))
	b.WriteString(`,"events":[`)
	for i, e := range events {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"at":`)
		b.Write(strconv.AppendInt(b.AvailableBuffer(), e.At.UnixMicro(), 10))
		b.WriteString(`,"kind":"` + KindOf(e.Fact) + `","data":`)
		if err := enc.Encode(e.Fact); err != nil {
			return nil, fmt.Errorf("ringi: encode event %d (%s): %w", e.Seq, KindOf(e.Fact), err)
		}
		b.Truncate(b.Len() - 1) // the line break that the encoder ends with
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return b.Bytes(), nil
}

// encodedBytes is what most events take at most.
const encodedBytes = 512

// plainEncoder writes JSON as it is meant: without the escapes that HTML would
// want, so that a payload that was compact stays the same, byte for byte.
func plainEncoder(to io.Writer) *json.Encoder {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc
}

func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := plainEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// ErrNewer says that a body has a format which only a newer program reads.
var ErrNewer = errors.New("a newer one is needed")

// DecodeEvents reads a log row whose first event has the sequence first. A
// body of a newer format, an unknown kind or broken bytes are an error: the
// run must be left alone, not guessed at.
func DecodeEvents(first int64, raw []byte) ([]Event, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("ringi: log row %d cannot be read: %w", first, err)
	}
	if b.Format > Format || b.Format < FirstFormat {
		return nil, fmt.Errorf("ringi: log row %d has format %d; this program reads up to %d, %w", first, b.Format, Format, ErrNewer)
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
func EncodeState(s *State) ([]byte, error) { return plain(s) }

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

func decodeFact(kind string, raw []byte) (Fact, error) {
	decode, ok := decoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	return decode(raw)
}

// decoders knows every kind that was ever written.
// constant: filled here and only read.
var decoders = map[string]func([]byte) (Fact, error){
	"RunStarted":        fact[RunStarted],
	"ActivityScheduled": fact[ActivityScheduled],
	"ActivityRetried":   fact[ActivityRetried],
	"ActivityStarted":   fact[ActivityStarted],
	"ActivitySucceeded": fact[ActivitySucceeded],
	"ActivityFailed":    fact[ActivityFailed],
	"ActivityTimedOut":  fact[ActivityTimedOut],
	"ActivityAwaited":   fact[ActivityAwaited],
	"ActivityWithdrawn": fact[ActivityWithdrawn],
	"ProbeAnswered":     fact[ProbeAnswered],
	"OutcomeUnknown":    fact[OutcomeUnknown],
	"StepOpened":        fact[StepOpened],
	"StepEnded":         fact[StepEnded],
	"StepReopened":      fact[StepReopened],
	"ScopeOpened":       fact[ScopeOpened],
	"ScopeClosed":       fact[ScopeClosed],
	"ScopeHalted":       fact[ScopeHalted],
	"FailureCaught":     fact[FailureCaught],
	"VarsSet":           fact[VarsSet],
	"MessageEmitted":    fact[MessageEmitted],
	"TimerSet":          fact[TimerSet],
	"TimerFired":        fact[TimerFired],
	"WaitOpened":        fact[WaitOpened],
	"EventReceived":     fact[EventReceived],
	"ApprovalOpened":    fact[ApprovalOpened],
	"DecisionRecorded":  fact[DecisionRecorded],
	"DecisionWithdrawn": fact[DecisionWithdrawn],
	"UndoRegistered":    fact[UndoRegistered],
	"UndoSettled":       fact[UndoSettled],
	"UndoReplaced":      fact[UndoReplaced],
	"CancelRequested":   fact[CancelRequested],
	"UnwindStarted":     fact[UnwindStarted],
	"IncidentOpened":    fact[IncidentOpened],
	"IncidentResolved":  fact[IncidentResolved],
	"RunPaused":         fact[RunPaused],
	"RunResumed":        fact[RunResumed],
	"LateResult":        fact[LateResult],
	"EvidenceCounted":   fact[EvidenceCounted],
	"LateEffectFound":   fact[LateEffectFound],
	"RunEnded":          fact[RunEnded],
}
