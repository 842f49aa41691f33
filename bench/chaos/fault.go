package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A kind of fault.
type kind int

const (
	kill     kind = iota // SIGKILL, and started again
	stop                 // past the leases, and continued
	starve               // of nine tenths of the processor
	broker               // killed and started again
	database             // crashed and recovered
)

// deck is how often each kind comes in turn. Every kind has come once it is dealt.
// constant: only read.
var deck = []kind{kill, kill, kill, kill, kill, kill, kill, stop, stop, stop, starve, broker, database}

const (
	// faultEvery is the mean time between two faults: short enough that they meet,
	// long enough that work goes on in between.
	faultEvery = 1200 * time.Millisecond

	// awayLeast and awayMost bound how long a process stays away after a kill, broker
	// and database too.
	awayLeast = 50 * time.Millisecond
	awayMost  = 1200 * time.Millisecond

	// stopLeast and stopMost bound a stop: past relayLease and ackWait, on both sides
	// of idleLimit.
	stopLeast = 2500 * time.Millisecond
	stopMost  = 5 * time.Second

	// starveFor is how long a process is starved: it runs for starveRun and is stopped
	// for starveHold, again and again, which needs no processor of others.
	starveFor  = 3 * time.Second
	starveRun  = 10 * time.Millisecond
	starveHold = 90 * time.Millisecond
)

// A fault is something that is going to happen.
type fault struct {
	at    time.Duration // since the beginning
	kind  kind
	role  string // whose processes it hits
	nth   int
	lasts time.Duration
}

// drawFaults draws what happens within span. One seed draws the same every time.
func drawFaults(seed uint64, span time.Duration) (all []fault) {
	chance := rand.New(rand.NewPCG(seed, 0x6368616f73)) // a stream of its own per seed
	turns := map[string]int{}
	roles := []string{roleRelay, roleConsumer, roleProducer, roleRelay, roleConsumer}
	sizes := map[string]int{roleProducer: producers, roleRelay: relays, roleConsumer: consumers}
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(chance.Float64()*float64(most-least))
	}
	var hand []kind
	at := time.Duration(0)
	for {
		if at += between(faultEvery/2, faultEvery*3/2); at >= span {
			return all
		}
		if len(hand) == 0 {
			hand = append(hand, deck...)
			chance.Shuffle(len(hand), func(i, j int) { hand[i], hand[j] = hand[j], hand[i] })
		}
		f := fault{at: at, kind: hand[0], lasts: between(awayLeast, awayMost)}
		hand = hand[1:]
		switch f.kind {
		case broker:
			f.role = roleBroker
		case database:
		default:
			f.role = roles[chance.IntN(len(roles))]
			f.nth = turns[f.role] % sizes[f.role] // each has its turns
			turns[f.role]++
		}
		switch f.kind {
		case stop:
			f.lasts = between(stopLeast, stopMost)
		case starve:
			f.lasts = starveFor
		}
		all = append(all, f)
	}
}

// counts are the faults that hit.
type counts struct {
	mu                                       sync.Mutex
	kills, stops, starved, broker, databases int
}

func (c *counts) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

func (c *counts) into(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Kills, r.Stops, r.Starved, r.BrokerRestarts, r.DatabaseRestarts = c.kills, c.stops, c.starved, c.broker, c.databases
}

// torment has the faults happen, side by side where they last, and returns when the
// last is over.
func (w *world) torment(ctx context.Context) error {
	began := w.now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var happening sync.WaitGroup
	errs := make(chan error, 1)
	var err error
	for _, f := range drawFaults(w.Seed, w.For) {
		if err = pause(ctx, f.at-w.now().Sub(began)); err != nil {
			break
		}
		happening.Go(func() {
			if err := w.happen(ctx, f); err != nil && ctx.Err() == nil {
				select {
				case errs <- err:
					cancel()
				default: // another came first
				}
			}
		})
	}
	if err == nil {
		err = pause(ctx, w.For-w.now().Sub(began))
	}
	happening.Wait()
	select {
	case first := <-errs:
		return first
	default:
		return err
	}
}

// happen does one fault.
func (w *world) happen(ctx context.Context, f fault) error {
	if f.kind == database {
		return w.crashDatabase(ctx, f)
	}
	m := w.take(f)
	if m == nil {
		return nil
	}
	defer m.mu.Unlock()
	switch f.kind {
	case stop:
		return w.stopMember(ctx, m, f)
	case starve:
		return w.starveMember(ctx, m, f)
	}
	return w.killMember(ctx, m, f)
}

// take locks the process that a fault hits: the one that was drawn, or the next of its
// kind while another fault has that one, or it ended by itself just now. It is nil
// when there is none, as for a broker that is somebody else's.
func (w *world) take(f fault) *member {
	all := w.members[f.role]
	for i := range all {
		m := all[(f.nth+i)%len(all)]
		if !m.mu.TryLock() {
			continue
		}
		if m.p.Running() {
			return m
		}
		m.mu.Unlock()
	}
	return nil
}

func (w *world) killMember(ctx context.Context, m *member, f fault) error {
	pid := m.p.PID()
	if !m.p.Kill() {
		return nil
	}
	w.tell("kill -9 %s %d, away for %d ms", m.p.Name, pid, f.lasts.Milliseconds())
	if f.kind == broker {
		w.count.add(&w.count.broker)
	} else {
		w.count.add(&w.count.kills)
	}
	_ = pause(ctx, f.lasts) // also when all ends it is started, to be ended well
	return m.start(context.WithoutCancel(ctx))
}

// stopMember stops a process and lets it go on, whatever happens meanwhile.
func (w *world) stopMember(ctx context.Context, m *member, f fault) error {
	if err := m.p.Freeze(); err != nil {
		return err
	}
	w.tell("stop %s for %d ms", m.p.Name, f.lasts.Milliseconds())
	w.count.add(&w.count.stops)
	_ = pause(ctx, f.lasts)
	return m.p.Thaw()
}

// starveMember leaves a process a tenth of the processor.
func (w *world) starveMember(ctx context.Context, m *member, f fault) error {
	w.tell("starve %s for %d ms", m.p.Name, f.lasts.Milliseconds())
	w.count.add(&w.count.starved)
	end := w.now().Add(f.lasts)
	for ctx.Err() == nil && w.now().Before(end) && m.p.Running() {
		if err := m.p.Freeze(); err != nil {
			return nil //nolint:nilerr // it ended by itself just now, and is started again
		}
		_ = pause(ctx, starveHold)
		if err := m.p.Thaw(); err != nil {
			return err
		}
		_ = pause(ctx, starveRun)
	}
	return nil
}

// crashDatabase ends all processes of the database at once and starts it again.
func (w *world) crashDatabase(ctx context.Context, f fault) error {
	if w.own == nil {
		return nil
	}
	if err := w.own.crash(); err != nil {
		return err
	}
	w.tell("crash the database, away for %d ms", f.lasts.Milliseconds())
	w.count.add(&w.count.databases)
	_ = pause(ctx, f.lasts)
	return w.own.resume(context.WithoutCancel(ctx))
}
