package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/sense"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

const (
	// defaultCommitters is how many batches are in the making at a time. With two
	// one decides while the other waits for the store, but batches are half as
	// large and there are more commits. That pays where the store works in another
	// process, and a store says so (Committers).
	defaultCommitters = 1
	// defaultCache holds some ten thousand runs of ordinary size.
	defaultCache = 64 << 20
	// defaultDrain is how long Close lets commits end: what orchestrators
	// grant a process before they kill it.
	defaultDrain = 30 * time.Second
	// pulse is how often an idle node asks the database for its clock, so that
	// it knows at once when either was away.
	pulse = time.Second
	// retryFirst and retryLast are the pauses after failures of the store:
	// short, since a failover takes seconds, and never so long that coming
	// back is late.
	retryFirst = 20 * time.Millisecond
	retryLast  = time.Second
)

// Config says what an engine runs on. The four stores are needed, and usually
// one value; everything else has a default.
type Config struct {
	Store   store.Store
	Records store.Records
	Catalog store.Catalog
	Events  store.Events

	// Fleet tells of other nodes on the store; nil: there can be none.
	Fleet store.Fleet
	// Version is what other nodes' people are told that this program is.
	Version string

	// Evaluator answers expressions; nil is workflow.CEL.
	Evaluator ringi.Evaluator
	// Decide stands in for the rules, to watch them; nil is ringi.Decide.
	Decide func(*workflow.Definition, *ringi.State, ringi.Command, ringi.Evaluator) (ringi.Decision, error)
	// Log takes what an operator must see; nil discards it.
	Log *slog.Logger
	// Observer is told what happens, for metrics.
	Observer Observer
	// Quotas bound definitions when they are published.
	Quotas Quotas
	// WorkersUp reports whether workers can reach this node; nil is always.
	// While they cannot no lease counts as lost.
	WorkersUp func() bool

	// Later is asked about each task of the engine's own queues that is about to
	// be handed out: how long it shall wait yet. One that waits goes back to its
	// queue as if it had never been taken out, and those behind it are handed out.
	// Calls follow each other, and must not block. Nil and 0 are not at all.
	Later func(ringi.Task) time.Duration

	// Probe writes so many bytes of no meaning to the store and takes them
	// away again. After a write that failed the node is not ready until a
	// probe or a write has worked; nil takes a read for proof. Errors as of
	// Store.Commit.
	Probe func(ctx context.Context, bytes int) error
	// Locks says what others hold locked in the store's database that this node
	// may wait for, and who; "" is nothing. It is asked while calls fail with
	// store.ErrLocked: such a node is ready for ten seconds more, and then says
	// what it waits for. Nil takes such a failure for a store that is away.
	Locks func(context.Context) (string, error)

	// Committers is the number of committers, as the store asks for; 0 is 1.
	Committers int
	// BatchWrites and BatchBytes bound one commit; 0 is 256 and 4 MiB.
	BatchWrites int
	BatchBytes  int
	// CacheBytes bounds the states in memory, roughly; 0 is 64 MiB.
	CacheBytes int
	// SnapshotEvery is the number of events between two snapshots of a run; 0
	// is 200.
	SnapshotEvery int
	// Drain bounds how long Close waits for commits; 0 is 30 s.
	Drain time.Duration

	// Now is the machine's clock with a monotonic reading; nil is time.Now.
	// What is stored is stamped with the database's clock.
	Now func() time.Time
	// Random is where ids come from; nil is crypto/rand. It must be safe for
	// concurrent use.
	Random io.Reader
}

// An Engine runs workflow definitions on a store. It implements ringi.Service;
// its methods may be called concurrently. Build it with New, and either Start
// it, or call the rounds of its Parts in an order of your own.
type Engine struct {
	parts   *parts
	beats   *beats
	door    *door
	reader  *reader
	leases  *leases
	timers  *timers
	stop    context.CancelFunc // of the sweeps
	kill    context.CancelFunc // of everything
	running sync.WaitGroup     // sweeps
	writing sync.WaitGroup     // committers
	once    sync.Once
	drainIn time.Duration
	calm    [][]byte // see Start
}

var _ ringi.Service = (*Engine)(nil)

// parts is what the parts of an engine share.
type parts struct {
	Config
	ev         ringi.Evaluator
	rules      func(*workflow.Definition, *ringi.State, ringi.Command, ringi.Evaluator) (ringi.Decision, error)
	snapshots  int64
	log        *slog.Logger
	observe    *Observer
	local      func() time.Time
	random     io.Reader
	limits     limits
	clock      *sense.Clock
	reach      *sense.Reach
	sick       quarantine
	committers []*committer
	catalog    *catalog
	dispatch   *dispatcher
	waits      *waits
	fleet      *fleet
	closed     atomic.Bool // nothing new is taken in

	mu          sync.Mutex
	incarnation string // of the database that answered last
}

