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
//	UnitOfWork     change and message, one commit: state pending
//	Source.Claim   one bounded batch: state claimed, attempt counted, epoch raised
//	Sink.Publish   outside any transaction, in the order of each key
//	Source.Mark    delivered, to be tried again, dead, parked, or given back
//	Source.Prune   delivered rows go when they are old enough
//
// # Writing
//
// UnitOfWork begins a transaction of database/sql or pgx, or joins the caller's,
// and writes its messages last. Whoever has a transaction already may also call
// sqlite.Insert, mysql.Insert, postgres.Insert or postgres.InsertSQL, or send the one
// statement of postgres.InsertStatement himself; a repository that fulfils Writer is
// all that is needed.
// Stamp gives messages what they lack: an id, the time, the trace of the context,
// and by Routes a destination with its largest message. StartRun makes a message
// that starts a run of ringi.
//
// # Relaying
//
// A Relay serves one destination from one Source. Destinations are apart: each has
// a relay, and so a circuit, of its own, and what waits for one that is down is
// never read on behalf of another. Several relays, in one process or many, may
// serve one destination: with a Fleet they share its 64 partitions under leases,
// and without one their claims wait for each other.
//
// A Desk is what operators use: list, retry, send again, purge, and count per
// destination and tenant.
//
// # What is promised
//
// Every committed message is delivered at least once, under the id that it got
// when it was written. A crash after the destination's answer and before the
// mark sends it again with the same id; consumers drop repeats by that id, for
// which package inbox is made.
//
// Messages of one key (tenant, aggregate type, aggregate id) are published to
// each destination in the order in which their transactions committed. The order
// is a number that the insert takes from the aggregate's head row, whose lock is
// held until the commit. It is not a clock, nor a global id, nor a transaction
// id: all are handed out before the commit, so two transactions can commit the
// other way round. The price is that two transactions which write messages of one
// aggregate wait for each other; a message that needs no order says Unordered and
// takes no lock.
//
// Rows are claimed by their state. The rejected alternative is a reader that
// remembers the last id it saw: it skips every row whose transaction took an
// earlier id and committed later.
//
// A message that its destination refuses is tried again with growing pauses
// while later messages of its key wait. After a number of tries it is, as the
// policy says, set aside as dead, where it stays in the table for a person to
// see; or parked, and its key waits for a person; or it goes on blocking its key.
// A destination that is down costs no message an attempt: the relay stops asking
// for a while (a circuit) and goes on at full speed when a single message gets
// through. An attempt is counted when it begins, so that a message which kills
// the relay does not do so for ever.
//
// A relay that was stopped past its lease changes nothing when it wakes: every
// mark names the epoch of the claim and that of the partition.
//
// # What is not promised
//
// Exactly-once delivery does not exist; a consumer that cannot bear repeats
// keeps the ids it has handled. A relay that was stopped in the middle of sending
// may still finish when it wakes: what it sends then are repeats, which can arrive
// after later messages of their key. The row that numbers an aggregate stays for
// ever, since a number must never be given twice.
//
// Polling finds a message within a second at most, at once with a hint from the
// same process. A Feed, such as that of package wal from PostgreSQL's write-ahead
// log, tells of it without polling, at the price of a replication slot that must be
// watched. It tells which messages there are and nothing else: the table stays the
// truth, and the rules of a claim are the only ones.
//
// The package needs nothing of the engine and no driver, so that a
// service without the engine can use it. Brokers and databases are sub-packages:
// each of the latter has its tables, its insert, and an Outbox that is the Source,
// the Desk and, where processes share the work, the Fleet.
package outbox
