package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/sim"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/workflow"
)

// haste is how many times faster than the machine's the clocks of a cluster
// run, its database's and its nodes', so that leases and timers end in a test.
const haste = 10

// A hasty store is a database with a hasty clock.
type hasty struct {
	*postgres.Store
	since time.Time
}

func (h hasty) now() time.Time { return h.since.Add(haste * time.Since(h.since)) }

// Commit implements store.Store.
func (h hasty) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	c, err := h.Store.Commit(ctx, writes...)
	if err == nil {
		c.Now = h.since.Add(haste * c.Now.Sub(h.since)).UTC().Truncate(time.Microsecond)
	}
	return c, err
}

// A cluster is two engines on one database, each through a proxy of its own.
type cluster struct {
	t       testing.TB
	since   time.Time
	program sim.Program
	defs    map[string]*workflow.Definition
	history *history
	nodes   [2]*clusterNode

	mu   sync.Mutex
	runs []ringi.RunID
}

// A clusterNode is an engine that can be killed and started again.
type clusterNode struct {
	c       *cluster
	skew    time.Duration // of its machine's clock
	proxy   *proxy
	url     string
	commits atomic.Int64 // that reached the store
	lost    atomic.Int64 // writes that lost their race to the other node

	mu    sync.Mutex
	eng   *engine.Engine // nil: it is dead
	store *postgres.Store
}

func newCluster(t testing.TB, seed uint64) *cluster {
	t.Helper()
	c := &cluster{t: t, since: time.Now(), program: sim.Draw(seed, 3), defs: map[string]*workflow.Definition{}, history: newHistory()}
	url := database(t)
	for i := range c.nodes {
		n := &clusterNode{c: c, skew: time.Duration(i) * time.Hour}
		n.proxy, n.url = proxied(t, url)
		c.nodes[i] = n
		if err := n.start(nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.stop)
	}
	robot := ringi.Actor{ID: "robot", Kind: ringi.Machine}
	for i, source := range c.program.Sources {
		p, err := c.nodes[i%2].eng.Publish(t.Context(), ringi.Publication{File: "drawn.yaml", Source: []byte(source), Actor: robot})
		if err != nil || p.Version == 0 {
			t.Fatalf("publish: %v %v\n%s", err, p.Problems, source)
		}
		def, _ := workflow.Parse(p.Name, []byte(source))
		c.defs[p.Name] = def
	}
	return c
}

// start begins a new life of the node.
func (n *clusterNode) start(decide func(*workflow.Definition, *ringi.State, ringi.Command, ringi.Evaluator) (ringi.Decision, error)) error {
	s, err := postgres.Open(context.Background(), postgres.Config{URL: n.url, Writers: 3, Readers: 3, Foreign: true})
	if err != nil {
		return err
	}
	h := hasty{s, n.c.since}
	eng, err := engine.New(engine.Config{
		Store: h, Records: s, Catalog: s, Events: s, Probe: s.Probe, Decide: decide,
		Now:   func() time.Time { return h.now().Add(n.skew) },
		Drain: 100 * time.Millisecond,
		Observer: engine.Observer{Committed: func(b engine.Batch) {
			n.commits.Add(1)
			n.lost.Add(int64(b.Lost))
		}},
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	eng.Start()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.eng, n.store = eng, s
	return nil
}

// kill ends a life as a crash does: nothing of it reaches the database any more.
func (n *clusterNode) kill() {
	n.proxy.refuses.Store(true)
	n.proxy.cut()
	n.stop()
	n.proxy.refuses.Store(false)
}

func (n *clusterNode) stop() {
	n.mu.Lock()
	eng, s := n.eng, n.store
	n.eng, n.store = nil, nil
	n.mu.Unlock()
	if eng != nil {
		_ = eng.Close() // it has nothing to say
		_ = s.Close()   // its connections may be cut
	}
}

// service is the node's engine, or nil.
func (n *clusterNode) service() ringi.Service {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.eng == nil {
		return nil
	}
	return n.eng
}

// pause waits a little, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// storm breaks things until the context ends: answers and requests are cut off,
// nodes are killed.
func (c *cluster) storm(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(random.IntN(400))*time.Millisecond)
		n := c.nodes[random.IntN(2)]
		switch random.IntN(6) {
		case 0, 1:
			n.proxy.lose.Store(loseAnswer)
		case 2:
			n.proxy.lose.Store(loseRequest)
		case 3:
			n.proxy.cut()
		case 4:
			n.kill()
			pause(ctx, time.Duration(random.IntN(300))*time.Millisecond)
			eventually(c.t, "the restart of a node", func() error { return n.start(nil) })
		}
	}
}

// A client sends commands through any node. It is one goroutine.
type client struct {
	c     *cluster
	draw  *sim.Caller
	actor ringi.Actor
}

