package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// batchWrites is the most commands of one commit. Measured on SQLite and
	// PostgreSQL, larger batches gain nothing and make the first one wait.
	batchWrites = 256
	// batchBytes is the most payload of one commit: a message that fits the
	// buffers of a connection.
	batchBytes = 4 << 20
	// fewCommands in a batch are no load: the next one waits for nobody.
	fewCommands = 4
	// enoughCommands wait for no others: they share the cost of their commit.
	enoughCommands = 64
	// gatherMost is the longest wait for others: hardly more than a commit takes.
	gatherMost = 10 * time.Millisecond
	// mostLosses is how often in a row a command may lose its race before its
	// sender is told to come back. Each loss means that another one won.
	mostLosses = 10
)

// A committer is the only writer of the runs that belong to it on this node.
// It takes what waits, decides it on the states that it holds, makes it
// durable in one transaction and only then answers. Round must not be called
// concurrently.
//
// The rejected alternative is one goroutine per run: it needs no batch, but
// commits each run for itself, and the disk grants few commits a second.
type committer struct {
	*parts
	in          *inbox
	cache       *cache
	incarnation string
	doubt       *batch // sent, and nobody knows whether it was done

	last struct { // batch that was committed
		commands int
		took     time.Duration // by the store
	}
}

// A batch is what one commit carries.
type batch struct {
	groups   []*group
	byRun    map[store.Key]*group
	byStart  map[startName]*group
	commands int
	writes   []store.Write
	of       []*group // of each write
	reserved reservation
}

// Round does one batch, or sends the one in doubt again.
func (c *committer) Round(ctx context.Context) (worked bool, err error) {
	if c.doubt != nil {
		return true, c.commit(ctx, c.doubt)
	}
	reqs := c.in.take(c.limits.writes, c.limits.bytes)
	if len(reqs) == 0 {
		return false, nil
	}
	if !c.clock.Known() {
		if err := c.contact(ctx); err != nil {
			refuseAll(reqs, unavailable(err))
			return true, err
		}
	}
	b, err := c.decide(ctx, reqs)
	if err != nil {
		return true, err
	}
	c.write(b)
	return true, c.commit(ctx, b)
}

// gather waits for company before a batch, under load and where other nodes write
// to the same store: for each of them half as long as the last commit took, so that
// all together keep the store a little busier than one would, with batches nearly as
// large. Without it the batches of three nodes are a sixth as large as those of one
// and cost the store nearly as much each; with twice the wait the store is idle at
// times. It ends when the batch is large enough for its cost to matter little.
func (c *committer) gather(ctx context.Context) {
	select {
	case <-c.in.enough: // of an earlier batch
	default:
	}
	others := c.fleet.others.Load()
	if others == 0 || c.last.commands < fewCommands || c.in.waiting() >= enoughCommands {
		return
	}
	timer := time.NewTimer(min(time.Duration(others)*c.last.took/2, gatherMost))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.in.enough:
	case <-ctx.Done():
	}
}

// decide turns requests into groups. The runs that are not in memory are read
// in one go before the first decision.
func (c *committer) decide(ctx context.Context, reqs []*request) (*batch, error) {
	b := &batch{commands: len(reqs), byRun: map[store.Key]*group{}, byStart: map[startName]*group{}}
	cold, err := c.load(ctx, reqs)
	if err != nil {
		refuseAll(reqs, unavailable(err))
		return nil, err
	}
	for _, r := range reqs {
		if r.cmd.At.IsZero() {
			r.cmd.At = c.clock.Now()
		}
		g, err := c.group(ctx, b, r, cold)
		switch {
		case err != nil:
			r.refuse(c.runFault(keyOf(r.cmd), err))
		case g.broken != nil:
			r.refuse(storeFault(g.broken))
		default:
			g.take(r, c.parts)
			if g.broken != nil {
				_ = c.runFault(g.key, g.broken)
			}
		}
	}
	return b, nil
}

