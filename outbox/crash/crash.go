// Package crash names the places at which a process can be killed to prove that an
// outbox loses nothing.
package crash

// The named places: a binary built with -tags crashpoints kills itself there when the
// variable RINGI_CRASHPOINT names one, after so many passes if ":N" follows the
// name. Other binaries have no trace of them.
const (
	BeforeCommit = "before-commit" // a unit of work has written everything and commits next
	Committed    = "commit-sent"   // committed; the caller never hears of it
	BeforeWake   = "before-wake"   // committed and known; the relay is not told
	Claimed      = "claimed"       // the relay has a batch that nobody has seen
	Publishing   = "publishing"    // before the batch goes out; stops here, so that the lease is lost, and goes on when woken
	Published    = "published"     // the destination has the batch; its acknowledgement is lost
	Acknowledged = "acknowledged"  // acknowledged; not marked
	Marked       = "mark-sent"     // the marks stand; the relay never hears of it
	Pruning      = "pruning"       // old rows deleted; the transaction is open
	DeadLetter   = "dead-letter"   // a message is being set aside; the transaction is open
)

// Points lists the named places.
func Points() []string {
	return []string{
		BeforeCommit, Committed, BeforeWake, Claimed, Publishing,
		Published, Acknowledged, Marked, Pruning, DeadLetter,
	}
}
