package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// codeMessageTooLarge and codeHeaderTooLarge are the server's answers to a
	// message that is above a stream's max_msg_size, and to large headers.
	codeMessageTooLarge jetstream.ErrorCode = 10054
	codeHeaderTooLarge  jetstream.ErrorCode = 10097
)

// errSilent is the answer when the server said nothing in time. The message may
// or may not be there.
var errSilent = errors.New("nats: no acknowledgement in time; the message is sent again under its id")

// Publish implements outbox.Sink. It returns when every message has its answer,
// at the latest when ctx or the configured time-out ends.
func (s *Sink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	answers := make([]error, len(msgs))
	for _, wave := range outbox.Waves(msgs, mostPending) {
		s.send(ctx, msgs, wave, answers)
		outbox.HoldBehind(msgs, answers, wave)
	}
	return answers
}

// send publishes one wave and awaits its acknowledgements together. Messages
// that have an answer already are left out.
func (s *Sink) send(ctx context.Context, msgs []outbox.Message, wave []int, answers []error) {
	acks := make(map[int]jetstream.PubAckFuture, len(wave))
	for _, i := range wave {
		if answers[i] != nil {
			continue
		}
		msg := s.message(&msgs[i])
		if err := s.check(msg); err != nil {
			answers[i] = outbox.Refuse(err)
			continue
		}
		if ctx.Err() != nil {
			answers[i] = outbox.Excuse(fmt.Errorf("nats: not sent, the time was over: %w", ctx.Err()))
			continue
		}
		// No tries of the client's own: they could come behind what is sent next.
		ack, err := s.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
		if err != nil {
			answers[i] = judge(msg.Subject, err)
			continue
		}
		acks[i] = ack
	}
	for _, i := range wave {
		if ack := acks[i]; ack != nil {
			answers[i] = await(ctx, ack)
		}
	}
}

func await(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return judge(ack.Msg().Subject, err)
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", errSilent, ctx.Err())
	}
}

// judge tells a message that cannot be delivered from a destination that is down.
func judge(subject string, err error) error {
	var api *jetstream.APIError
	tooLarge := errors.As(err, &api) && (api.ErrorCode == codeMessageTooLarge || api.ErrorCode == codeHeaderTooLarge)
	switch {
	case tooLarge, errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return outbox.Refuse(fmt.Errorf("nats: subject %s: %w", subject, err))
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return outbox.Excuse(fmt.Errorf("nats: subject %s: there is no connection to a server: %w", subject, err))
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return outbox.Excuse(fmt.Errorf("nats: subject %s: no stream listens to it, or it has no leader; create a stream for it: %w", subject, err))
	}
	return fmt.Errorf("nats: subject %s: %w", subject, err)
}