func (c *cluster) client(number uint64, actor ringi.Actor) *client {
	return &client{c: c, draw: c.program.Caller(number), actor: actor}
}

// any is a node that runs; nil when there is none.
func (cl *client) any() ringi.Service {
	i := cl.draw.Below(2)
	if s := cl.c.nodes[i].service(); s != nil {
		return s
	}
	return cl.c.nodes[1-i].service()
}

// patience is how long a client waits for an answer.
const patience = 5 * time.Second

// send sends a command once.
func send(ctx context.Context, s ringi.Service, cmd ringi.Command) ringi.Result {
	if s == nil {
		return ringi.Result{Err: &ringi.Error{Code: ringi.CodeUnavailable}}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd.Tenant = ringi.DefaultTenant
	return s.Do(ctx, cmd)[0]
}

// insist sends a command until it is answered, now and then through two nodes
// at once; note is told of each answer.
func (cl *client) insist(ctx context.Context, cmd ringi.Command, note func(began int64, r ringi.Result)) (r ringi.Result) {
	var beside sync.WaitGroup
	defer beside.Wait()
	if other := cl.any(); cl.draw.Hit(0.25) {
		beside.Go(func() {
			began := cl.c.history.now()
			note(began, send(ctx, other, cmd))
		})
	}
	for range 5 {
		began := cl.c.history.now()
		r = send(ctx, cl.any(), cmd)
		note(began, r)
		if answerOf(r) != unknown || ctx.Err() != nil {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	return r
}

// begin starts a run, and reads who has its key.
func (cl *client) begin(ctx context.Context) {
	h, start := cl.c.history, cl.draw.Start()
	key, err := ringi.StartKey(cl.c.defs[start.Definition], start, workflow.CEL{})
	if err != nil {
		cl.c.t.Errorf("start key: %v", err)
	}
	object := start.Definition + " " + key
	cl.insist(ctx, ringi.Command{Actor: cl.actor, Do: start}, func(began int64, r ringi.Result) {
		out := startOut{answerOf(r), r.Run}
		if r.Created {
			out.answer = created
			cl.c.mu.Lock()
			cl.c.runs = append(cl.c.runs, r.Run)
			cl.c.mu.Unlock()
		}
		if r.Err != nil {
			out.run = ""
		}
		if key != "" {
			h.add(h.starts, object, began, startIn{input: string(start.Input)}, out, out.answer)
		}
	})
	if s := cl.any(); key != "" && s != nil {
		began := h.now()
		page, err := s.List(ctx, ringi.RunQuery{Tenant: ringi.DefaultTenant, Definition: start.Definition, Key: key})
		if err != nil {
			return
		}
		out := startOut{answer: nothing}
		if len(page.Runs) > 0 {
			out = startOut{string(ringi.Accepted), page.Runs[0].Run}
		}
		h.add(h.starts, object, began, startIn{read: true}, out, out.answer)
	}
}

// voters are the people of the programs.
func voters() []ringi.Actor { return sim.People() }

// vote reads what is asked and votes on one of it, or takes a vote back. With
// all, everybody says yes to everything.
func (cl *client) vote(ctx context.Context, all bool) {
	s, h := cl.any(), cl.c.history
	if s == nil {
		return
	}
	began := h.now()
	page, err := s.List(ctx, ringi.ApprovalQuery{Tenant: ringi.DefaultTenant, Limit: 500})
	if err != nil || len(page.Approvals) == 0 {
		return
	}
	for i := range page.Approvals {
		a := &page.Approvals[i]
		var votes []string
		for _, v := range a.Votes {
			votes = append(votes, mark(v.Person, v.Approve))
		}
		slices.Sort(votes)
		h.add(h.votes, string(a.Run)+" "+a.Step, began, voteIn{op: opRead, asked: a}, voteOut{nothing, strings.Join(votes, "")}, nothing)
	}
	if all {
		for i := range page.Approvals {
			a := &page.Approvals[i]
			for _, p := range voters() {
				cl.cast(ctx, a, p, ringi.DecideApproval{Step: a.Step, Approve: true, Digest: a.Digest})
			}
		}
		return
	}
	a := &page.Approvals[cl.draw.Below(len(page.Approvals))]
	p, v := cl.draw.Vote(*a)
	cl.cast(ctx, a, p, v)
	if cl.draw.Hit(0.15) {
		cl.insist(ctx, ringi.Command{Run: a.Run, Actor: p, Do: ringi.WithdrawDecision{Step: a.Step, Reason: "drawn"}}, func(began int64, r ringi.Result) {
			answer := answerOf(r)
			if answer == string(ringi.CodeForbidden) {
				answer = refused
			}
			h.add(h.votes, string(a.Run)+" "+a.Step, began, voteIn{op: opWithdraw, person: p.ID, asked: a}, voteOut{answer: answer}, answer)
		})
	}
}

func (cl *client) cast(ctx context.Context, a *ringi.ApprovalView, p ringi.Actor, v ringi.DecideApproval) {
	h := cl.c.history
	in := voteIn{op: opVote, person: p.ID, approve: v.Approve, right: mayVote(p, a), same: v.Digest == a.Digest, asked: a}
	cl.insist(ctx, ringi.Command{Run: a.Run, Actor: p, Do: v}, func(began int64, r ringi.Result) {
		answer := answerOf(r)
		h.add(h.votes, string(a.Run)+" "+a.Step, began, in, voteOut{answer: answer}, answer)
	})
}

// operate answers an incident, sends an event, and holds up some run. When it
// is calm it answers all incidents and goes on with all that is held up.
func (cl *client) operate(ctx context.Context, calm bool) {
	s := cl.any()
	if s == nil {
		return
	}
	page, err := s.List(ctx, ringi.IncidentQuery{Tenant: ringi.DefaultTenant, Limit: 500})
	for _, i := range page.Incidents {
		if calm || cl.draw.Hit(0.3) {
			send(ctx, s, ringi.Command{Run: i.Run, Actor: cl.actor, Do: cl.draw.Resolve(i.Incident)})
		}
	}
	send(ctx, s, ringi.Command{Actor: cl.actor, Do: cl.draw.Event()})
	page, more := s.List(ctx, ringi.RunQuery{Tenant: ringi.DefaultTenant, Limit: 500})
	if err != nil || more != nil {
		return
	}
	for _, r := range page.Runs {
		var do ringi.Action
		switch {
		case r.Status == ringi.Paused && (calm || cl.draw.Hit(0.3)):
			do = ringi.Resume{Reason: "drawn"}
		case !calm && !r.Status.Final() && cl.draw.Hit(0.03):
			do = ringi.Pause{Reason: "drawn"}
		case !calm && !r.Status.Final() && cl.draw.Hit(0.02):
			do = ringi.Cancel{Reason: "drawn"}
		default:
			continue
		}
		send(ctx, s, ringi.Command{Run: r.Run, Actor: cl.actor, Do: do})
	}
}

// work takes tasks and performs them, some so slowly that their leases end.
func (cl *client) work(ctx context.Context, queue string, calm bool) {
	s, h := cl.any(), cl.c.history
	if s == nil {
		return
	}
	began := h.now()
	tasks, err := s.Poll(ctx, ringi.PollRequest{Tenant: ringi.DefaultTenant, Worker: cl.actor.ID, Queue: queue, Max: 3, Wait: 100 * time.Millisecond})
	if err != nil {
		return
	}
	for _, t := range tasks {
		h.add(h.calls, callName(t), began, callIn{opClaim, t.Token}, string(ringi.Accepted), string(ringi.Accepted))
	}
	for _, t := range tasks {
		cl.perform(ctx, s, t, calm)
	}
}

func callName(t ringi.Task) string { return fmt.Sprint(t.Run, " ", t.Step, " ", t.Direction) }

// perform asks for permission, calls and reports, each through any node.
func (cl *client) perform(ctx context.Context, s ringi.Service, t ringi.Task, calm bool) {
	h := cl.c.history
	tell := func(op string, do ringi.Action) string {
		r := cl.insist(ctx, ringi.Command{Run: t.Run, Actor: cl.actor, Do: do}, func(began int64, r ringi.Result) {
			h.add(h.calls, callName(t), began, callIn{op, t.Token}, answerOf(r), answerOf(r))
		})
		return answerOf(r)
	}
	if !calm && cl.draw.Hit(0.15) {
		pause(ctx, time.Second) // the hand-over lapses
	}
	if t.Begin {
		if tell(opBegin, ringi.BeginActivity{CallRef: t.CallRef, Worker: cl.actor.ID}) != string(ringi.Accepted) {
			return
		}
		if !calm && cl.draw.Hit(0.1) {
			pause(ctx, 2*time.Second) // the lease ends
		}
	} else if cl.draw.Hit(0.5) {
		_, _ = s.Heartbeat(ctx, ringi.Beat{Tenant: t.Tenant, Run: t.Run, CallRef: t.CallRef, Worker: cl.actor.ID}) // a hint
	}
	output, failure := cl.draw.Perform(t)
	if failure != nil && !calm {
		tell(opFailed, ringi.FailActivity{CallRef: t.CallRef, Worker: cl.actor.ID, Failure: *failure})
		return
	}
	if failure != nil {
		output = json.RawMessage(`{"id":"calm","n":1}`)
	}
	tell(opSucceeded, ringi.CompleteActivity{CallRef: t.CallRef, Worker: cl.actor.ID, Output: output})
}
