package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi/outbox/crash"
)

// Sink is one destination. Package outbox/ndjson has files and streams; brokers have packages of
// their own. A relay calls Publish from one goroutine at a time.
type Sink interface {
	// Publish sends messages and returns when each has its answer, or soon
	// after ctx ends. The answer has one entry per message, in their order: nil
	// when the destination acknowledged it durably, as far as it can;
	// an error made by Refuse when it is the message that cannot be delivered;
	// ErrHeld when it was not tried because an earlier one of its key failed;
	// any other error when the destination could not be reached or did not
	// answer. What is not clearly the message's fault is the destination's, so
	// that an outage never turns messages into dead letters. What clearly is the
	// destination's fault, or was not sent because of it, is made by Excuse, and an
	// error that the destination answered to this message by Blame. Of those that
	// got no answer, when others of the call got through, only the first is charged
	// with an attempt.
	//
	// Ordered messages of one key stand in their order and must be accepted in
	// it: after the first failure of a key its later messages are not sent. The
	// id of a message is sent unchanged at every try. Messages are read only.
	Publish(ctx context.Context, msgs []Message) []error
}

// ErrHeld answers for a message that was not sent because an earlier message of
// its key failed in the same call. It costs no attempt.
var ErrHeld = errors.New("outbox: held back behind an earlier message of the same aggregate; it is sent after that one")

// refusal marks an error as the message's own.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// Refuse says that a destination will not take this message as it is, for the
// reason err. The try counts as an attempt. Refuse(nil) is nil.
func Refuse(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err: err}
}

// Refused tells whether err, or one that it wraps, was made by Refuse.
func Refused(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// excuse marks an error as none of the message's.
type excuse struct{ err error }

func (e *excuse) Error() string { return e.err.Error() }
func (e *excuse) Unwrap() error { return e.err }

// Excuse says that the destination, or the part of it that this message needs,
// is down or asks for patience, for the reason err, whatever became of the
// others of the same call. The message is tried again and it costs no attempt.
// Excuse(nil) is nil.
func Excuse(err error) error {
	if err == nil {
		return nil
	}
	return &excuse{err: err}
}

// Excused tells whether err, or one that it wraps, was made by Excuse.
func Excused(err error) bool {
	var e *excuse
	return errors.As(err, &e)
}

// blame marks an error as an answer to this very message.
type blame struct{ err error }

func (b *blame) Error() string { return b.err.Error() }
func (b *blame) Unwrap() error { return b.err }

// Blame says that the destination is there and failed at this very message, for the
// reason err: it answered with an error of its own, which may be its fault or the
// message's. When others get through, the message is charged with an attempt; also
// after a long time in which there was no other (RelayConfig.Doubt). Blame(nil) is
// nil.
func Blame(err error) error {
	if err == nil {
		return nil
	}
	return &blame{err: err}
}

// Blamed tells whether err, or one that it wraps, was made by Blame.
func Blamed(err error) bool {
	var b *blame
	return errors.As(err, &b)
}

// publish calls the sink and makes sure that its answers keep the contract. A
// panic becomes err, and nothing is known about any message of the call then.
func publish(ctx context.Context, sink Sink, msgs []Message) (results []error, err error) {
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("outbox: the sink panicked on a batch of %d messages that begins with %s; they are sent again one by one when their lease ends: %v", len(msgs), msgs[0].ID, p)
		}
	}()
	results = sink.Publish(ctx, msgs)
	crash.At(crash.Published)
	if len(results) != len(msgs) {
		return nil, fmt.Errorf("outbox: the sink gave %d answers for %d messages; it must give one for each, so none is believed", len(results), len(msgs))
	}
	failed := map[Key]bool{}
	for i, err := range results {
		key := msgs[i].Key()
		if errors.Is(err, ErrHeld) && (msgs[i].Seq == 0 || !failed[key]) {
			return nil, fmt.Errorf("outbox: the sink held message %s back, but no earlier message of its aggregate failed; it must try it, so no answer is believed", msgs[i].ID)
		}
		if err != nil && msgs[i].Seq > 0 {
			failed[key] = true
		}
	}
	return results, nil
}
