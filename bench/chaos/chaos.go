package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ringiflow/ringi/relay"
)

// How many processes there are of each kind.
const (
	producers = 4
	relays    = 3
	consumers = 4
)

const (
	// DefaultFor is long enough for every kind of fault, and short enough for CI.
	DefaultFor = time.Minute

	// DefaultRate is what the consumers of one machine take beside the faults.
	DefaultRate = 160

	// DefaultDrain is how long everything may take to drain, in each of two steps: a
	// broker may hold a message of a consumer that died for half a minute.
	DefaultDrain = 2 * time.Minute

	// drainLook is how often it is asked whether everything has drained.
	drainLook = 250 * time.Millisecond
)

// Config says what is done. Binary and Dir are required.
type Config struct {
	Binary string        // the ringi program
	Dir    string        // an empty directory, in which everything is left
	For    time.Duration // how long faults happen; 0 means DefaultFor
	Seed   uint64        // from which the faults are drawn
	Rate   int           // changes a second, of all producers; 0 means DefaultRate

	// Database is postgres://…, in which a schema is made and removed. "" is a server
	// that the rig starts, crashes and ends.
	Database string

	// Sink is a broker as ringi relay takes it: kafka, nats, amqp or redis. "" is a
	// NATS server with JetStream that the rig starts, kills and ends.
	Sink string

	Drain time.Duration // 0 means DefaultDrain
	Story io.Writer     // is told what happens; nil is nobody

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Result is what came of it.
type Result struct {
	Name     string  `json:"name"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"` // of faults
	Produced int     `json:"produced"`
	Effects  int     `json:"effects"`

	// What must be 0.
	Lost             int `json:"lost"`
	DuplicateEffects int `json:"duplicateEffects"`
	OutOfOrder       int `json:"outOfOrder"`
	Stuck            int `json:"stuck"`

	// UnknownCommits is how often a producer did not learn whether it had committed,
	// UnknownCommitted how many of those had.
	UnknownCommits   int `json:"unknownCommits"`
	UnknownCommitted int `json:"unknownCommitted"`

	// Repeats is how many copies the inboxes dropped.
	Repeats int `json:"repeats"`

	Kills            int `json:"kills"`            // of producers, relays and consumers, by SIGKILL
	Stops            int `json:"stops"`            // past a lease, and continued
	Starved          int `json:"starved"`          // left with a tenth of the processor for a while
	BrokerRestarts   int `json:"brokerRestarts"`   // of them killed and started again
	DatabaseRestarts int `json:"databaseRestarts"` // crashed and recovered

	// PublishedByRelay counts by relay the messages whose first copy that arrived was
	// sent by it.
	PublishedByRelay map[string]int `json:"publishedByRelay"`
}

// Failings says what was broken: nothing, if all went well.
func (r Result) Failings() (all []string) {
	for _, f := range []struct {
		n    int
		what string
	}{
		{r.Lost, "changes were lost"},
		{r.DuplicateEffects, "effects happened too often"},
		{r.OutOfOrder, "effects happened out of order"},
		{r.Stuck, "messages are stuck"},
	} {
		if f.n != 0 {
			all = append(all, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return all
}

// Run runs it. That something was lost or broken is no error: it is in the result.
// When ctx ends, everything is ended and its cause returned.
func Run(ctx context.Context, c Config) (_ Result, err error) {
	c = withDefaults(c)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer func() { // what made it fail tells more than what noticed
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	w, err := newWorld(ctx, c, fail)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(ctx); err != nil {
		return Result{}, err
	}
	w.tell("seed %d: %d producers, %d relays and %d consumers on %s and %s", c.Seed, producers, relays, consumers, relay.Masked(w.database), relay.Masked(w.sink))
	began := c.Now()
	if err := w.torment(ctx); err != nil {
		return Result{}, err
	}
	seconds := c.Now().Sub(began).Seconds()
	w.tell("the faults are over; everything has to drain now")
	if err := w.settle(ctx); err != nil {
		return Result{}, err
	}
	r, err := w.ledger.judge(ctx, w.dir)
	if err != nil {
		return Result{}, err
	}
	r.Name, r.Seed, r.Seconds = "chaos-outbox", c.Seed, math.Round(seconds*10)/10
	w.count.into(&r)
	return r, nil
}

func withDefaults(c Config) Config {
	if c.For <= 0 {
		c.For = DefaultFor
	}
	if c.Rate <= 0 {
		c.Rate = DefaultRate
	}
	if c.Drain <= 0 {
		c.Drain = DefaultDrain
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Story == nil {
		c.Story = io.Discard
	}
	return c
}

// settle ends the producers, waits until everything has drained, and then has the
// last change of each key follow. What does not drain in time is judged as it is.
func (w *world) settle(ctx context.Context) error {
	if err := w.end(roleProducer); err != nil {
		return err
	}
	drained, err := w.drain(ctx)
	if err != nil || !drained {
		return err
	}
	if err := w.end(roleRelay); err != nil { // what they still sent comes before what follows
		return err
	}
	if err := w.ledger.lastWords(ctx, w.family); err != nil {
		return err
	}
	last := w.members[roleRelay][0]
	if err := w.start(ctx, last); err != nil {
		return err
	}
	if _, err := w.drain(ctx); err != nil {
		return err
	}
	return errors.Join(w.end(roleRelay), w.end(roleConsumer))
}

// drain waits until every message is delivered and every change has an effect, or the
// time is over.
func (w *world) drain(ctx context.Context) (bool, error) {
	limit := w.now().Add(w.Drain)
	for {
		left, err := w.ledger.left(ctx)
		switch {
		case err == nil && left == 0:
			w.tell("everything has drained")
			return true, nil
		case w.now().After(limit) && err == nil:
			w.tell("%d changes or messages are left after %s", left, w.Drain)
			return false, nil
		case w.now().After(limit):
			return false, err
		}
		if err := pause(ctx, drainLook); err != nil {
			return false, err
		}
	}
}

// pause waits for d, or returns the cause that ended ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Relays are the relays of a result in their order.
func (r Result) Relays() []string { return slices.Sorted(maps.Keys(r.PublishedByRelay)) }
