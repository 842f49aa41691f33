// Package rabbitmq delivers the messages of an outbox to RabbitMQ.
//
// # What arrives
//
// One persistent message per outbox message, published to Config.Exchange under
// the routing key that Config.Key chooses, by default "outbox.event." and the
// aggregate type. Without an exchange that is the name of the queue. The package
// declares nothing: exchanges, queues and bindings are their owner's. The body is
// the payload. Properties:
//
//	message_id      the message id, by which an inbox knows repeats
//	type            the event type
//	content_type    the payload's media type, when the message names one
//	timestamp       when the message was written, to the second
//	headers ce-…    the attributes of a CloudEvent in binary mode
//	other headers   the message's own, traceparent among them; a name that means
//	                something above, or to the broker (cc, bcc, x-…), gets the prefix
//	                "header-"
//
// # What is promised
//
// A message counts as delivered when the broker has confirmed it: for a quorum
// queue when most of its replicas have it on disk, for a classic one when it is on
// disk. It is published as mandatory, so that one which no queue takes is no
// success but an outage of its destination. Of one key one message is under way at
// a time, since a queue that is full or changes its leader can refuse one and take
// the next; different keys go together, and their confirmations are awaited
// together. When an answer does not come in time the connection is ended, so that
// nothing of it can come behind what is sent next.
//
// # What is not promised
//
// RabbitMQ does not drop repeats: a message that is sent again, after a time-out or
// by a relay that replaces one that crashed, is there twice under the same
// message_id. Consumers need an inbox.
package rabbitmq
