package outbox

// The named places at which a process can be killed to prove that nothing is
// lost: a binary built with -tags crashpoints kills itself there when the
// variable RINGI_CRASHPOINT names one, after so many passes if ":N" follows the
// name. Other binaries have no trace of them.
const (
	CrashBeforeCommit = "before-commit" // a unit of work has written everything and commits next
	CrashCommitted    = "commit-sent"   // committed; the caller never hears of it
	CrashBeforeWake   = "before-wake"   // committed and known; the relay is not told
	CrashClaimed      = "claimed"       // the relay has a batch that nobody has seen
	CrashPublishing   = "publishing"    // before the batch goes out; stops here, so that the lease is lost, and goes on when woken
	CrashPublished    = "published"     // the destination has the batch; its acknowledgement is lost
	CrashAcknowledged = "acknowledged"  // acknowledged; not marked
	CrashMarked       = "mark-sent"     // the marks stand; the relay never hears of it
	CrashPruning      = "pruning"       // old rows deleted; the transaction is open
	CrashDeadLetter   = "dead-letter"   // a message is being set aside; the transaction is open
)

// CrashPoints lists the named places.
func CrashPoints() []string {
	return []string{
		CrashBeforeCommit, CrashCommitted, CrashBeforeWake, CrashClaimed, CrashPublishing,
		CrashPublished, CrashAcknowledged, CrashMarked, CrashPruning, CrashDeadLetter,
	}
}
