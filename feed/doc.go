// Package feed brings messages of brokers into ringi, as events that runs wait for
// and as starts of runs: the way back of package relay.
//
// A file says what comes from where and becomes what (Parse):
//
//	feeds:
//	  - name: payments
//	    from: kafka://kafka-1:9092?topic=shop.payment
//	    when: message.type == "payment.received"
//	    event: payment.received
//	    key: ${ message.data.order_id }
//	  - name: orders
//	    from: nats://nats-1:4222?stream=ORDERS&subject=orders.placed
//	    start: order_fulfilment
//	    input: ${ message.data }
//
// # What is promised
//
// A message is acknowledged to its broker when ringi has committed what became of it,
// and not before. It may be received again, from a crash or because somebody rewound
// the broker: ringi knows a repeat of an event by the message's id for as long as it
// keeps events, and a repeat of a start by its start key for as long as it keeps the
// run. So each message has one effect, and the inbox of ringi is ringi itself.
//
// Messages are given to ringi in the order in which the broker has them for a key:
// one after the other, in Kafka those of each partition. When ringi is away or asks
// for patience, nothing is received meanwhile and nothing is counted. A message that
// ringi refuses is tried again, with growing pauses, while those behind it wait; then,
// or at once if its own data are not what the file expects, it is set aside whole in
// the inbox's database, where people find it (Aside), mend the cause and send
// it again (Feeds.Retry) or drop it (Drop).
//
// source.go opens what is read, file.go reads the file, rule.go makes of a message
// what ringi gets, feed.go holds them together, box.go opens the database.
package feed
