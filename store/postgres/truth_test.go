package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/workflow"
)

// -programs plays more of the simulator's programs, from -program on.
var (
	programs     = flag.Int("programs", 2, "how many programs of the simulator two engines play on one database")
	firstProgram = flag.Uint64("program", 1, "the seed of the first of them")
)

// W6, W31, TC-16, TC-22, TC-26, TC-31, TC-61: two engines on one database are
// one truth. Programs of the simulator are played with everybody at once while
// answers are lost and nodes are killed. What callers were answered about start
// keys, claims, results and votes is what one store, asked by one caller after
// the other, could have answered.
func TestTwoEnginesAreOneTruth(t *testing.T) {
	seen := map[string]int{}
	// On a busy machine less happens in the time of a program: then there are more of them.
	for i := 0; i < *programs || *programs > 1 && i < 5**programs && len(absent(seen)) > 0; i++ {
		seed := *firstProgram + uint64(i)
		t.Run(fmt.Sprint("program ", seed), func(t *testing.T) {
			t.Logf("to repeat it: go test -race -run TestTwoEnginesAreOneTruth ./store/postgres -programs 1 -program %d", seed)
			c := newCluster(t, seed)
			c.play(seed)
			c.rest()
			c.history.check(t)
			r, err := replay.Run(t.Context(), c.nodes[0].store, replay.Query{})
			if err != nil || len(r.Mismatches) > 0 || r.Runs < len(c.runs) {
				t.Errorf("replay of %d runs: %+v, %v", len(c.runs), r, err)
			}
			for i, n := range c.nodes {
				t.Logf("node %d: %d commits, %d writes lost to the other", i, n.commits.Load(), n.lost.Load())
				if n.commits.Load() == 0 {
					t.Errorf("node %d committed nothing", i)
				}
			}
			for what, n := range c.history.seen {
				seen[what] += n
			}
		})
	}
	if list := absent(seen); *programs > 1 && len(list) > 0 {
		t.Errorf("%q never came: %v", list, seen)
	}
	t.Log(seen)
}

// absent are the answers that did not come. The rarer ones come in most programs,
// and the checker has a test of its own.
func absent(seen map[string]int) (list []string) {
	for _, what := range []string{
		"start created", "start repeated", "start start_key_conflict", "read accepted", "claim accepted",
		"begin accepted", "succeeded accepted", "succeeded repeated", "failed accepted", "vote accepted", "vote already_decided", "read nothing",
	} {
		if seen[what] == 0 {
			list = append(list, what)
		}
	}
	return list
}

// playTime is how long everything happens and breaks.
const playTime = 4 * time.Second

// play lets everybody do what the program says, while things break.
func (c *cluster) play(seed uint64) {
	ctx, stop := context.WithTimeout(c.t.Context(), playTime)
	defer stop()
	c.everybody(ctx, false, func(ctx context.Context) { c.storm(ctx, rand.New(rand.NewPCG(seed, 1))) })
}

// everybody lets clients of all kinds work until the context ends.
func (c *cluster) everybody(ctx context.Context, calm bool, beside func(context.Context)) {
	var all sync.WaitGroup
	loop := func(number uint64, actor ringi.Actor, rest time.Duration, do func(context.Context, *client)) {
		cl := c.client(number, actor)
		all.Go(func() {
			for ctx.Err() == nil {
				do(ctx, cl)
				pause(ctx, time.Duration(cl.draw.Below(int(rest))))
			}
		})
	}
	machine := func(id string) ringi.Actor { return ringi.Actor{ID: id, Kind: ringi.Machine} }
	for n := range uint64(4) {
		queue := "default"
		if n == 3 {
			queue = "side"
		}
		loop(10+n, machine(fmt.Sprint("worker ", n)), 20*time.Millisecond, func(ctx context.Context, cl *client) { cl.work(ctx, queue, calm) })
	}
	for n := range uint64(2) {
		if !calm {
			loop(20+n, ringi.Actor{ID: "erin", Kind: ringi.Person}, 200*time.Millisecond, func(ctx context.Context, cl *client) { cl.begin(ctx) })
		}
		loop(30+n, machine("desk"), 200*time.Millisecond, func(ctx context.Context, cl *client) { cl.vote(ctx, calm) })
	}
	loop(40, ringi.Actor{ID: "op", Kind: ringi.Person}, 300*time.Millisecond, func(ctx context.Context, cl *client) { cl.operate(ctx, calm) })
	all.Go(func() { beside(ctx) })
	all.Wait()
}

