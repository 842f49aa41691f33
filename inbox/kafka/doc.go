// Package kafka brings the records of Apache Kafka to a consumer of package
// inbox, and commits an offset only when the work of its record has committed.
//
//	billing, err := inbox.NewConsumer(inbox.Config{DB: db, Name: "billing"})
//	…
//	c, err := kafka.New(kafka.Config{
//		Brokers: brokers, Group: "billing", Topics: []string{"outbox.event.Order"},
//		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
//			return billing.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error { … })
//		},
//	})
//	…
//	err = c.Run(ctx)
//
// # What is promised
//
// Every record is received at least once, and the inbox drops what comes again.
// Records of a partition are received in their order, one after the other, those
// of different partitions side by side. A record whose work failed is received
// again after a growing pause, and those behind it in its partition wait; it is
// the inbox that ends this, by setting the message aside as poison.
//
// The message id is the header id, as package outbox and Debezium's router write
// it, else ce_id, as CloudEvents has it. A record with neither is known by its
// place (topic, partition, offset), which covers redelivery by Kafka but not a
// message that was sent twice.
//
// # What to set
//
// A consumer may be rewound over everything that the topic still holds, so keep
// ids as long as the topic keeps records. Kafka does not count deliveries: a
// record that kills the process other than by a panic is not counted as a failure,
// and comes again at every start until somebody skips it.
package kafka
