package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
)

// A BadRow is a row that cannot be read, or that contradicts itself, although
// the database can be read.
type BadRow struct {
	Key   Key    // Run is "" when the row names no run
	Table string // log, snapshot, list, task, timer, wait, approval or incident
	Row   string // which of the run's rows: lane, id or step; "" when there is one
	Err   error
}

// String names the row and says what is wrong with it.
func (b BadRow) String() string {
	name := b.Table
	if b.Row != "" {
		name += " " + b.Row
	}
	if b.Key.Run != "" {
		name += " of run " + string(b.Key.Run)
	}
	return fmt.Sprintf("%s: %v", name, b.Err)
}

// Unreadable comes beside an answer from which something was left out because
// it cannot be read. The answer is good as far as it goes.
type Unreadable struct{ Rows []BadRow }

// Error names the rows.
func (u *Unreadable) Error() string {
	if len(u.Rows) == 1 {
		return "store: a row cannot be read: " + u.Rows[0].String()
	}
	return fmt.Sprintf("store: %d rows cannot be read, the first is %s", len(u.Rows), u.Rows[0])
}

// Inspector reads what stands in the tables as it stands, for replay: rows
// that cannot be read are named and hold up nothing, rows of runs that do not
// exist are found, and the columns that only drivers use are read too.
type Inspector interface {
	// Traces lists the runs, of all tenants, that a row of any table names
	// (the audit trail apart, which also tells of runs that were refused), in
	// order of tenant and id, after the given key, at most limit of them.
	Traces(ctx context.Context, after Key, limit int) ([]Key, error)
	// Strays lists rows that name no run at all, at most limit of them.
	Strays(ctx context.Context, limit int) ([]BadRow, error)
	// Inspect reads everything beside the log of one run, as it stood in one
	// moment. A run of which nothing stands is answered with the zero value.
	Inspect(ctx context.Context, key Key) (Inspected, error)
}

// Inspected is what stands beside the log of a run, each kind in the order of
// its key.
type Inspected struct {
	Last       int64      // first sequence of the last log row in that moment; 0: no log
	Run        *RunRecord // nil: no list row
	Snapshot   *Snapshot  // also one that is ahead of the log; nil: none
	Tasks      []InspectedTask
	Timers     []InspectedTimer
	Waits      []ringi.WaitRow
	Approvals  []ringi.ApprovalRow
	Incidents  []ringi.Incident
	AuditHeads [][]byte // the chain heads that audit records about the run name, each once
	Bad        []BadRow // left out above, or contradicting an index column beside it
}

// An InspectedTask is a task row with the columns that the log does not fix.
type InspectedTask struct {
	Row   ringi.TaskRow
	Lease TaskLease
	Check time.Time // when a sweep looks at it; zero: never
}

// An InspectedTimer is a timer row with the column that it is found by.
type InspectedTimer struct {
	ringi.TimerRow
	Due time.Time // the fire time, or until when a node has claimed it
}
