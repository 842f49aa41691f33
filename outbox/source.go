package outbox

import (
	"context"
	"fmt"
	"time"
)

// Source is where a relay takes messages from. memory.Outbox is its reference;
// packages sqlite, postgres and mysql read databases. Any number of goroutines may call
// one, and any number of processes may share its table.
//
// Time is passed in, so that a simulator can own it; a source reads no clock.
type Source interface {
	// Claim takes the next messages that are due and nobody else's, and leases them
	// to c.By until c.Now + c.Lease. That stands in the source, in the rows or in one
	// row for all of them, and is an attempt of each: a message whose publishing kills
	// the process runs out of attempts all the same, since a claim that ends without
	// its marks counts too.
	//
	// An ordered message is claimed only together with every earlier
	// undelivered one of its key, and follows them in the batch. Tenants take
	// turns, one message each. A message whose last claim ended without a mark
	// may be what killed a relay: it is claimed alone, so that it can spend no
	// attempt but its own.
	Claim(ctx context.Context, c Claim) (Batch, error)

	// Mark settles claimed messages at a time, all in one transaction, and
	// returns how many marks applied. A mark applies only while the claim that its
	// epoch names still has the message, and nobody took the partition
	// over since; otherwise it changes nothing, which is what happens to a relay
	// that slept past its lease and to a mark that is repeated.
	Mark(ctx context.Context, at time.Time, marks []Mark) (int, error)

	// Prune deletes at most limit messages that were delivered before a time
	// and returns how many. Nothing else is ever deleted.
	Prune(ctx context.Context, before time.Time, limit int) (int, error)

	// Stats counts what waits. It reads every undelivered row's index entry.
	Stats(ctx context.Context) (Stats, error)
}

// Claim says who claims, for whom, when, for how long and how much.
type Claim struct {
	// By names the relay, for people who look at the table. It fences nothing;
	// the epoch does.
	By string

	// Destination is whose messages are claimed; empty means those that name none.
	Destination string

	// Partitions, if any, are what Fleet.Hold gave the relay: only their messages
	// are claimed, and only of those that the relay still has. Nil means all.
	// Those in memory and in SQLite, whose claims wait for each other anyway, claim from all.
	Partitions []Partition

	// IDs, if any, are the only messages that the claim looks at, and the earlier
	// undelivered ones of their keys. Which of them may be taken, and in which order,
	// is decided as ever. SQLite and MySQL, which no feed tells anything, claim what is
	// due.
	IDs []string

	// Now is the time of the claim.
	Now time.Time

	// Lease is how long the messages stay with the claimer unless marked.
	Lease time.Duration

	// Limit is the most messages, at least 1; Bytes is the most payload bytes,
	// 0 for no limit. The first message is taken whatever its size.
	Limit int
	Bytes int

	// Ahead says that the claimer has messages in its hands whose marks come next.
	// Rows that wait for such a head stay as they are, where another claim would set
	// them back for a moment; and a message that may have killed a relay is left for
	// a claim that is not ahead.
	Ahead bool
}

// Check refuses a claim that could never take anything.
func (c *Claim) Check() error {
	if c.Limit < 1 || c.Lease <= 0 {
		return fmt.Errorf("outbox: claim of %d messages for %s: ask for at least one, for longer than nothing", c.Limit, c.Lease)
	}
	return nil
}

// Batch is the answer to a claim.
type Batch struct {
	// Messages are the claimed messages; those of one key in their order.
	Messages []ClaimedMessage

	// More says that something due may have been left behind, so that it is
	// worth claiming again at once, also when Messages is empty.
	More bool
}

// ClaimedMessage is a message in the hands of a relay.
type ClaimedMessage struct {
	Message

	// Attempt counts claims that were not given back, this one included, from 1.
	Attempt int

	// Orphaned says that the claim before this one ended without a mark: the
	// message may be what stopped its relay. It is alone in its batch.
	Orphaned bool

	// Epoch names this claim of this message, and no other claim of it; every mark
	// repeats it. What the number says is the source's affair.
	Epoch int64

	// Fence is the epoch of the partition that it was claimed in, which every
	// mark names too; 0 when it was claimed without partitions.
	Fence int64

	// Unreadable says what of the row, which another writer made, cannot be sent,
	// and how to repair it; empty on nearly every message. Such a message is not
	// sent; it counts as refused.
	Unreadable string
}

// Outcome is what became of a claimed message.
type Outcome int

// The outcomes of a claimed message.
const (
	// MarkDelivered: the destination acknowledged it.
	MarkDelivered Outcome = iota
	// MarkFailed: refused; to be tried again at NextAt. The attempt counts.
	MarkFailed
	// MarkDead: refused for the last time; set aside with its error.
	MarkDead
	// MarkParked: refused too often; it waits for a person, and its key with it.
	MarkParked
	// MarkReleased: not tried, or the destination was down; due again at NextAt.
	// The attempt that the claim counted is given back.
	MarkReleased
)

// Mark settles one claimed message.
type Mark struct {
	ID      string
	Epoch   int64
	Fence   int64
	Outcome Outcome

	// NextAt is when a failed or released message is due again.
	NextAt time.Time

	// Error says why a message failed, died or was released; empty keeps what
	// was there. A delivery clears it.
	Error string
}

// Stats counts the messages of a source, of all tenants.
type Stats struct {
	// Pending, Claimed and Parked are undelivered; Dead were set aside.
	Pending, Claimed, Parked, Dead int64

	// Failing are the pending ones with a spent attempt: with a policy that
	// blocks, the keys that stand still are among them.
	Failing int64

	// Oldest is when the oldest undelivered message was written, parked ones
	// included; zero if there is none.
	Oldest time.Time
}
