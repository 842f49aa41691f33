package engine

import (
	"context"
	"fmt"
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
}

// Round claims one page of due timers and deletes the rows of dropped firings.
func (t *timers) Round(ctx context.Context) (worked bool, err error) {
	if !t.clock.known() {
		return false, nil
	}
	if err := t.settle(ctx); err != nil {
		return false, err
	}
	now := t.clock.now()
	due, err := t.Store.DueTimers(ctx, now, now.Add(timerClaim), timerPage)
	if t.reach.note(ctx, err) != nil {
		return false, err
	}
	for _, d := range due {
		if t.sick.err(d.Key, now) == nil {
			t.fire(d)
		}
	}
	return len(due) == timerPage, nil
}

func (t *timers) settle(ctx context.Context) error {
	t.mu.Lock()
	drops := t.drops
	t.drops = nil
	t.mu.Unlock()
	if len(drops) == 0 {
		return nil
	}
	// If this fails they are due again, and dropped again.
	return t.reach.note(ctx, t.Store.Settle(ctx, store.Settlement{Drops: drops}))
}

func (t *timers) fire(d store.DueTimer) {
	cmd := ringi.Command{
		Tenant: d.Key.Tenant, Run: d.Key.Run, Actor: ringi.Engine(),
		Do: ringi.FireTimer{Timer: d.ID, Generation: d.Generation},
	}
	name := fmt.Sprintf("%d/%s/%s/%d", d.Key.Tenant, d.Key.Run, d.ID, d.Generation)
	t.errands.send(t.parts, name, cmd, func(s settled) {
		if s.Err == nil && s.Answer.Outcome == ringi.Accepted {
			t.observe.fired(t.clock.now().Sub(d.FireAt))
			return
		}
		if void(s, d) {
			t.mu.Lock()
			t.drops = append(t.drops, d)
			t.mu.Unlock()
		}
	})
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
