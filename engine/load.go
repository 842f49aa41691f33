package engine

import (
	"context"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func keyOf(cmd ringi.Command) store.Key { return store.Key{Tenant: cmd.Tenant, Run: cmd.Run} }

// load reads the runs of the batch that are neither cached nor new.
func (c *committer) load(ctx context.Context, reqs []*request) (map[store.Key]store.Loaded, error) {
	var keys []store.Key
	cold := map[store.Key]store.Loaded{}
	for _, r := range reqs {
		key := keyOf(r.cmd)
		if _, twice := cold[key]; twice || r.def != nil || c.cache.get(key) != nil {
			continue
		}
		cold[key] = store.Loaded{}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return cold, nil
	}
	loaded, err := c.Store.Load(ctx, keys...)
	if c.reach.note(ctx, err) != nil {
		return nil, err
	}
	for _, l := range loaded {
		cold[l.Key] = l
	}
	return cold, nil
}

// group finds the group that a request belongs to, or begins it. A start whose
// key an earlier start of the batch took belongs to that one's run.
func (c *committer) group(ctx context.Context, b *batch, r *request, cold map[store.Key]store.Loaded) (*group, error) {
	key := keyOf(r.cmd)
	start, isStart := r.cmd.Do.(ringi.Start)
	name := startName{tenant: r.cmd.Tenant, definition: start.Definition, key: start.Key}
	if isStart && start.Key != "" {
		if g := b.byStart[name]; g != nil && g.after.Seq > 0 {
			return g, nil
		}
	}
	g := b.byRun[key]
	if g == nil {
		var err error
		if g, err = c.begin(ctx, r, key, cold); err != nil {
			return nil, err
		}
		b.byRun[key] = g
		b.groups = append(b.groups, g)
	}
	if isStart && start.Key != "" && (r.cmd.Lost == nil || r.cmd.Lost.Holder == nil) {
		b.byStart[name] = g
	}
	return g, nil
}

func (c *committer) begin(ctx context.Context, r *request, key store.Key, cold map[store.Key]store.Loaded) (*group, error) {
	if err := c.sick.err(key, c.clock.now()); err != nil {
		return nil, err
	}
	if r.def != nil { // a start, of a run that nobody knows yet
		empty := newStanding(&ringi.State{Tenant: key.Tenant, Run: key.Run}, nil, 0)
		return &group{key: key, def: r.def, before: empty, after: empty.state}, nil
	}
	s := c.cache.get(key)
	if s == nil {
		var err error
		if s, err = fold(cold[key], key); err != nil {
			return nil, &brokenRun{err}
		}
		if s.state.Seq > 0 {
			c.cache.put(key, s)
		}
	}
	g := &group{key: key, before: s, after: s.state}
	if s.state.Seq == 0 {
		return g, nil
	}
	def, err := c.catalog.pinned(ctx, s.state)
	if err != nil {
		return nil, err
	}
	g.def = def
	return g, nil
}

// fold makes the standing of a run from its snapshot and the log after it.
func fold(l store.Loaded, key store.Key) (s *standing, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("folding the log panicked: %v", p)
		}
	}()
	if l.Err != nil {
		return nil, l.Err
	}
	state := &ringi.State{Tenant: key.Tenant, Run: key.Run}
	var snap int64
	if l.Snapshot != nil {
		if state, err = ringi.DecodeState(l.Snapshot.Body); err != nil {
			return nil, err
		}
		snap = l.Snapshot.Seq
	}
	head := l.Head // stands also when the snapshot is at the end and no row follows
	var tail []ringi.Event
	last := state.Seq
	for _, row := range l.Rows {
		head = row.Head
		events, err := ringi.DecodeEvents(row.First, row.Body)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Seq <= last {
				continue // the snapshot was taken inside this row's transition
			}
			if e.Seq != last+1 {
				return nil, fmt.Errorf("the log goes from event %d to %d", last, e.Seq)
			}
			last = e.Seq
			tail = append(tail, e)
		}
	}
	state = ringi.Fold(state, tail...)
	return newStanding(state, head, snap), nil
}
