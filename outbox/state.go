package outbox

import "fmt"

// State is where a row stands. Column state stores it, except that a claimed row
// stays a pending one there: its claim has a row of its own, or the row a lease_end. A
// claim then changes no column that an index has, and so writes to no index.
type State int

// The states of a row. Those below Delivered are undelivered, and every index
// that a claim reads holds only them.
const (
	Parked    State = -1 // refused too often; blocks its key until a person acts
	Pending   State = 0  // waits until its next_at
	Claimed   State = 1  // a relay has it until its lease_end
	Delivered State = 2  // the destination acknowledged it; kept until pruned
	Dead      State = 3  // set aside after too many refusals; kept until a person acts
)

// String names the state as people see it.
func (s State) String() string {
	switch s {
	case Parked:
		return "parked"
	case Pending:
		return "pending"
	case Claimed:
		return "claimed"
	case Delivered:
		return "delivered"
	case Dead:
		return "dead"
	}
	return fmt.Sprintf("state %d", int(s))
}