// write makes the writes of the batch and reserves waiting polls for the tasks
// that can be born leased.
func (c *committer) write(b *batch) {
	b.reserved.expect(b.groups)
	b.writes, b.of = make([]store.Write, 0, len(b.groups)), make([]*group, 0, len(b.groups))
	for _, g := range b.groups {
		if len(g.answers) == 0 || g.proved() {
			continue
		}
		id, err := newCommitID(c.random)
		var w store.Write
		if err == nil {
			w, err = g.write(id, int(c.fleet.writes.Load()), c.snapshots)
		}
		if err != nil {
			g.refuse(c.runFault(g.key, err))
			continue
		}
		c.dispatch.reserve(&b.reserved, g, &w)
		b.writes = append(b.writes, w)
		b.of = append(b.of, g)
	}
}

// commit sends the batch and settles everything that became known. A write
// that can never be applied is taken out and the rest is sent again.
func (c *committer) commit(ctx context.Context, b *batch) error {
	for {
		var done store.Committed
		if len(b.writes) > 0 {
			sent := c.local()
			var err error
			done, err = c.Store.Commit(ctx, b.writes...)
			var bad *store.BadWrite
			switch {
			case c.wrote(ctx, b.writes, err) == nil:
				c.heard(sent, done)
				c.last.commands, c.last.took = b.commands, c.local().Sub(sent)
			case errors.As(err, &bad):
				c.remove(b, bad)
				continue
			case errors.Is(err, store.ErrUnavailable) && c.doubt == nil:
				c.drop(b, unavailable(err))
				return err
			default: // also what no store should answer: only repeating settles it
				c.doubt = b
				return err
			}
		}
		c.doubt = nil
		c.finish(ctx, b, done.Lost)
		return nil
	}
}

// wrote notes the outcome of a commit. About as much as the bodies of its
// writes again is what the pages around them take.
func (p *parts) wrote(ctx context.Context, writes []store.Write, err error) error {
	bytes := 0
	for i := range writes {
		bytes += 2 * len(writes[i].Body)
	}
	return p.reach.Wrote(ctx, max(bytes, 1), err)
}

// heard takes clock and incarnation from an answer of the store.
func (c *committer) heard(sent time.Time, done store.Committed) {
	c.parts.heard(sent, done)
	if c.incarnation != done.Incarnation {
		c.cache.clear()
		c.incarnation = done.Incarnation
	}
}

// remove takes the write out that no database will ever apply.
func (c *committer) remove(b *batch, bad *store.BadWrite) {
	g := b.of[bad.Index]
	g.refuse(c.runFault(g.key, &brokenRun{bad}))
	c.dispatch.release(&b.reserved, g)
	b.writes = append(b.writes[:bad.Index:bad.Index], b.writes[bad.Index+1:]...)
	b.of = append(b.of[:bad.Index:bad.Index], b.of[bad.Index+1:]...)
}

// drop answers a batch of which nothing was done.
func (c *committer) drop(b *batch, refusal *ringi.Error) {
	for _, g := range b.groups {
		c.cache.drop(g.key)
		c.dispatch.release(&b.reserved, g)
		g.refuse(refusal)
	}
	c.dispatch.settle(&b.reserved)
}

// refuse answers every request of the group with the same refusal.
func (g *group) refuse(refusal *ringi.Error) {
	for _, v := range g.answers {
		v.request.refuse(refusal)
	}
	g.answers = nil
}

func (r *request) refuse(err error) {
	r.done(settled{Result: ringi.Result{Run: r.cmd.Run, Err: err}})
}

func refuseAll(reqs []*request, err error) {
	for _, r := range reqs {
		r.refuse(err)
	}
}

// finish publishes what the commit proved: states to the cache, tasks to the
// polls that wait for them, answers to their senders. What was lost is decided
// again, before anything that came later.
func (c *committer) finish(ctx context.Context, b *batch, lost []store.LostWrite) {
	losers := map[*group]store.LostWrite{}
	for _, l := range lost {
		losers[b.of[l.Index]] = l
	}
	var again []*request
	for _, g := range b.groups {
		if l, ok := losers[g]; ok {
			c.dispatch.release(&b.reserved, g)
			again = append(again, c.lose(g, l)...)
		} else if len(g.events) > 0 && len(g.answers) > 0 {
			c.publish(g)
			if g.broken == nil {
				c.sick.cured(g.key)
			}
		}
	}
	c.dispatch.settle(&b.reserved)
	for i, w := range b.writes {
		if _, ok := losers[b.of[i]]; !ok {
			c.announce(b.of[i], w)
		}
	}
	c.in.back(again)
	if len(b.writes) > 0 {
		c.observe.committed(Batch{Commands: b.commands, Writes: b.writes, Lost: len(lost)})
	}
	for _, g := range b.groups {
		if _, ok := losers[g]; !ok {
			c.reply(ctx, g)
		}
	}
}

