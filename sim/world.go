package sim

import (
	"context"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// options say what one world is made of.
type options struct {
	Config
	Seed uint64
	Tell bool // keep the story
}

// A shape is what is drawn for a world before it begins.
type shape struct {
	nodes, workers, definitions int
	starts, steps               int
	committers, batch           int
	cache, snapshots            int
	zombies                     bool // workers stand still with permissions in their hands
}

// A world is one seed being played: nodes with their engines, workers,
// services, people and clients around one store, under one clock, in one
// goroutine.
type world struct {
	options     options
	shape       shape
	order       *draw.Dice
	faults      *draw.Dice
	actors      *draw.Dice
	now         time.Time
	agenda      []*entry
	choices     []choice
	steps       int
	depth       int
	lives       int
	messages    int
	ordinal     int
	strength    map[fault.Kind]float64
	calm        bool
	db          *database
	nodes       []*node
	hands       []*hand
	service     *service
	crowd       *crowd
	broker      *broker
	watch       *watch
	sent        map[string]ringi.SentEvent
	keeps       map[string]time.Duration // for how long the sender of an event wants it kept
	stored      map[string]int           // at which step an event was stored
	timers      memory[store.DueTimer]
	tasks       memory[store.DueTask]
	waits       memory[store.Pair]
	definitions []*workflow.Definition
	sources     []string
	compiled    map[string]*workflow.Definition
	downUntil   time.Time
	count       *counters
	tracer      *tracer
	violation   *Violation
	started     int
	missed      *missed
	sleeper     *sleeper
	late        map[ringi.RunID]bool // an event came for it in the last moment
	inside      *part                // the innermost round that is under way
}

// counters count what happened in a world.
type counters struct {
	faults, commands, events map[string]int64
}

func newCounters() *counters {
	return &counters{map[string]int64{}, map[string]int64{}, map[string]int64{}}
}

func newWorld(o options) *world {
	w := &world{
		options: o, now: epoch, count: newCounters(), tracer: newTracer(o.Tell),
		order: draw.New(o.Seed, draw.StreamOrder), faults: draw.New(o.Seed, draw.StreamFault), actors: draw.New(o.Seed, draw.StreamActor),
		sent: map[string]ringi.SentEvent{}, keeps: map[string]time.Duration{}, stored: map[string]int{}, late: map[ringi.RunID]bool{}, compiled: map[string]*workflow.Definition{},
	}
	plan := draw.New(o.Seed, draw.StreamPlan)
	w.shape = shape{
		nodes: plan.From(1, 3), workers: plan.From(2, 4), definitions: plan.From(1, 3),
		starts: plan.From(2, 14), steps: plan.From(1000, 5000),
		committers: plan.From(1, 2), batch: draw.One(plan, 1, 3, 256), cache: draw.One(plan, 1, 12<<10, 64<<20), snapshots: draw.One(plan, 3, 9, 200),
	}
	w.strength = drawFaults(plan, o.Faults)
	if w.shape.zombies = plan.Hit(0.5) && w.strength[fault.ZombieWoken] > 0 && w.strength[fault.WorkerStalled] > 0; w.shape.zombies {
		w.strength[fault.ZombieWoken], w.strength[fault.WorkerStalled] = 1, 1
		w.shape.starts, w.shape.steps = 14, 6000
	}
	for _, s := range []struct {
		from int
		to   *int
	}{{o.Nodes, &w.shape.nodes}, {o.Workers, &w.shape.workers}, {o.Starts, &w.shape.starts}, {o.Steps, &w.shape.steps}} {
		if s.from > 0 {
			*s.to = s.from
		}
	}
	w.watch = newWatch(w)
	w.db = newDatabase(w)
	w.service, w.crowd, w.broker = newService(w), newCrowd(w), newBroker(w)
	return w
}

// done reports whether nothing more is to be played.
func (w *world) done() bool { return w.violation != nil }

// fail notes the first thing that must not be.
func (w *world) fail(what, format string, args ...any) {
	if w.violation != nil {
		return
	}
	w.violation = &Violation{Seed: w.options.Seed, What: what, Message: fmt.Sprintf(format, args...), Step: w.steps}
	w.tell("VIOLATION %s: %s", what, w.violation.Message)
}

// play plays the world to its end.
func (w *world) play() {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic", "%v\n%s", p, debug.Stack())
		}
	}()
	if w.options.Open != nil {
		defer func() { w.closed(w.db.Close()) }()
	}
	w.settle()
	w.storm()
	if !w.done() {
		w.afterwards()
	}
}

