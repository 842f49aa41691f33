// Package outbox keeps messages beside the change that they announce and
// delivers them afterwards.
//
// A service that changes a row and then calls a broker can stop between the
// two, and the world never hears of the change. So the message is a row too:
// it is inserted by the transaction that makes the change, both or neither,
// and a relay delivers it later from the committed row. No broker is touched
// inside the transaction, and a broker that is down delays messages but never
// blocks the change.
//
// # The life of a message
//
//	InsertSQLite   the row, in the caller's transaction: state pending
//	Source.Claim   one bounded batch: state claimed, attempt counted, epoch raised
//	Sink.Publish   outside any transaction, in the order of each key
//	Source.Mark    delivered, to be tried again, dead, or given back
//	Source.Prune   delivered rows go when they are old enough
//
// # What is promised
//
// Every committed message is delivered at least once, under the id that it got
// when it was written. A crash after the destination's answer and before the
// mark sends it again with the same id; consumers drop repeats by that id.
//
// Messages of one key (tenant, aggregate type, aggregate id) are published in
// the order in which their transactions committed. The order is a number that
// the insert takes from the aggregate's head row, whose lock is held until the
// commit. It is not a clock, nor a global id: both are handed out before the
// commit, so two transactions can commit the other way round. The price is that
// two transactions which write messages of one aggregate wait for each other; a
// message that needs no order says Unordered and takes no lock.
//
// Rows are claimed by their state. The rejected alternative is a reader that
// remembers the last id it saw: it skips every row whose transaction took an
// earlier id and committed later.
//
// A message that its destination refuses is tried again with growing pauses
// while later messages of its key wait; after a number of tries it is either
// set aside as dead, where it stays in the table for a person to see, or it
// goes on blocking its key, as the policy says. A destination that is down
// costs no message an attempt: the relay stops asking for a while (a circuit)
// and goes on at full speed when a single message gets through.
//
// # What is not promised
//
// Exactly-once delivery does not exist; a consumer that cannot bear repeats
// keeps the ids it has handled. Order holds while one relay reads the table; a
// relay that was paused past its lease can mark nothing, but a message that it
// has already begun to send may still arrive late, as a repeat. The row that
// numbers an aggregate stays for ever, since a number must never be given twice.
//
// The package imports nothing else of this module, so that a service without
// the engine can use it.
package outbox