// publish keeps the new state for the next command; an ended run will hardly
// have one.
func (c *committer) publish(g *group) {
	if g.after.End != nil {
		c.cache.drop(g.key)
		return
	}
	s := g.standing
	c.cache.put(g.key, &s)
}

// announce wakes those who may have something to do behind a write.
func (c *committer) announce(g *group, w store.Write) {
	for _, t := range w.Tasks {
		if t.Row != nil && t.Lease == nil && !t.Row.Held {
			c.dispatch.ready(g.key, t.Row)
		}
	}
	for _, wait := range w.Waits {
		if wait.Row != nil {
			c.waits.opened(store.PairQuery{Tenant: g.key.Tenant, Name: wait.Row.Event, Key: wait.Row.Key})
		}
	}
}

func (c *committer) reply(ctx context.Context, g *group) {
	for _, v := range g.answers {
		if v.repair != nil {
			c.repair(ctx, g, v)
			continue
		}
		v.request.done(v.settled)
	}
}

// lose prepares the requests of a lost write for their next decision and
// returns them. An expiry is tried again only when it learned something about
// other tasks: its own lease is its whole meaning, and the next sweep looks anew.
func (c *committer) lose(g *group, l store.LostWrite) []*request {
	if l.What == store.CondSequence {
		c.cache.drop(g.key)
	}
	var again []*request
	for _, v := range g.answers {
		r := v.request
		r.losses++
		expiry, ok := r.cmd.Do.(ringi.ExpireLease)
		switch {
		case ok && l.What == store.CondTask && !tellsOfOthers(r.cmd.Lost, &l.Lost, expiry.Token):
			r.done(settled{Result: ringi.Result{Run: g.key.Run, Answer: ringi.Answer{Outcome: ringi.Stale}}})
		case r.losses > mostLosses:
			r.refuse(&ringi.Error{Code: ringi.CodeUnavailable, Message: "the run changes too fast", Hint: "send it again"})
		default:
			r.cmd.Lost = nextLost(r.cmd, l)
			again = append(again, r)
		}
	}
	g.answers = nil
	return again
}

// tellsOfOthers reports whether a loss says something new about tasks other than
// the one of a token. The same commands would be lost for ever without it.
func tellsOfOthers(known, l *ringi.Lost, token int64) bool {
	for lane, s := range l.Tasks {
		if ringi.TokenSeq(s.Token) == ringi.TokenSeq(token) {
			continue
		}
		if known == nil {
			return true
		}
		if was, ok := known.Tasks[lane]; !ok || was != s {
			return true
		}
	}
	return false
}

// nextLost is what a command is told of its loss. What was seen of task rows
// holds only while the run stands as it did then.
func nextLost(cmd ringi.Command, l store.LostWrite) *ringi.Lost {
	switch l.What {
	case store.CondSequence:
		return nil
	case store.CondStartKey:
		if _, ok := cmd.Do.(ringi.Start); !ok {
			return nil
		}
	}
	return withSeen(cmd.Lost, &l.Lost)
}

// repair starts the run that undoes an effect which was found after its run
// had ended. The worker that reported it is answered only when that run
// exists: if this node dies before, the worker reports again.
func (c *committer) repair(ctx context.Context, g *group, v verdict) {
	start := *v.repair
	def, err := c.catalog.pinned(ctx, g.after)
	if err == nil {
		cmd := ringi.Command{Tenant: g.key.Tenant, Actor: ringi.Engine(), Do: start}
		c.route(cmd, def, func(s settled) {
			if s.Err != nil {
				v.Result = ringi.Result{Run: g.key.Run, Err: unavailable(fmt.Errorf("start of the repair run: %w", s.Err))}
			}
			v.request.done(v.settled)
		})
	} else {
		v.request.refuse(unavailable(fmt.Errorf("start of the repair run: %w", err)))
	}
}

// unavailable is the refusal for what nothing was done about.
func unavailable(err error) *ringi.Error {
	return &ringi.Error{
		Code: ringi.CodeUnavailable, Message: "the store cannot be reached; nothing was changed",
		Hint: "send it again", Err: err,
	}
}