func (w *world) closed(err error) {
	if err != nil {
		w.fail("store", "it cannot be closed: %v", err)
	}
}

// settle brings everything up and publishes the definitions, before anything
// breaks.
func (w *world) settle() {
	for i := range w.shape.nodes {
		n := &node{w: w, name: string(rune('a' + i)), clock: newSkewed(w, time.Duration(i)*time.Hour)}
		w.nodes = append(w.nodes, n)
		n.start()
	}
	design := draw.New(w.options.Seed, draw.StreamDesign)
	for i := range w.shape.definitions {
		name := fmt.Sprintf("case%d", i+1)
		source := draw.Definition(design, name, w.shape.zombies)
		def, problems := workflow.Parse(name, []byte(source))
		if def == nil {
			w.fail("design", "a drawn definition is refused: %v\n%s", problems, source)
			return
		}
		w.definitions = append(w.definitions, def)
		w.sources = append(w.sources, source)
		w.compiled[def.Digest] = def
		w.publish(source)
	}
	for i := range w.shape.workers {
		queue := "default"
		if i%2 == 1 {
			queue = draw.QueueSide
		}
		h := newHand(w, fmt.Sprintf("worker %d", i+1), queue, 1+w.order.Below(3))
		w.hands = append(w.hands, h)
		h.start()
	}
	w.begin()
}

// publish stores a definition through the last node.
func (w *world) publish(source string) {
	calm := w.calm
	w.calm = true
	defer func() { w.calm = calm }()
	n := w.nodes[len(w.nodes)-1]
	robot, _ := draw.Person("robot")
	n.guard(func() {
		p, err := n.eng.Publish(context.Background(), ringi.Publication{File: "drawn.yaml", Source: []byte(source), Actor: robot})
		if err != nil || p.Version == 0 {
			w.fail("publish", "a drawn definition is refused: %v %v", err, p.Problems)
		}
	})
}

// begin puts everybody's first doings on the agenda.
func (w *world) begin() {
	every := func(low, high time.Duration, what string, do func()) {
		var again func()
		again = func() {
			if w.calm {
				return
			}
			if w.allowed() {
				do()
			}
			w.after(w.actors.Span(low, high), what, again)
		}
		w.after(w.actors.Span(0, high), what, again)
	}
	pause := 6 * time.Second
	if w.shape.zombies {
		pause = 2 * time.Second
	}
	every(0, pause, "start", w.start)
	every(time.Second, 15*time.Second, "vote", w.crowd.vote)
	every(time.Second, 20*time.Second, "operator", w.crowd.operate)
	every(time.Second, 15*time.Second, "event", func() { w.crowd.event(draw.One(w.actors, draw.EventNames()...), draw.One(w.actors, eventKeys()...)) })
	every(time.Second, 7*time.Second, "trouble", w.trouble)
	w.after(time.Second, "relay", w.broker.round)
}

func (w *world) start() {
	if w.started < w.shape.starts {
		w.started++
		w.crowd.begin()
	}
}

// storm plays with everything that may break.
func (w *world) storm() {
	for w.steps < w.shape.steps && !w.done() {
		w.step()
	}
}

// definition is the one that a run is pinned to.
func (w *world) definition(s *ringi.State) *workflow.Definition { return w.compiled[s.Digest] }

// digest is the trace so far.
func (w *world) digest() string {
	w.trace("end ", strconv.Itoa(w.steps), " ", w.now.String())
	return hex.EncodeToString(w.tracer.hash.Sum(nil))
}

// storeDown reports whether the database is away.
func (w *world) storeDown() bool { return w.downUntil.After(w.now) }
