package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/inbox"
)

// Names under which a delivery's headers have what is not a header in RabbitMQ.
const (
	HeaderExchange = "rabbitmq-exchange"
	HeaderKey      = "rabbitmq-key" // the routing key
	HeaderType     = "rabbitmq-type"

	headerEvent = "ce-id"
	// headerCount is how often a quorum queue handed the message out before.
	headerCount = "x-delivery-count"
)

// ErrStandsBy says that another process reads the queue: this one does when that one
// ends.
var ErrStandsBy = errors.New("another process reads it; this one stands by")

// lockPrefix is how the queue begins whose owner may read another queue.
const lockPrefix = "ringi-inbox."

// Round waits for a message, receives it until it is done or set aside, and
// acknowledges it. It returns nil when ctx ends. The error is the broker's, or
// says that another process reads the queue; a failure of the work is none.
func (c *Consumer) Round(ctx context.Context) error {
	if err := c.join(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case d, open := <-c.from:
		if !open {
			return c.lost(errors.New("the broker ended the subscription"))
		}
		return c.receive(ctx, d)
	}
}

// join connects and subscribes to the queue.
func (c *Consumer) join(ctx context.Context) error {
	if c.from != nil {
		return nil
	}
	if err := c.connect(ctx); err != nil {
		return fmt.Errorf("rabbitmq: connect: %w", err)
	}
	channel, err := c.conn.Channel()
	if err == nil && !c.cfg.Shared {
		err = c.lock(channel)
	}
	if err == nil && c.cfg.Declare {
		_, err = channel.QueueDeclare(c.cfg.Queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	}
	if err == nil {
		err = channel.Qos(1, 0, false) // what waits here would look like work
	}
	if err == nil {
		c.from, err = channel.Consume(c.cfg.Queue, "", false, false, false, false, nil)
	}
	if err != nil {
		return c.lost(err)
	}
	return nil
}

// lock makes this connection the only reader of the queue: it owns another queue,
// which the broker removes with the connection and gives to nobody else before. The
// exclusive consumers of RabbitMQ are not asked for, since quorum queues allow
// several.
func (c *Consumer) lock(channel *amqp.Channel) error {
	_, err := channel.QueueDeclare(lockPrefix+c.cfg.Queue, false, true, true, false, nil)
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.ResourceLocked {
		return ErrStandsBy
	}
	return err
}

func (c *Consumer) connect(ctx context.Context) (err error) {
	if c.conn != nil && !c.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	stop := func() bool { return true }
	defer func() { stop() }()
	c.conn, err = amqp.DialConfig(c.cfg.URL, amqp.Config{
		Heartbeat: heartbeat, TLSClientConfig: c.cfg.TLS, Properties: amqp.Table{"connection_name": "ringi-inbox"},
		Dial: func(network, address string) (net.Conn, error) {
			var d net.Dialer
			raw, err := d.DialContext(ctx, network, address)
			if err == nil {
				stop = context.AfterFunc(ctx, func() { _ = raw.Close() }) // what follows knows nothing of ctx
			}
			return raw, err
		},
	})
	if err != nil {
		c.conn = nil
	}
	return err
}

// lost has the connection made anew before the next message, so that nothing of
// the old one is left at the broker.
func (c *Consumer) lost(err error) error {
	c.from = nil
	if c.conn != nil && !c.conn.IsClosed() {
		_ = c.conn.Close() // it is of no use any more
	}
	c.conn = nil
	return fmt.Errorf("rabbitmq: queue %s: %w", c.cfg.Queue, err)
}

// receive does the work of one message, again and again while it fails, and then
// acknowledges it.
func (c *Consumer) receive(ctx context.Context, msg amqp.Delivery) error {
	d := delivery(&msg)
	outcome, err := c.receiver().Insist(ctx, d, func() bool { return !c.conn.IsClosed() })
	if outcome == inbox.Failed {
		// Somebody else may have it at once. An answer that gives it back would bring
		// the next one here.
		return c.lost(fmt.Errorf("message %s is given back: %w", d.ID, errors.Join(ctx.Err(), err)))
	}
	if err := msg.Ack(false); err != nil {
		return c.lost(fmt.Errorf("answer for message %s: %w", d.ID, err))
	}
	return nil
}

// delivery is a message as the inbox takes it. Headers that are not text are
// written as Go prints them.
func delivery(msg *amqp.Delivery) inbox.Delivery {
	headers := make(map[string]string, len(msg.Headers)+3)
	for name, value := range msg.Headers {
		headers[name] = fmt.Sprint(value)
	}
	d := inbox.Delivery{Body: msg.Body, Headers: headers, Attempt: attempt(msg.Headers[headerCount])}
	for _, id := range []string{msg.MessageId, headers[headerEvent]} {
		if inbox.Usable(id) {
			d.ID = id
			break
		}
	}
	headers[HeaderExchange], headers[HeaderKey], headers[HeaderType] = msg.Exchange, msg.RoutingKey, msg.Type
	return d
}

// attempt counts from 1; 0 is not known.
func attempt(before any) int {
	switch n := before.(type) {
	case int64:
		return int(min(n, 1<<30)) + 1
	case int32:
		return int(min(n, 1<<30)) + 1
	}
	return 0
}
