// Package nats brings the messages of a NATS JetStream stream to a consumer of
// package inbox, and acknowledges a message only when its work has committed.
//
//	billing, err := inbox.NewConsumer(inbox.Config{DB: db, Name: "billing"})
//	…
//	c, err := nats.New(nats.Config{
//		Servers: servers, Stream: "ORDERS", Name: "billing",
//		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
//			return billing.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error { … })
//		},
//	})
//	…
//	err = c.Run(ctx)
//
// # What is promised
//
// Every message is received at least once, and the inbox drops what comes again.
// A message whose work failed is kept and received again after a growing pause;
// it is the inbox that ends this, by setting the message aside as poison. While a
// message is here the server is told so, and does not give it to somebody else.
// The server counts how often it handed a message out, so that one which kills
// the process is set aside too.
//
// Messages come in the order of the stream, because one is out at a time, in all
// processes that share the name. With Config.Pending above 1 several processes
// work side by side, and the order is given up. Several consumers, each with
// subjects of its own, are the way to have both.
//
// The message id is the header Nats-Msg-Id, as package outbox writes it, else
// ce-id, as CloudEvents has it. A message with neither is known by its place in
// the stream, which covers redelivery by NATS but not a message that was sent
// twice after the stream's duplicate window.
package nats