// rest goes on without any fault until every run has ended, or waits: for time,
// for an event, or for a vote of somebody whom the program does not have. That
// is then ended by an operator.
func (c *cluster) rest() {
	for _, n := range c.nodes {
		n.proxy.lose.Store(loseNothing)
		if n.service() == nil {
			eventually(c.t, "the restart of a node", func() error { return n.start(nil) })
		}
	}
	ctx, stop := context.WithCancel(c.t.Context())
	c.everybody(ctx, true, func(context.Context) {
		defer stop()
		eventually(c.t, "every run to end or to wait", func() error {
			moving, err := c.moving(ctx)
			if err == nil && len(moving) > 0 {
				err = fmt.Errorf("%d of %d runs move: %+v", len(moving), len(c.runs), moving[0])
			}
			return err
		})
	})
	for _, run := range c.runs {
		r := send(c.t.Context(), c.nodes[0].service(), ringi.Command{Run: run, Actor: ringi.Actor{ID: "op", Kind: ringi.Person}, Do: ringi.Terminate{Reason: "the end"}})
		if answerOf(r) == unknown {
			c.t.Errorf("run %s cannot be ended: %v", run, r.Err)
		}
	}
}

// moving lists the runs that are neither at their end nor wait for something
// that they name.
func (c *cluster) moving(ctx context.Context) (list []ringi.RunSummary, err error) {
	after := ""
	for {
		page, err := c.nodes[1].service().List(ctx, ringi.RunQuery{Tenant: ringi.DefaultTenant, After: after, Limit: 500})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Runs {
			waits := r.Status == ringi.Waiting && r.WaitingFor != "" && r.WaitingFor != "worker"
			if !r.Status.Final() && !waits {
				list = append(list, r)
			}
		}
		if after = page.Next; after == "" {
			return list, nil
		}
	}
}

// W31: rules that forget the fencing token are found by what callers are
// answered.
func TestEnginesThatForgetTheFencingTokenAreNoTruth(t *testing.T) {
	c := newCluster(t, 1)
	forget := func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
		d, err := ringi.Decide(def, s, cmd, ev)
		d.Needs = nil
		return d, err
	}
	for _, n := range c.nodes {
		n.stop()
		if err := n.start(forget); err != nil {
			t.Fatal(err)
		}
	}
	const source = "ringi: v1\nname: one\nsteps:\n  - { id: a, activity: work.put, effect: idempotent }\n"
	robot := ringi.Actor{ID: "robot", Kind: ringi.Machine}
	if p, err := c.nodes[0].eng.Publish(t.Context(), ringi.Publication{File: "one.yaml", Source: []byte(source), Actor: robot}); err != nil || p.Version == 0 {
		t.Fatalf("publish: %v %+v", err, p)
	}
	if r := send(t.Context(), c.nodes[0].service(), ringi.Command{Actor: robot, Do: ringi.Start{Definition: "one"}}); r.Err != nil {
		t.Fatal(r.Err)
	}
	h := c.history
	var first *ringi.Task
	eventually(t, "two hand-outs of one task", func() error {
		began := h.now()
		tasks, err := c.nodes[1].service().Poll(t.Context(), ringi.PollRequest{Tenant: ringi.DefaultTenant, Worker: "w", Queue: "default", Max: 1, Wait: time.Second})
		if err != nil || len(tasks) == 0 {
			return fmt.Errorf("%d tasks, %w", len(tasks), err)
		}
		h.add(h.calls, callName(tasks[0]), began, callIn{opClaim, tasks[0].Token}, string(ringi.Accepted), string(ringi.Accepted))
		if first != nil {
			return nil
		}
		first = &tasks[0]
		return fmt.Errorf("one")
	})
	began := h.now()
	r := send(t.Context(), c.nodes[0].service(), ringi.Command{Run: first.Run, Actor: robot, Do: ringi.CompleteActivity{CallRef: first.CallRef, Worker: "w"}})
	h.add(h.calls, callName(*first), began, callIn{opSucceeded, first.Token}, answerOf(r), answerOf(r))
	found := &verdict{TB: t}
	h.check(found)
	if answerOf(r) != string(ringi.Accepted) || found.errors != 1 {
		t.Errorf("answer %q, %d complaints, want an accepted result of an old token and one complaint", answerOf(r), found.errors)
	}
}

// A verdict counts complaints instead of failing.
type verdict struct {
	testing.TB
	errors int
}

// Errorf implements testing.TB.
func (v *verdict) Errorf(string, ...any) { v.errors++ }
