// Package engine is the shell around the rules: it runs workflow definitions
// on a store, in process, and implements ringi.Service. The rules of package
// ringi decide; this package stamps the time, keeps states in memory, makes
// decisions durable, and answers only then.
//
// # Parts
//
// Each part has one method, Round, that does one bounded piece of work. Start
// loops them; a simulator calls them in any order, from one goroutine.
//
//	door        checks what comes in, completes a start, draws its run id
//	committer   decides what waits, commits it in one transaction, answers
//	dispatcher  hands tasks to the polls that wait
//	leases      gives back what nobody confirmed, expires what nobody extends
//	timers      fires what is due
//	waits       brings events and waits together
//	pulse       asks an idle database for its clock
//	fleet       says that this node runs, and learns which format it may write
//
// # The life of a command
//
// Do checks it and puts it into the inbox of a committer: a run belongs to one
// committer of the node by its id, a start to that of its key. The committer
// takes all that waits (256 commands or 4 MiB, tenants in turn), reads the
// runs that are not in memory in one go, stamps each command and decides it on
// the state that the one before it led to. The commands of one run become one
// write; its rows are the difference of ringi.Standing before and after it.
// All writes go into one transaction. There is no artificial delay: while it
// is under way the next commands gather by themselves.
//
// Nothing is answered before the commit of the states it was decided on. A
// refusal, a repeat and a no-op are writes too, without events: the claim that
// the run still stands where it stood. A write that lost its race is reported
// alone, and all its commands are decided again with what stood there as data.
// After a commit whose outcome is unknown the same writes are sent again,
// unchanged, until it is known. If the store was not reached nothing was done,
// and the senders are told so.
//
// # Memory
//
// What is in memory is a cache, or a hint: states, waiting polls, wake-ups.
// All of it may be lost at any instruction. Sweeps find in the rows of the
// store whatever a wake-up should have told: tasks within a second, timers
// within a quarter, pairs of events and waits within a second, leases within a
// second. A run that cannot be read or decided is left alone for a minute, and
// named in the list of incidents; all others go on.
//
// # Time
//
// Everything is stamped with the database's clock, as the latest answer of the
// store and the node's monotonic clock give it. A lease counts as lost only
// when this node has reached the store without a break, with its workers'
// endpoint up, for the whole length of the lease: after a start, an outage, a
// restore or a jump of the clock that wait begins anew, so that an engine
// which was away for an hour starts no second attempt.
package engine
