package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// timerScan is how often due timers are looked for: a quarter of a second
	// is too short for a person to notice.
	timerScan = 250 * time.Millisecond
	// timerPage bounds one look; a full page is followed by the next at once.
	timerPage = 500
	// timerClaim is how long other nodes leave a claimed timer alone, and how
	// late it fires when the node that claimed it dies: a few scans.
	timerClaim = time.Second
	// timerLoad is how many runs are read at a time to see what their timers
	// are for: a run may hold some megabytes.
	timerLoad = 50
)

// timers claims the rows that are due and tells the rules. The rules drop a
// firing unless generation and state agree; the row of such a firing is
// deleted here. Nothing is kept in memory: a row that is not dealt with is due
// again when its claim ends.
type timers struct {
	*parts
	errands errands

	mu    sync.Mutex
	drops []store.DueTimer
	of    string // the incarnation of the database that the drops are meant for
}

// Round claims one page of due timers and deletes the rows of dropped firings.
func (t *timers) Round(ctx context.Context) (worked bool, err error) {
	if !t.clock.Known() {
		return false, nil
	}
	if err := t.settle(ctx); err != nil {
		return false, err
	}
	// What is found is of this database, or of a later one; in a later one a row
	// may stand again that was void in this one.
	of := t.answering()
	now := t.clock.Now()
	due, err := t.Store.DueTimers(ctx, now, now.Add(timerClaim), timerPage)
	if t.reach.Wrote(ctx, 0, err) != nil {
		return false, err
	}
	full := len(due) == timerPage
	due = slices.DeleteFunc(due, func(d store.DueTimer) bool { return t.sick.err(d.Key, now) != nil })
	if due, err = t.notServed(ctx, due); err != nil {
		return false, err
	}
	for _, d := range due {
		t.fire(d, of)
	}
	return full, nil
}

func (t *timers) settle(ctx context.Context) error {
	t.mu.Lock()
	drops, of := t.drops, t.of
	t.drops = nil
	t.mu.Unlock()
	if len(drops) == 0 {
		return nil
	}
	// A database that was restored meanwhile may have these timers again.
	if err := t.contact(ctx); err != nil || t.answering() != of {
		return err
	}
	// If this fails they are due again, and dropped again.
	return t.reach.Wrote(ctx, 0, t.Store.Settle(ctx, store.Settlement{Drops: drops}))
}

// notServed leaves out the time-outs of waits whose event was sent in time and
// stands in the store, and delivers it: instants decide, not firings, and this
// node may have been away while another one took the event. The row of such a
// timer goes with its wait; until then it is due again.
func (t *timers) notServed(ctx context.Context, due []store.DueTimer) ([]store.DueTimer, error) {
	waits, err := t.eventWaits(ctx, due)
	if err != nil || len(waits) == 0 {
		return due, err
	}
	asked := map[store.PairQuery][]store.Pair{}
	var fire []store.DueTimer
	for _, d := range due {
		w, ok := waits[timerName{d.Key, d.ID, d.Generation}]
		if !ok {
			fire = append(fire, d)
			continue
		}
		q := store.PairQuery{Tenant: d.Key.Tenant, Name: w.Wait.Event, Key: w.Wait.Key, Limit: waitPage + mostStuck}
		pairs, ok := asked[q]
		if !ok {
			pairs, err = t.Events.Pairs(ctx, q)
			if t.reach.Note(ctx, err) != nil {
				return nil, err
			}
			asked[q] = pairs
		}
		i := slices.IndexFunc(pairs, func(p store.Pair) bool { return p.Key == d.Key && p.Step == w.ID })
		switch {
		case i >= 0 && !pairs[i].Event.SentAt.After(d.FireAt):
			t.waits.deliver(pairs[i])
		case i < 0 && len(pairs) == q.Limit: // nobody knows before some of these are delivered
		default:
			fire = append(fire, d)
		}
	}
	return fire, nil
}

// A timerName tells a timer from all others that there ever were.
type timerName struct {
	key        store.Key
	id         string
	generation int
}

// eventWaits reads which of the timers are the time-outs of open waits for an
// event. What cannot be read is for the committer to say.
func (t *timers) eventWaits(ctx context.Context, due []store.DueTimer) (map[timerName]*ringi.Step, error) {
	var keys []store.Key
	seen := map[store.Key]bool{}
	for _, d := range due {
		if !seen[d.Key] {
			seen[d.Key] = true
			keys = append(keys, d.Key)
		}
	}
	waits := map[timerName]*ringi.Step{}
	for some := range slices.Chunk(keys, timerLoad) {
		loaded, err := t.Store.Load(ctx, some...)
		if t.reach.Note(ctx, err) != nil {
			return nil, err
		}
		for _, l := range loaded {
			s, err := t.restore(ctx, l, l.Key)
			var broken *brokenRun
			if errors.As(err, &broken) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, tm := range s.state.Timers {
				i := slices.IndexFunc(s.state.Steps, func(st *ringi.Step) bool { return st.ID == tm.Step })
				if i >= 0 && s.state.Steps[i].Wait != nil && s.state.Steps[i].Wait.Event != "" {
					waits[timerName{l.Key, tm.ID, tm.Generation}] = s.state.Steps[i]
				}
			}
		}
	}
	return waits, nil
}

// fire tells the rules of a timer that was found in a database.
func (t *timers) fire(d store.DueTimer, of string) {
	cmd := ringi.Command{
		Tenant: d.Key.Tenant, Run: d.Key.Run, Actor: ringi.Engine(),
		Do: ringi.FireTimer{Timer: d.ID, Generation: d.Generation},
	}
	name := fmt.Sprintf("%d/%s/%s/%d", d.Key.Tenant, d.Key.Run, d.ID, d.Generation)
	t.errands.send(t.parts, name, cmd, func(s settled) {
		if s.Err == nil && s.Answer.Outcome == ringi.Accepted {
			t.observe.fired(t.clock.Now().Sub(d.FireAt))
			return
		}
		if void(s, d) && t.answering() == of {
			t.drop(d)
		}
	})
}

// drop notes a row that has no meaning in the database that answers.
func (t *timers) drop(d store.DueTimer) {
	of := t.answering()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != of {
		t.drops, t.of = nil, of
	}
	t.drops = append(t.drops, d)
}

// void reports whether the run does not have this timer any more, so that its
// row has no meaning. A firing that was refused for another reason is not.
func void(s settled, d store.DueTimer) bool {
	if s.state == nil {
		return false
	}
	if s.state.Paused == nil {
		for _, tm := range s.state.Timers {
			if tm.ID == d.ID && tm.Generation == d.Generation {
				return false
			}
		}
	}
	return true
}
