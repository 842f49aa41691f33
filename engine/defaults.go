package engine

// The defaults and limits of an engine by name, for whoever shows them to an
// operator. Each has its reason where it is used.
const (
	// DefaultHandover is the length of a lease until the worker's first sign of life.
	DefaultHandover = handover
	// LongestPoll is the longest that a poll waits for a task.
	LongestPoll = longestPoll
	// DefaultPollFallback is how often waiting polls look for tasks of other nodes.
	DefaultPollFallback = pollFallback
	// DefaultTimerScan is how often due timers are looked for.
	DefaultTimerScan = timerScan
	// DefaultLeaseScan is how often due tasks are looked for.
	DefaultLeaseScan = leaseScan
	// DefaultBatchWrites is the most writes of one commit.
	DefaultBatchWrites = batchWrites
	// DefaultBatchBytes bounds the payload of one commit, in bytes.
	DefaultBatchBytes = batchBytes
	// DefaultSnapshotEvery is how many events lie between two snapshots of a run.
	DefaultSnapshotEvery = snapshotEvery
	// DefaultKeepEvents is how long a sent event waits for a wait that opens later.
	DefaultKeepEvents = keepEvents
	// DefaultDrain is how long Close lets commits end.
	DefaultDrain = defaultDrain
)
