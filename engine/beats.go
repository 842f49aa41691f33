package engine

import (
	"context"
	"sync"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// beats gathers the heartbeats of all workers: while one call to the store is
// under way the next ones wait together, and become one call. No goroutine of
// its own is needed: whoever waits first makes the call for all.
type beats struct {
	*parts

	mu      sync.Mutex
	waiting []*beatCall
	busy    bool
}

// A beatCall is the beats of one request.
type beatCall struct {
	beats   []ringi.Beat
	answers []ringi.BeatAnswer
	err     error
	done    chan struct{} // closed when answers or err are set
	lead    chan struct{} // capacity 1; told to make the next call for all
}

// Heartbeat implements the waist's method.
func (b *beats) Heartbeat(ctx context.Context, list ...ringi.Beat) ([]ringi.BeatAnswer, error) {
	if len(list) == 0 {
		return nil, nil
	}
	c := &beatCall{beats: append([]ringi.Beat(nil), list...), done: make(chan struct{}), lead: make(chan struct{}, 1)}
	for i := range c.beats {
		c.beats[i].Tenant = tenantOr(c.beats[i].Tenant)
	}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if !b.busy {
		b.busy = true
		c.lead <- struct{}{}
	}
	b.mu.Unlock()
	select {
	case <-c.lead:
		b.round(context.WithoutCancel(ctx))
		<-c.done
	case <-c.done:
	case <-ctx.Done():
		b.leave(ctx, c)
		return nil, ctx.Err()
	}
	return c.answers, c.err
}

// leave lets a caller go whose beats may be under way. If it was told to lead
// just now, it leads.
func (b *beats) leave(ctx context.Context, c *beatCall) {
	select {
	case <-c.lead:
		b.round(context.WithoutCancel(ctx))
	case <-c.done:
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, w := range b.waiting {
			if w == c {
				b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			}
		}
	}
}

// round makes one call for all who wait, and tells the next of them to lead.
func (b *beats) round(ctx context.Context) {
	b.mu.Lock()
	calls := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	var all []ringi.Beat
	for _, c := range calls {
		all = append(all, c.beats...)
	}
	answers, err := b.send(ctx, all)
	for _, c := range calls {
		if err == nil {
			c.answers, answers = answers[:len(c.beats):len(c.beats)], answers[len(c.beats):]
		}
		c.err = err
		close(c.done)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.busy = false
		return
	}
	b.waiting[0].lead <- struct{}{}
}

func (b *beats) send(ctx context.Context, list []ringi.Beat) ([]ringi.BeatAnswer, error) {
	if !b.clock.Known() {
		if err := b.contact(ctx); err != nil {
			return nil, unavailable(err)
		}
	}
	now := b.clock.Now()
	rows := make([]store.Beat, len(list))
	for i, x := range list {
		rows[i] = store.Beat{
			Key: store.Key{Tenant: x.Tenant, Run: x.Run}, Step: x.Step, Direction: x.Direction, Token: x.Token, Now: now,
		}
		b.dispatch.alive(x.Tenant, x.Worker, now)
	}
	beaten, err := b.Store.Beat(ctx, rows...)
	if b.reach.Wrote(ctx, 0, err) != nil {
		return nil, unavailable(err)
	}
	answers := make([]ringi.BeatAnswer, len(list))
	ask := map[store.Key][]int{}
	for i, x := range beaten {
		answers[i].Outcome = ringi.Stale
		if x.OK {
			answers[i].Outcome = ringi.Accepted
		}
		if !x.OK || x.Held {
			ask[rows[i].Key] = append(ask[rows[i].Key], i)
		}
	}
	return answers, b.cancels(ctx, list, answers, ask)
}

// cancels finds out for the beats whose row is gone or held whether the run
// still wants their work. It reads the store: another node may have
// cancelled the run.
func (b *beats) cancels(ctx context.Context, list []ringi.Beat, answers []ringi.BeatAnswer, ask map[store.Key][]int) error {
	if len(ask) == 0 {
		return nil
	}
	keys := make([]store.Key, 0, len(ask))
	for key := range ask {
		keys = append(keys, key)
	}
	loaded, err := b.Store.Load(ctx, keys...)
	if b.reach.Note(ctx, err) != nil {
		return unavailable(err)
	}
	for _, l := range loaded {
		s, err := b.restore(ctx, l, l.Key)
		if err != nil {
			continue // a run that cannot be read asks nobody to stop
		}
		for _, i := range ask[l.Key] {
			answers[i].Cancel = unwanted(s.state, list[i].CallRef)
		}
	}
	return nil
}

// unwanted reports whether the run has no use for the call any more.
func unwanted(s *ringi.State, ref ringi.CallRef) bool {
	switch {
	case s.End != nil || s.Seq == 0:
		return true
	case ref.Direction != ringi.Forward:
		return false
	}
	for _, st := range s.Steps {
		if st.ID != ref.Step {
			continue
		}
		if st.Outcome == ringi.Open && st.Call != nil {
			return st.Call.Awaited
		}
		return st.Outcome != ringi.Succeeded
	}
	return s.Unwind != nil
}
