package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/inbox"
)

// Names under which a delivery's headers have what is not a header in NATS.
const (
	HeaderSubject = "nats-subject"
	HeaderPlace   = "nats-place" // stream/sequence

	headerEvent = "ce-id"
)

// Round waits a while for a message, receives it until it is done or set aside,
// and acknowledges it. The error is the server's; a failure of the work is none.
func (c *Consumer) Round(ctx context.Context) error {
	if err := c.join(ctx); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	// One at a time: what was fetched and waits here would look like work.
	batch, err := c.from.Fetch(1, jetstream.FetchContext(waiting))
	if err != nil {
		return c.lost(err)
	}
	for msg := range batch.Messages() {
		if err := c.receive(ctx, msg); err != nil {
			return err
		}
	}
	if err := batch.Error(); err != nil && waiting.Err() == nil {
		return c.lost(err)
	}
	return nil
}

// join makes the durable consumer, or brings it up to date.
func (c *Consumer) join(ctx context.Context) error {
	if c.from != nil {
		return nil
	}
	from, err := c.js.CreateOrUpdateConsumer(ctx, c.cfg.Stream, jetstream.ConsumerConfig{
		Durable: c.cfg.Name, FilterSubjects: c.cfg.Subjects, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: c.cfg.AckWait, MaxAckPending: c.cfg.Pending,
		MaxDeliver: -1, // the inbox decides when it is enough, and keeps the message
	})
	if err != nil {
		return fmt.Errorf("nats: consumer %s of stream %s: %w", c.cfg.Name, c.cfg.Stream, err)
	}
	c.from = from
	return nil
}

// lost has the consumer made anew before the next fetch; somebody may have
// deleted it.
func (c *Consumer) lost(err error) error {
	c.from = nil
	return fmt.Errorf("nats: fetch from stream %s: %w", c.cfg.Stream, err)
}

// receive does the work of one message, again and again while it fails, and then
// acknowledges it.
func (c *Consumer) receive(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("nats: message on %s: %w", msg.Subject(), err)
	}
	quiet := c.keep(msg)
	d := delivery(msg, meta)
	outcome, _ := c.receiver().Insist(ctx, d, nil) // its error was observed
	quiet()
	if outcome == inbox.Failed {
		err = msg.Nak() // we are stopping; somebody else may have it at once
	} else {
		err = msg.Ack()
	}
	if err != nil {
		return fmt.Errorf("nats: answer for message %s: %w", d.ID, err)
	}
	return nil
}

// keep says signs of life for a message until stop is called.
func (c *Consumer) keep(msg jetstream.Msg) (stop func()) {
	quiet, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(c.cfg.AckWait / signs)
		defer ticker.Stop()
		for {
			select {
			case <-quiet:
				return
			case <-ticker.C:
				// A sign that got lost costs a second delivery, which is dropped.
				_ = msg.InProgress()
			}
		}
	}()
	return func() {
		close(quiet)
		<-ended
	}
}

// delivery is a message as the inbox takes it. Of several values of one header
// the first counts.
func delivery(msg jetstream.Msg, meta *jetstream.MsgMetadata) inbox.Delivery {
	place := fmt.Sprintf("%s/%d", meta.Stream, meta.Sequence.Stream)
	headers := make(map[string]string, len(msg.Headers())+2)
	for name, values := range msg.Headers() {
		headers[name] = values[0]
	}
	d := inbox.Delivery{ID: place, Body: msg.Data(), Headers: headers, Attempt: int(min(meta.NumDelivered, 1<<30))}
	for _, name := range []string{jetstream.MsgIDHeader, headerEvent} {
		if id := headers[name]; inbox.Usable(id) {
			d.ID = id
			break
		}
	}
	headers[HeaderSubject], headers[HeaderPlace] = msg.Subject(), place
	return d
}
