// Package redis brings the entries of a Redis stream to a consumer of package
// inbox, and acknowledges an entry only when its work has committed.
//
//	billing, err := inbox.NewConsumer(inbox.Config{DB: db, Name: "billing"})
//	…
//	c, err := redis.New(redis.Config{
//		URL: "redis://127.0.0.1:6379", Stream: "outbox.event.Order", Name: "billing",
//		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
//			return billing.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error { … })
//		},
//	})
//	…
//	err = c.Run(ctx)
//
// # What is promised
//
// Every entry is received at least once, and the inbox drops what comes again. An
// entry whose work failed is kept and received again after a growing pause; it is
// the inbox that ends this, by setting the message aside as poison. While an entry
// is here the server is told so, and nobody else takes it. The server counts how
// often an entry was handed out, so that one which kills the process is set aside
// too.
//
// Entries come in the order of the stream, because one is out at a time, in all
// processes that share the name: who asks for the next is given an entry that was
// left, or a new one if none is out, in one step of the server. With
// Config.Pending above 1 several processes work side by side, and the order is
// given up.
//
// The message id is the field ce-id, as package outbox/redis writes it. An entry
// without one is known by its place in the stream, which covers redelivery by
// Redis but not a message that was sent twice.
//
// An entry stays in the stream when it was acknowledged; trimming is the stream's
// owner's business. What was trimmed before it was read is lost, and Redis does
// not tell.
package redis
