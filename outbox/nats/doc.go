// Package nats delivers the messages of an outbox to a stream of NATS JetStream.
//
// # What arrives
//
// One stream message per outbox message, on the subject that Config.Subject
// chooses, by default "outbox.event." and the aggregate type. A stream must
// listen to it; the package makes none. The body is the payload. Headers:
//
//	Nats-Msg-Id     the message id, by which the stream drops repeats
//	content-type    the payload's media type, when the message names one
//	ce-…            the attributes of a CloudEvent in binary mode
//	other names     the message's own headers, traceparent among them; a name
//	                that means something above, or to the server, gets the prefix
//	                "header-"
//
// Header values are percent-encoded where CloudEvents says so: what is not
// printable ASCII, and space, quote and percent in attributes.
//
// # What is promised
//
// A message counts as delivered when the stream has acknowledged it. Of one key
// one message is under way at a time, since a leader that changes can lose one
// and take the next; different keys go together, and their acknowledgements are
// awaited together. Nothing is kept to be sent later while there is no
// connection.
//
// A message that is sent again, after a time-out or by a relay that replaces one
// that crashed, is dropped by the stream while its first copy is younger than
// the stream's duplicate window (two minutes unless the stream says otherwise).
// Sink.Describe prints the window. After a longer outage a repeat reaches the
// consumers, so they need an inbox. The window has another side: a delivered
// message that a person sends again within it is dropped too.
//
// # What is not promised
//
// An acknowledgement is not yet a write to disk: servers sync at their
// sync_interval, every two minutes unless they say otherwise. When all replicas
// lose power together, acknowledged messages of that time can be lost. Three
// replicas, or sync_interval: always, are for those who cannot bear this; the
// outbox keeps delivered rows for a day, so that they can be sent again.
package nats
