package sim

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/sim/draw"
)

// A node is a process with an engine in it. A crash drops the engine as kill -9
// would; a restart makes a new one, which knows nothing but the store.
type node struct {
	w       *world
	name    string
	clock   *skewed
	eng     *engine.Engine
	tap     *tap
	parts   []*part
	asked   []*asking
	up      bool
	cut     bool      // from the store
	sweeps  int       // rounds that should have looked for pairs
	beating bool      // a heartbeat is under way; the next waits
	asleep  time.Time // until then it stands still
	life    int
	looks   int                               // for pairs of an event and a wait
	claims  map[timerName]int                 // at which step its sweep first claimed a timer that it has not fired yet
	led     map[ringi.RunID]map[[32]byte]bool // the states that decisions about a run led to
}

// A part is one part of a node's engine, and when its next round is due.
type part struct {
	node  *node
	name  string
	run   func(context.Context) (bool, error)
	pause time.Duration
	due   time.Time
	busy  bool // in a round that waits for the store
	proof map[ringi.RunID]proof
}

// A proof is from where to where the events of a run were durable when the
// round that goes on wrote it, or claimed that it stood there.
type proof struct{ from, to int64 }

// An asking is a long poll that a node holds.
type asking struct {
	asked *engine.Asked
	until time.Time
	reply func([]ringi.Task)
}

// pauseOf is how long a part waits after a round without work: some longer than
// in production, for a world has other things to do than to look in vain.
func pauseOf(name string) time.Duration {
	switch name {
	case "committer":
		return time.Hour
	case "timers":
		return 4 * engine.DefaultTimerScan
	case "waits":
		return 3 * time.Second
	case "fleet", "roster":
		return 10 * time.Second
	}
	return 3 * engine.DefaultLeaseScan / 2
}

// start brings the node up.
func (n *node) start() {
	w := n.w
	n.life++
	n.tap = newTap(n)
	n.cut = false
	plan := w.shape
	eng, err := engine.New(engine.Config{
		Store: n.tap, Records: n.tap, Catalog: n.tap, Events: n.tap,
		Decide: w.watch.decide(n), Observer: n.observer(),
		Committers: plan.committers, BatchWrites: plan.batch, CacheBytes: plan.cache, SnapshotEvery: plan.snapshots,
		Fleet: n.meeting(), Version: "sim",
		Now: n.clock.now, Random: draw.New(w.options.Seed, draw.StreamIDs+uint64(w.lives)),
	})
	w.lives++
	if err != nil {
		w.fail("engine", "node %s: %v", n.name, err)
		return
	}
	n.eng, n.up, n.parts, n.asked, n.beating = eng, true, nil, nil, false
	n.led, n.claims, n.asleep = map[ringi.RunID]map[[32]byte]bool{}, map[timerName]int{}, time.Time{}
	for _, p := range eng.Parts() {
		n.parts = append(n.parts, &part{node: n, name: p.Name, run: p.Round, pause: pauseOf(p.Name), due: w.now})
	}
	w.tell("node %s is up", n.name)
}

func (n *node) observer() engine.Observer {
	return engine.Observer{
		Quarantined: func(_ ringi.Tenant, run ringi.RunID, err error) {
			n.w.fail("quarantined", "node %s cannot read or decide run %s: %v", n.name, short(run), err)
		},
	}
}

// crash kills the node. Whoever is inside one of its calls finds out.
func (n *node) crash() {
	if !n.up {
		return
	}
	n.up, n.tap.dead, n.eng, n.parts, n.asked = false, true, nil, nil, nil
	n.w.tell("node %s is dead", n.name)
	n.w.after(n.w.order.Span(100*time.Millisecond, 25*time.Second), "restart of "+n.name, n.restart)
}

func (n *node) restart() {
	if !n.up {
		n.start()
	}
}

