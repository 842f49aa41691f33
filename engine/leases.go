package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// leaseScan is how often task rows are looked at whose time has come.
	leaseScan = time.Second
	// leasePage bounds one look; a full page is followed by the next at once.
	leasePage = 500
	// farCheck is when a task is looked at that has nothing to wait for: often
	// enough that nothing is forgotten, seldom enough to cost nothing.
	farCheck = 24 * time.Hour
	// heldCheck is the same for tasks of a paused run, whose times are moved
	// when it goes on, and for those that were handed out before.
	heldCheck = 30 * time.Second
	// lapsesInARow is how many hand-overs in a row may lapse before the task
	// waits between them: somebody takes it and does not live to say so.
	lapsesInARow = 5
	// longestLapsePause bounds that wait.
	longestLapsePause = time.Minute
	// expireAgain is when a row is looked at again that the rules were told of:
	// by then they have decided, or could not. Until then it makes room for the
	// rows behind it.
	expireAgain = 5 * time.Second
)

// leases sweeps over the task rows whose check time has come: it gives back
// what was handed over and never confirmed, and tells the rules of attempts
// that ran out of their lease or time. A lease counts as lost only when this
// node has been there for its whole length: through a node that was away
// nobody could have extended it.
type leases struct {
	*parts
	errands errands
}

// Round looks at one page of rows.
func (l *leases) Round(ctx context.Context) (worked bool, err error) {
	if !l.clock.Known() {
		return false, nil
	}
	now := l.clock.Now()
	due, err := l.Store.DueTasks(ctx, now, leasePage)
	if l.reach.Note(ctx, err) != nil {
		return false, err
	}
	if len(due) > 0 {
		// The rows may be those of a database that was restored since this
		// node spoke to it, or whose clock was set: then the wait begins anew.
		if err := l.contact(ctx); err != nil {
			return false, err
		}
		now = l.clock.Now()
	}
	var s store.Settlement
	for _, t := range due {
		l.look(&s, t, now)
	}
	if len(due) > 0 {
		if err := l.reach.Wrote(ctx, 0, l.Store.Settle(ctx, s)); err != nil {
			return false, err
		}
		l.announce(due, s.Lapses)
	}
	return len(due) == leasePage, nil
}

// announce wakes the polls for what was given back.
func (l *leases) announce(due []store.DueTask, lapses []store.Lapse) {
	for _, lapse := range lapses {
		for _, t := range due {
			if t.Key == lapse.Key && t.Row.Lane == lapse.Lane {
				row := t.Row
				row.ReadyAt = lapse.ReadyAt
				l.dispatch.ready(t.Key, &row)
			}
		}
	}
	l.observe.lapsed(len(lapses))
}

// look decides what is to be done about one row. Each row that it looked at is
// given back or looked at later, so that none keeps its place in the page.
func (l *leases) look(s *store.Settlement, t store.DueTask, now time.Time) {
	if l.sick.err(t.Key, now) != nil {
		s.Checks = append(s.Checks, checkOf(t, now.Add(quarantineFor)))
		return
	}
	if !t.Leased {
		l.lookReady(s, t, now)
		return
	}
	length := handover
	if t.Confirmed {
		length = t.Row.Heartbeat
	}
	if wait := max(t.LeaseEnd.Sub(now), l.reach.Short(length)); wait > 0 {
		// Also a task of a paused run: its worker goes on.
		s.Checks = append(s.Checks, checkOf(t, now.Add(wait)))
		return
	}
	if !t.Confirmed && t.Row.Begun == 0 && !t.Row.Awaited {
		s.Lapses = append(s.Lapses, store.Lapse{
			Key: t.Key, Lane: t.Row.Lane, Token: t.Token, LeaseEnd: t.LeaseEnd, ReadyAt: now.Add(lapsePause(t.Lapsed + 1)),
		})
		return
	}
	l.expire(s, t, whyLeased(t), now)
}

// checkOf moves the look at a row, unless its lease changed since.
func checkOf(t store.DueTask, at time.Time) store.Check {
	return store.Check{Key: t.Key, Lane: t.Row.Lane, Token: t.Token, At: at, LeaseEnd: t.LeaseEnd}
}

// lookReady is for a row that nobody holds: it may have waited too long for a
// worker, but only counts as such when workers could have asked this node.
func (l *leases) lookReady(s *store.Settlement, t store.DueTask, now time.Time) {
	check := checkOf(t, now.Add(farCheck))
	wait := max(t.Row.GiveUpAt.Sub(now), l.reach.Short(handover))
	switch {
	case t.Row.Awaited: // its lease was given back before the run began to wait for it
		l.expire(s, t, ringi.ExpiryQueue, now)
		return
	case t.Row.Held:
		check.At = now.Add(heldCheck)
	case t.Row.GiveUpAt.IsZero():
	case wait > 0:
		check.At = now.Add(wait)
	case !t.Row.TotalAt.IsZero() && !t.Row.GiveUpAt.Before(t.Row.TotalAt):
		l.expire(s, t, ringi.ExpiryTotal, now)
		return
	default:
		l.expire(s, t, ringi.ExpiryQueue, now)
		return
	}
	if soon := now.Add(heldCheck); t.Token != t.Row.Token(0) && check.At.After(soon) {
		// Its worker may take it up again, or the run begin to wait for it,
		// before this look is moved: the token stays the same.
		check.At = soon
	}
	s.Checks = append(s.Checks, check)
}

// whyLeased names the limit that a lease ran into: heartbeats carry it no
// further than the end of the attempt, and that no further than the total time.
func whyLeased(t store.DueTask) ringi.Expiry {
	if t.LeaseEnd.Before(t.AttemptEnd) {
		return ringi.ExpiryLease
	}
	return ringi.ExpiryAttempt
}

// lapsePause is how long a task waits after so many lapses in a row.
func lapsePause(lapsed int) time.Duration {
	if lapsed < lapsesInARow {
		return 0
	}
	return min(time.Second<<min(lapsed-lapsesInARow, 10), longestLapsePause)
}

// expire tells the rules, and looks again in case they cannot decide. Token and
// lease end are conditions of the write, so that a heartbeat or a hand-out that
// comes first wins.
func (l *leases) expire(s *store.Settlement, t store.DueTask, why ringi.Expiry, now time.Time) {
	s.Checks = append(s.Checks, checkOf(t, now.Add(expireAgain)))
	cmd := ringi.Command{
		Tenant: t.Key.Tenant, Run: t.Key.Run, Actor: ringi.Engine(),
		Do: ringi.ExpireLease{
			CallRef: ringi.CallRef{Step: t.Row.Step, Direction: t.Row.Direction, Attempt: t.Row.Attempt, Token: t.Token},
			Why:     why, LeaseEnd: t.LeaseEnd,
		},
	}
	name := fmt.Sprintf("%d/%s/%d/%d", t.Key.Tenant, t.Key.Run, t.Row.Lane, t.Token)
	l.errands.send(l.parts, name, cmd, func(s settled) {
		if s.Err == nil && s.Answer.Outcome == ringi.Accepted {
			l.observe.expired(why)
		}
	})
}
