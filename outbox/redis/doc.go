// Package redis delivers the messages of an outbox to Redis Streams.
//
// # What arrives
//
// One entry per outbox message, in the stream that Config.Stream chooses, by
// default "outbox.event." and the aggregate type; a stream that is not there is
// made. The fields of an entry:
//
//	data            the payload
//	content-type    the payload's media type, when the message names one
//	ce-…            the attributes of a CloudEvent in binary mode; ce-id is the
//	                message id, ce-subject the aggregate id
//	other names     the message's own headers, traceparent among them; a name
//	                that means something above gets the prefix "header-"
//
// # What is promised
//
// The messages of one call and stream are appended by one script, which the
// server runs as a whole. It appends in the order of the messages and none behind
// a failure of its key, so that order per key holds even where memory runs out in
// between. A message counts as delivered when the server has answered, and, with
// Config.Replicas, when so many replicas have it.
//
// # What is not promised
//
// Redis does not drop repeats: a message that is sent again, after a time-out or
// by a relay that replaces one that crashed, is another entry with the same
// ce-id. Consumers need an inbox.
//
// An answer means that the entry is in the server's memory. Whether it is on disk
// then is the server's setting: only with appendonly yes and appendfsync always
// does a crash lose nothing that was acknowledged; Sink.Describe prints what
// holds. A replica that is promoted can lack what was acknowledged unless
// Config.Replicas asks for it, and even then Redis promises only that it is
// unlikely. The outbox keeps delivered rows for a day, so that they can be sent
// again.
//
// A stream grows until somebody trims it. Config.Keep bounds it, whether or not
// everything was read; XTRIM by whoever knows what was read is the better way.
package redis