type limits struct{ writes, bytes int }

// New makes an engine. It touches nothing; a store that is missing is an error.
func New(c Config) (*Engine, error) {
	if c.Store == nil || c.Records == nil || c.Catalog == nil || c.Events == nil {
		return nil, errors.New("engine: Store, Records, Catalog and Events are all needed; one store value usually serves for the four")
	}
	p := &parts{Config: c, ev: c.Evaluator, log: c.Log, observe: &c.Observer, local: c.Now, random: c.Random}
	if p.ev == nil {
		p.ev = workflow.CEL{}
	}
	if p.rules = c.Decide; p.rules == nil {
		p.rules = ringi.Decide
	}
	p.snapshots = int64(orInt(c.SnapshotEvery, snapshotEvery))
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.local == nil {
		p.local = time.Now
	}
	if p.random == nil {
		p.random = rand.Reader
	}
	up := c.WorkersUp
	if up == nil {
		up = func() bool { return true }
	}
	p.limits = limits{writes: orInt(c.BatchWrites, batchWrites), bytes: orInt(c.BatchBytes, batchBytes)}
	p.clock = sense.NewClock(p.local)
	p.reach = sense.NewReach(sense.ReachConfig{Local: p.local, Up: up, Log: p.log, Probe: p.Probe != nil, Asks: p.Locks != nil})
	p.catalog = &catalog{
		parts: p, quotas: c.Quotas,
		compiled: map[versionKey]*workflow.Definition{}, latest: map[nameKey]latestVersion{},
	}
	p.dispatch = &dispatcher{parts: p, wake: make(chan struct{}, 1)}
	p.fleet = newFleet(p)
	p.waits = &waits{parts: p, wake: make(chan struct{}, 1)}
	n := orInt(c.Committers, defaultCommitters)
	for range n {
		p.committers = append(p.committers, &committer{parts: p, in: newInbox(), cache: newCache(orInt(c.CacheBytes, defaultCache) / n)})
	}
	e := &Engine{
		parts: p, beats: &beats{parts: p}, door: &door{p}, reader: &reader{p},
		leases: &leases{parts: p}, timers: &timers{parts: p}, drainIn: c.Drain,
	}
	if e.drainIn <= 0 {
		e.drainIn = defaultDrain
	}
	return e, nil
}

