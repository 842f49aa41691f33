package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// DefaultListed is how many messages a call of a Desk sees or changes unless
	// told otherwise. Who wants all calls again until fewer come.
	DefaultListed = 100

	// MostListed is the most that a call takes: a transaction of more would hold
	// up writers.
	MostListed = 1000

	// ResendWithin is how long after its delivery a message is sent again without
	// asking twice. It is how long package inbox remembers: a consumer that has
	// forgotten a message would do its work a second time.
	ResendWithin = 7 * 24 * time.Hour
)

// ErrResendOld says that a message to be sent again was delivered longer ago than
// consumers remember. Nothing was changed; Filter.Old allows it.
var ErrResendOld = errors.New("outbox: a message was delivered so long ago that its consumers may have forgotten it and would do their work again; narrow the selection, or confirm that this is meant")

// ErrAfter says that Filter.After is not the id of a message.
var ErrAfter = errors.New("outbox: a list goes on behind the id of the last message of the page before")

// Desk is what an operator does with messages. memory.Outbox is its reference;
// sqlite.Outbox, postgres.Outbox and mysql.Outbox fulfil it. It never changes an id, a number or a payload.
type Desk interface {
	// List returns the messages that a filter selects, by id.
	List(ctx context.Context, f Filter) ([]Entry, error)

	// Retry makes dead and parked messages due at a time with all their attempts,
	// and lets the keys of the parked ones go on. With Pending among the filter's
	// states it also makes those due that wait for their next try.
	Retry(ctx context.Context, at time.Time, f Filter) (int, error)

	// Resend makes delivered messages due again at a time, under the same id, so
	// that consumers that have them drop them. They go before later messages of
	// their key. See ErrResendOld.
	Resend(ctx context.Context, at time.Time, f Filter) (int, error)

	// Purge deletes dead messages, or parked or delivered ones if the filter says
	// so, and lets the keys of parked ones go on without them. What waits to be
	// delivered is never deleted.
	Purge(ctx context.Context, at time.Time, f Filter) (int, error)

	// Changes returns what was done by Retry, Resend and Purge, the latest first, at
	// most limit calls of them; 0 is DefaultListed. It is written in the transaction
	// of the change itself.
	Changes(ctx context.Context, limit int) ([]Change, error)

	// Backlog counts what is not delivered, per destination and tenant, in that
	// order. Like Stats it reads the index of every undelivered row.
	Backlog(ctx context.Context) ([]Depth, error)
}

// Filter selects messages. Its zero value selects what the call is usually about:
// everything for List, dead and parked messages for Retry, delivered ones for
// Resend, dead ones for Purge.
type Filter struct {
	IDs           []string // these and no others
	States        []State
	Destinations  []string
	Tenants       []int64
	AggregateType string
	AggregateID   string
	Type          string

	// After continues a list behind an id; see ErrAfter.
	After string

	// Limit is the most messages; 0 is DefaultListed, and no more than MostListed
	// are ever taken.
	Limit int

	// Old lets Resend take messages that were delivered longer than ResendWithin ago.
	Old bool

	// Reason says why Retry, Resend or Purge is called, for those who ask later; see
	// Changes. It selects nothing. At most MaxReason bytes of it are kept.
	Reason string
}

// MaxReason is the longest text that is kept of a reason, or of a destination's
// answer, in bytes: enough to see what happened, too short to bloat the table.
const MaxReason = 1 << 10

// Change is a call of Retry, Resend or Purge that changed something.
type Change struct {
	At       time.Time
	Verb     string // retry, resend or purge
	Reason   string
	Messages []string // their ids, in order
}

// Most is how many messages the filter takes.
func (f *Filter) Most() int {
	if f.Limit <= 0 {
		return DefaultListed
	}
	return min(f.Limit, MostListed)
}

// Only gives the filter the states that a call is usually about if it names none,
// and refuses those that it must not touch: what is neither usual nor also.
func (f *Filter) Only(usual []State, also ...State) error {
	if len(f.States) == 0 {
		f.States = usual
	}
	for _, s := range f.States {
		if !slices.Contains(usual, s) && !slices.Contains(also, s) {
			return fmt.Errorf("outbox: messages in state %s cannot be changed that way; select %v", s, append(slices.Clone(usual), also...))
		}
	}
	return nil
}

// Check refuses a place to go on from that no list can have given; see ErrAfter.
func (f *Filter) Check() error {
	if f.After != "" && !IsID(f.After) {
		return fmt.Errorf("%w: it is %q", ErrAfter, clip(f.After))
	}
	return nil
}

// Entry is a message as it stands in the outbox.
type Entry struct {
	Message

	State       State
	Attempts    int
	NextAt      time.Time // when it is due, or its lease ends; the year 9999 while parked
	ClaimedBy   string
	DeliveredAt time.Time
	LastError   string
}

// Depth counts the undelivered messages of a tenant for a destination.
type Depth struct {
	Destination string
	Tenant      int64

	// The counts are those of Stats. Each parked ordered message stands for one
	// key that waits.
	Pending, Claimed, Parked, Failing, Dead int64

	// Oldest is when the oldest undelivered message was written; zero if there is none.
	Oldest time.Time
}
