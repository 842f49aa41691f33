package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/outbox"
)

// errSilent is the answer when the broker said nothing in time. The message may
// or may not be there.
var errSilent = errors.New("rabbitmq: no confirmation in time; the message is sent again under its id")

// Publish implements outbox.Sink. It returns when every message has its answer,
// at the latest when ctx or the configured time-out ends.
func (s *Sink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	answers := make([]error, len(msgs))
	l, err := s.connect(ctx)
	if err != nil {
		for i := range answers {
			answers[i] = err
		}
		hold(msgs, answers)
		return answers
	}
	// A broker that takes nothing reads nothing, and a write knows nothing of ctx.
	stop := context.AfterFunc(ctx, func() { _ = l.raw.Close() })
	defer stop()
	for _, wave := range outbox.Waves(msgs, mostPending) {
		s.send(ctx, l, msgs, wave, answers)
		outbox.HoldBehind(msgs, answers, wave)
	}
	if ctx.Err() != nil || l.channel.IsClosed() {
		s.drop() // nothing of it may come behind what is sent next
	}
	return answers
}

// hold leaves the failure to the first message of each key.
func hold(msgs []outbox.Message, answers []error) {
	for _, wave := range outbox.Waves(msgs, len(msgs)) {
		outbox.HoldBehind(msgs, answers, wave)
	}
}

// send publishes one wave and awaits its confirmations together. Messages that
// have an answer already are left out.
func (s *Sink) send(ctx context.Context, l *link, msgs []outbox.Message, wave []int, answers []error) {
	confirms := make(map[int]*amqp.DeferredConfirmation, len(wave))
	var broken error
	for _, i := range wave {
		if answers[i] != nil {
			continue
		}
		m := &msgs[i]
		key, publishing := s.cfg.Key(m), s.publishing(m)
		if err := s.check(key, m); err != nil {
			answers[i] = outbox.Refuse(err)
			continue
		}
		if broken == nil && ctx.Err() == nil {
			confirms[i], broken = l.channel.PublishWithDeferredConfirm(s.cfg.Exchange, key, true, false, publishing)
			if broken == nil {
				continue
			}
		}
		answers[i] = outbox.Excuse(fmt.Errorf("rabbitmq: not sent, the connection or the time was over: %w", errors.Join(broken, ctx.Err())))
	}
	unroutable := map[string]amqp.Return{}
	for _, i := range wave {
		confirm := confirms[i]
		if confirm == nil {
			continue
		}
		select {
		case <-confirm.Done():
			// What was returned came before its confirmation.
			l.returned(unroutable)
			answers[i] = s.answer(l, confirm, unroutable[msgs[i].ID])
		case <-ctx.Done():
			answers[i] = s.late(ctx)
		}
	}
}

// returned adds the messages that came back, by their ids.
func (l *link) returned(to map[string]amqp.Return) {
	for {
		select {
		case r, open := <-l.returns:
			if !open {
				return
			}
			to[r.MessageId] = r
		default:
			return
		}
	}
}

func (s *Sink) answer(l *link, confirm *amqp.DeferredConfirmation, back amqp.Return) error {
	switch {
	case back.MessageId != "":
		return outbox.Excuse(fmt.Errorf("rabbitmq: no queue takes messages of exchange %q with the key %q (%s); declare a queue, or bind one", back.Exchange, back.RoutingKey, back.ReplyText))
	case confirm.Acked():
		return nil
	case !l.channel.IsClosed():
		return outbox.Excuse(errors.New("rabbitmq: the broker refused it; a queue is full, or too few of its replicas are there"))
	}
	return l.why()
}

// why says why the channel ended. What the broker says against the place is the
// destination's fault; a connection that broke leaves it open who has what.
func (l *link) why() error {
	select {
	case said, open := <-l.ended:
		if open {
			l.said = said
		}
	default:
	}
	if l.said == nil {
		return errors.New("rabbitmq: the connection broke before the confirmation; the message is sent again under its id")
	}
	err := fmt.Errorf("rabbitmq: the broker ended the connection before the confirmation: %w", l.said)
	switch l.said.Code {
	case amqp.NotFound, amqp.AccessRefused, amqp.NotAllowed, amqp.ResourceLocked, amqp.ConnectionForced:
		return outbox.Excuse(err)
	}
	return err
}

// late is the answer when the time is over.
func (s *Sink) late(ctx context.Context) error {
	if reason := s.whyBlocked(); reason != "" {
		return outbox.Excuse(fmt.Errorf("rabbitmq: the broker takes no messages now: %s", reason))
	}
	return fmt.Errorf("%w (%w)", errSilent, context.Cause(ctx))
}
