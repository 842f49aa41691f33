// Package rabbitmq brings the messages of a RabbitMQ queue to a consumer of
// package inbox, and acknowledges a message only when its work has committed.
//
//	billing, err := inbox.NewConsumer(inbox.Config{DB: db, Name: "billing"})
//	…
//	c, err := rabbitmq.New(rabbitmq.Config{
//		URL: "amqp://127.0.0.1:5672", Queue: "billing",
//		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
//			return billing.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error { … })
//		},
//	})
//	…
//	err = c.Run(ctx)
//
// # What is promised
//
// Every message is received at least once, and the inbox drops what comes again. A
// message whose work failed is kept and received again after a growing pause; it is
// the inbox that ends this, by setting the message aside as poison. A quorum queue
// counts how often it handed a message out, so that one which kills the process is
// set aside too; a classic queue does not count.
//
// Messages come in the order of the queue: one process of all reads it, the others
// stand by and take over when its connection ends, and one message is out at a
// time. Which one reads is decided by a queue that its connection owns,
// "ringi-inbox." and the queue's name; the user needs the right to make it. With Config.Shared several processes read side by side, and the order is
// given up. Several queues, bound to a part of the messages each, are the way to
// have both.
//
// The message id is the property message_id, as package outbox/rabbitmq writes it,
// else the header ce-id. A message with neither cannot be told from its copies and
// is not received: it stays at the head of the queue, and Observe hears of it.
//
// # What the queue's owner must mind
//
// The queue is not declared here. A quorum queue is the one to choose: with
// x-delivery-limit (20 in RabbitMQ 4 unless it is set) it drops or dead-letters
// what was handed out too often, so the limit must be above the attempts of the
// inbox. The broker ends the connection of a consumer that keeps a message longer
// than its consumer_timeout, 30 minutes unless it is set; the message then comes
// again and is received once more.
package rabbitmq
