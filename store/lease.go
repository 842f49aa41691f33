package store

import (
	"time"

	"github.com/ringiflow/ringi"
)

// BeatGrace is how far a heartbeat may carry a lease past the end of its
// attempt: the worker ends its function at that moment, and the grace is what
// it takes to say so.
const BeatGrace = 5 * time.Second

// HandOuts is the most hand-outs of one attempt. A token has 16 bits for
// them; one more would be a token of the event that follows.
const HandOuts = 1<<16 - 1

// HandOut is the lease of a task that is given to a worker at a time.
func HandOut(row ringi.TaskRow, token int64, worker string, at, until time.Time) TaskLease {
	l := TaskLease{Token: token, Leased: true, Worker: worker, LeaseEnd: until, AttemptEnd: at.Add(row.Timeout)}
	if !row.TotalAt.IsZero() && row.TotalAt.Before(l.AttemptEnd) {
		l.AttemptEnd = row.TotalAt
	}
	return l
}

// Extend is the lease after a heartbeat at a time: confirmed, held again when
// it had been given back under the same token, and until the work lease is
// over. The first heartbeat sets that end; later ones never shorten it, since
// they may arrive in another order.
func (l TaskLease) Extend(row ringi.TaskRow, now time.Time) TaskLease {
	end := now.Add(row.Heartbeat)
	if most := l.AttemptEnd.Add(BeatGrace); most.Before(end) {
		end = most
	}
	if !l.Confirmed || l.LeaseEnd.Before(end) {
		l.LeaseEnd = end
	}
	l.Leased, l.Confirmed, l.Lapsed = true, true, 0
	return l
}

// FirstCheck is when a sweep must look at a row that was just written: at the
// end of its lease or its attempt, or when it has waited too long for a
// worker. An awaited row that nobody holds is looked at as soon as it could be:
// it is never handed out again, so no hand-out brings an earlier look. Zero:
// never.
func FirstCheck(row ringi.TaskRow, l TaskLease) time.Time {
	if !l.Leased && row.Awaited {
		return row.ReadyAt
	}
	if !l.Leased {
		return row.GiveUpAt
	}
	if l.AttemptEnd.Before(l.LeaseEnd) {
		return l.AttemptEnd
	}
	return l.LeaseEnd
}

// Holds reports whether a need is met by the row of its lane as it stands. A
// lane without a row is the zero TaskRow and TaskLease.
func Holds(n ringi.Need, row ringi.TaskRow, l TaskLease) bool {
	if l.Token != n.Token {
		return false
	}
	switch n.How {
	case ringi.NeedToken:
		return true
	case ringi.NeedUntouched:
		return !l.Leased && l.Token == row.Token(0)
	case ringi.NeedFree:
		return !l.Leased
	case ringi.NeedExpired:
		return l.Leased && l.LeaseEnd.Equal(n.LeaseEnd)
	}
	return false
}