// guard runs something inside the node; it returns false when the node died on
// the way.
func (n *node) guard(do func()) (alive bool) {
	t := n.tap
	defer func() {
		if p := recover(); p != nil {
			if c, ok := p.(crashed); !ok || c.tap != t {
				panic(p)
			}
		}
	}()
	do()
	return !t.dead
}

// round lets the part do one round.
func (p *part) round() {
	n, w := p.node, p.node.w
	p.busy, p.proof = true, map[ringi.RunID]proof{}
	worked := false
	var err error
	before := w.inside
	w.inside = p
	alive := n.guard(func() { worked, err = p.run(context.Background()) })
	w.inside = before
	p.busy = false
	if !alive {
		w.trace("died ", n.name, " ", p.name)
		return
	}
	if worked || err != nil || p.name == "committer" {
		w.trace("round ", n.name, " ", p.name, " ", outcomeOf(err))
	}
	if p.name == "waits" && err == nil {
		n.sweeps++
	}
	switch {
	case err != nil:
		p.due = w.now.Add(w.order.Span(20*time.Millisecond, time.Second))
	case worked:
		p.due = w.now
	default:
		p.due = w.now.Add(w.order.Span(p.pause/2, p.pause+p.pause/2))
	}
	if worked || p.name == "leases" || p.name == "timers" || p.name == "waits" {
		n.poke(p)
	}
	n.answerPolls()
}

// poke makes everything due that may have been given something to do. A hint
// too many does no harm.
func (n *node) poke(by *part) {
	for _, p := range n.parts {
		switch {
		case p.name == "committer":
			p.due = earlier(p.due, n.w.now)
		case by != nil && by.name == "committer" && (p.name == "dispatcher" || p.name == "waits"):
			p.due = earlier(p.due, n.w.now.Add(time.Millisecond))
		}
	}
}

// awake reports whether the node runs and does not stand still.
func (n *node) awake() bool { return n.up && !n.asleep.After(n.w.now) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// answerPolls answers the long polls that got something, or whose time is over.
func (n *node) answerPolls() {
	n.asked = slices.DeleteFunc(n.asked, func(a *asking) bool {
		tasks, done := a.asked.Tasks()
		if !done && !n.w.now.Before(a.until) {
			a.asked.End(false)
			tasks, done = a.asked.Tasks()
		}
		if done {
			n.w.watch.given(n, tasks)
			a.reply(tasks)
		}
		return done
	})
}

// poll takes a poll in.
func (n *node) poll(req ringi.PollRequest, reply func([]ringi.Task)) {
	n.guard(func() {
		asked, err := n.eng.Ask(context.Background(), req)
		if err != nil {
			reply(nil)
			return
		}
		n.asked = append(n.asked, &asking{asked: asked, until: n.w.now.Add(req.Wait), reply: reply})
		n.answerPolls()
	})
}

// do takes commands in and replies when all are durable.
func (n *node) do(commands []ringi.Command, reply func([]ringi.Result)) {
	results, left := make([]ringi.Result, len(commands)), len(commands)
	for i, cmd := range commands {
		n.w.watch.submitted(cmd)
		alive := n.guard(func() {
			n.eng.Submit(context.Background(), cmd, func(r ringi.Result) {
				n.w.watch.answered(n, cmd, r)
				results[i] = r
				if left--; left == 0 {
					reply(results)
				}
			})
		})
		if !alive {
			return
		}
	}
	n.poke(nil)
	n.answerPolls()
}

// beat takes heartbeats in.
func (n *node) beat(beats []ringi.Beat, reply func([]ringi.BeatAnswer)) {
	if n.beating {
		n.w.after(time.Millisecond, "heartbeat waits at "+n.name, func() {
			if n.up {
				n.beat(beats, reply)
			}
		})
		return
	}
	n.beating = true
	n.guard(func() {
		answers, err := n.eng.Heartbeat(context.Background(), beats...)
		n.beating = false
		if err == nil {
			reply(answers)
		}
	})
}