func orInt(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// Publish stores a definition version, or returns the one that exists with
// this digest. A definition above a quota is refused with the code limit.
func (e *Engine) Publish(ctx context.Context, p ringi.Publication) (ringi.Published, error) {
	if e.parts.closed.Load() {
		return ringi.Published{}, draining()
	}
	return e.parts.catalog.Publish(ctx, p)
}

// Do decides commands and returns when they are durable. If ctx ends before,
// the results say unavailable, and the commands may still be carried out.
func (e *Engine) Do(ctx context.Context, commands ...ringi.Command) []ringi.Result {
	if anyWants(commands) {
		return e.doWanting(ctx, commands)
	}
	return e.door.Do(ctx, commands...)
}

// Poll takes tasks under a lease of five seconds, waiting up to 20 s. Tasks of
// a caller who went away meanwhile are given back.
func (e *Engine) Poll(ctx context.Context, p ringi.PollRequest) ([]ringi.Task, error) {
	if err := e.parts.fleet.outdated(); err != nil {
		return nil, err
	}
	if err := e.parts.touch(ctx); err != nil {
		return nil, err
	}
	return e.parts.dispatch.Poll(ctx, p)
}

// Heartbeat extends leases, also after their end while their token is current.
func (e *Engine) Heartbeat(ctx context.Context, list ...ringi.Beat) ([]ringi.BeatAnswer, error) {
	return e.beats.Heartbeat(ctx, list...)
}

// Run reads one run from the store.
func (e *Engine) Run(ctx context.Context, tenant ringi.Tenant, run ringi.RunID) (ringi.RunView, error) {
	return e.reader.Run(ctx, tenant, run)
}

// History reads a page of a run's log from the store.
func (e *Engine) History(ctx context.Context, q ringi.HistoryQuery) (ringi.HistoryPage, error) {
	return e.reader.History(ctx, q)
}

// List reads a page of one noun from the store.
func (e *Engine) List(ctx context.Context, q ringi.Query) (ringi.Page, error) {
	return e.reader.List(ctx, q)
}

// Ready says why this node cannot serve at the moment, or nil.
func (e *Engine) Ready() error {
	if e.parts.closed.Load() {
		return errors.New("engine: shutting down")
	}
	if err := e.parts.fleet.outdated(); err != nil {
		return err
	}
	return e.parts.reach.Lost()
}

// route gives a command to the committer of its run. done is called once, from
// the committer, or at once when the command is refused.
func (p *parts) route(cmd ringi.Command, def *workflow.Definition, done func(settled)) {
	r := &request{cmd: cmd, def: def, size: sizeOf(cmd.Do), done: done}
	if at, err := p.address(r); err != nil {
		r.refuse(err)
	} else {
		p.committers[at].in.put(r)
	}
}

// address finds the committer of a request. The id of the run that a start makes
// is drawn here.
func (p *parts) address(r *request) (at int, err error) {
	n := len(p.committers)
	start, ok := r.cmd.Do.(ringi.Start)
	if !ok {
		return committerOf(r.cmd.Run, n), nil
	}
	if start.Key != "" {
		at = committerOfStart(startName{r.cmd.Tenant, start.Definition, start.Key}, n)
	} else {
		at = p.spread(n)
	}
	if r.cmd.Run, err = newRunID(p.clock.Now(), p.random, at, n); err != nil {
		return 0, internalFault(err)
	}
	return at, nil
}

// spread picks the committer with the least to do.
func (p *parts) spread(n int) int {
	best := 0
	for i := 1; i < n; i++ {
		if p.committers[i].in.waiting() < p.committers[best].in.waiting() {
			best = i
		}
	}
	return best
}

// sizeOf is the payload of a command plus a little for the rest of it.
func sizeOf(a ringi.Action) int {
	const rest = 512
	switch a := a.(type) {
	case ringi.Start:
		return rest + len(a.Input)
	case ringi.CompleteActivity:
		return rest + len(a.Output)
	case ringi.DeliverEvent:
		return rest + len(a.Event.Data)
	case ringi.ResolveIncident:
		return rest + len(a.Output) + len(a.Input)
	}
	return rest
}

// contact asks the database for clock and incarnation, and after a write that
// failed whether it can be written.
func (p *parts) contact(ctx context.Context) error {
	if bytes := p.reach.Unwritten(); bytes > 0 {
		if err := p.reach.Wrote(ctx, bytes, p.Probe(ctx, bytes)); err != nil {
			return err
		}
	}
	sent := p.local()
	done, err := p.Store.Commit(ctx)
	if p.reach.Wrote(ctx, 0, err) != nil {
		return err
	}
	p.heard(sent, done)
	return nil
}

// touch makes sure that the database's clock is known.
func (p *parts) touch(ctx context.Context) error {
	if p.clock.Known() {
		return nil
	}
	if err := p.contact(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

// heard takes in what the database said of itself. Another incarnation, or a
// clock that was set, begins the wait for lost leases anew; another incarnation
// may know other definitions.
func (p *parts) heard(sent time.Time, done store.Committed) {
	jumped := p.clock.Observe(sent, done.Now)
	p.mu.Lock()
	other := p.incarnation != "" && p.incarnation != done.Incarnation
	p.incarnation = done.Incarnation
	p.mu.Unlock()
	if other {
		p.catalog.forget()
	}
	if jumped || other {
		p.reach.Restart()
		p.log.Warn("the database's clock was set, or another database answers", "clock", jumped, "incarnation", done.Incarnation)
	}
}

// answering is the incarnation of the database that answered last.
func (p *parts) answering() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.incarnation
}

// runFault is what a sender is told of a run that failed. A run that cannot be
// read or decided is quarantined; the others go on.
func (p *parts) runFault(key store.Key, err error) *ringi.Error {
	var broken *brokenRun
	if errors.As(err, &broken) && p.sick.put(key, p.clock.Now(), err) {
		p.log.Error("a run is quarantined", "tenant", int64(key.Tenant), "run", string(key.Run), "err", err)
		p.observe.quarantined(key, err)
	}
	return storeFault(err)
}

// leftOut takes an error that came beside a good answer, because rows were left
// out of it that cannot be read: each is told of once. Any other error is
// returned.
func (p *parts) leftOut(err error) error {
	var bad *store.Unreadable
	if !errors.As(err, &bad) {
		return err
	}
	for _, row := range bad.Rows {
		if p.sick.mark(row, p.clock.Now()) {
			p.log.Error("a row cannot be read", "tenant", int64(row.Key.Tenant), "run", string(row.Key.Run), "row", row.String())
			p.observe.quarantined(row.Key, &store.Unreadable{Rows: []store.BadRow{row}})
		}
	}
	return nil
}

// internalFault is a fault of ours; err is for the operator's log.
func internalFault(err error) *ringi.Error {
	return &ringi.Error{Code: ringi.CodeInternal, Message: "the server met a fault of its own", Hint: "its log says more", Err: err}
}

// storeFault makes the refusal for an error of the store, or passes on one
// that is a refusal already.
func storeFault(err error) *ringi.Error {
	var refusal *ringi.Error
	var broken *brokenRun
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &broken):
		return &ringi.Error{
			Code: ringi.CodeInternal, Message: whyAlone(err), Err: err,
			Hint: "`ringi replay` with the run's id names what does not hold together; put the database back from a backup, or mend the program",
		}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrDoubt),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable(err)
	}
	return internalFault(err)
}
