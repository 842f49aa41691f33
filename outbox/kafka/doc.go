// Package kafka delivers the messages of an outbox to Apache Kafka and to what
// speaks its protocol.
//
// # What arrives
//
// One record per message. The topic is Config.Topic's choice, by default
// "outbox.event." and the aggregate type, as Debezium's outbox router names it.
// The key is the aggregate id, so all messages of an aggregate share a
// partition. The value is the payload; it is empty and never null when there is
// none, since null deletes the key on a compacted topic. Headers:
//
//	id              the message id, as Debezium's router writes it
//	content-type    the payload's media type, when the message names one
//	ce_…            the attributes of a CloudEvent in binary mode
//	other names     the message's own headers, traceparent among them; a name
//	                that means something above gets the prefix "header-"
//
// Topic, partition, key, value and the header id are to the byte what Debezium's
// outbox router makes of the row by its defaults; Config.Headers leaves out the
// others.
//
// # What is promised
//
// A message counts as delivered when all in-sync replicas have it. How many those
// are is the topic's min.insync.replicas; with 1, which is Kafka's default, an
// acknowledged record is lost with that one broker.
//
// Messages of one key arrive in their order, also when requests time out and are
// sent again. Three things see to it. The producer is idempotent: the broker
// knows the number of every batch and refuses one that comes out of turn, so that
// several may be under way and a repeat of a request is dropped. When a batch
// fails, everything behind it in its partition fails with it. And what Publish
// gave up is never sent again behind its back: the producer's epoch is raised, so
// that a request still on its way is refused as soon as a newer record stands in
// the partition, and the next call waits until nothing of the old one is left.
//
// A request is a repeat only to the producer that sent it. A message that a relay
// sends again after a crash is a new record with the same id: Kafka keeps no
// window of message ids, so consumers drop repeats by the header id.
//
// # What is not promised
//
// Order ends where the number of partitions changes, because keys move then.
// A relay that was stopped while a request of it was on its way can see that one
// request arrive late, behind what another relay has sent since; it is a repeat
// under its old id.
package kafka
