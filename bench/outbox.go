package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

const (
	// DefaultMessages are enough that the beginning and the end of a measurement
	// do not count.
	DefaultMessages = 20_000

	// DefaultBatch is how many messages a transaction writes, as many as a commit
	// of the engine at most.
	DefaultBatch = 256

	benchAggregates = 10_000 // that the messages are about, in turn
	benchPayload    = 200    // bytes
	benchSingles    = 200    // messages whose delay is measured one by one
	benchType       = "Bench"
)

// OutboxConfig says what is measured.
type OutboxConfig struct {
	// Database is sqlite:PATH or postgres://. Nothing that stands there is
	// touched: the messages are in a new file beside PATH, or in a new schema of
	// the database, which goes when the measurement is over.
	Database string

	// Sink is where the messages go, as relay.ParsePlaces reads it, and gets
	// twice as many and some. Open opens it.
	Sink string
	Open relay.Opener

	Messages int // 0 means DefaultMessages
	Batch    int // messages in one transaction; 0 means DefaultBatch

	// CPUProfile gets a profile of the writing and the relaying; nil gets none.
	CPUProfile io.Writer

	// Now is the clock.
	Now func() time.Time

	// Told hears how far it is; it may be nil.
	Told func(text string)
}

// OutboxResult is what was measured.
type OutboxResult struct {
	Name     string `json:"name"`
	Store    string `json:"store"`
	Sink     string `json:"sink"`
	Messages int    `json:"messages"`

	// Seconds is how long it took to write the messages through a unit of work
	// and then to relay them all, MessagesPerSecond what that makes.
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messagesPerSecond"`

	// P50MS and P99MS are from the commit of a single message beside a relay that
	// has nothing else to do until the destination has acknowledged it.
	P50MS float64 `json:"p50Ms"`
	P99MS float64 `json:"p99Ms"`

	// FloorMessagesPerSecond is the same without an outbox: rows of the same
	// shape inserted in the same batches, read in batches and published.
	FloorMessagesPerSecond float64 `json:"floorMessagesPerSecond"`
}

// Outbox measures an outbox, and its floor on the same database and destination.
func Outbox(ctx context.Context, cfg OutboxConfig) (_ OutboxResult, err error) {
	if cfg.Messages <= 0 {
		cfg.Messages = DefaultMessages
	}
	if cfg.Batch <= 0 {
		cfg.Batch = DefaultBatch
	}
	if cfg.Told == nil {
		cfg.Told = func(string) {}
	}
	places, err := relay.ParsePlaces(cfg.Sink)
	if err != nil {
		return OutboxResult{}, err
	}
	if len(places) != 1 || places[0].Destination != "" {
		return OutboxResult{}, errors.New("bench: one destination without a name is measured at a time")
	}
	sinks, err := cfg.Open.Open(places)
	if err != nil {
		return OutboxResult{}, err
	}
	defer func() { err = errors.Join(err, relay.CloseAll(sinks)) }()
	db, own, remove, err := scratch(ctx, cfg.Database)
	if err != nil {
		return OutboxResult{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	m := &outboxBench{OutboxConfig: cfg, database: own, db: db, sink: sinks[0]}
	return m.measure(ctx)
}

// outboxBench is one measurement.
type outboxBench struct {
	OutboxConfig
	database string // of the measurement
	db       *relay.Database
	sink     *relay.Sink
}

func (b *outboxBench) measure(ctx context.Context) (OutboxResult, error) {
	out := OutboxResult{Name: "outbox", Store: string(b.db.Dialect), Sink: b.sink.Name, Messages: b.Messages}
	if err := b.cost(ctx); err != nil {
		return out, err
	}
	// Half of the floor before and half after, since machines have their moods.
	floor, err := b.floor(ctx, b.Messages/2)
	if err != nil {
		return out, err
	}
	took, err := b.outbox(ctx)
	if err != nil {
		return out, err
	}
	rest, err := b.floor(ctx, b.Messages-b.Messages/2)
	if err != nil {
		return out, err
	}
	floor += rest
	out.Seconds = took.Seconds()
	out.MessagesPerSecond = float64(b.Messages) / out.Seconds
	out.FloorMessagesPerSecond = float64(b.Messages) / floor.Seconds()
	delays, err := b.singles(ctx)
	if err != nil {
		return out, err
	}
	out.P50MS, out.P99MS = quantile(delays, 50), quantile(delays, 99)
	return out, nil
}

// outbox measures the writing and the relaying.
func (b *outboxBench) outbox(ctx context.Context) (_ time.Duration, err error) {
	if b.CPUProfile != nil {
		if err := pprof.StartCPUProfile(b.CPUProfile); err != nil {
			return 0, fmt.Errorf("bench: profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	cpu := CPU()
	wrote, err := b.timed(func() error { return b.enqueue(ctx) })
	if err != nil {
		return 0, err
	}
	between := CPU()
	relayed, err := b.timed(func() error { return b.drain(ctx) })
	if err != nil {
		return 0, err
	}
	each := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(b.Messages) }
	b.Told(fmt.Sprintf("outbox: %d messages written in %.2f s (%.1f µs of this process each), relayed in %.2f s (%.1f µs each)%s",
		b.Messages, wrote.Seconds(), each(between-cpu), relayed.Seconds(), each(CPU()-between), inMemory()))
	return wrote + relayed, nil
}

// inMemory says how much of this process is in memory, where that can be asked.
func inMemory() string {
	n, err := resident()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %d MB in memory", n>>20)
}

// timed is how long something takes.
func (b *outboxBench) timed(do func() error) (time.Duration, error) {
	begun := b.Now()
	err := do()
	return b.Now().Sub(begun), err
}

// batches calls do with count messages, so many at a time and never all at once.
func (b *outboxBench) batches(count int, do func(msgs []outbox.Message) error) error {
	for from := 0; from < count; from += b.Batch {
		msgs := make([]outbox.Message, min(b.Batch, count-from))
		for i := range msgs {
			msgs[i] = benchMessage(from + i)
		}
		if err := do(msgs); err != nil {
			return err
		}
	}
	return nil
}

// benchMessage is the n-th; it has no id yet.
func benchMessage(n int) outbox.Message {
	payload := fmt.Appendf(nil, `{"n":%d,"fill":"`, n)
	for len(payload) < benchPayload-2 {
		payload = append(payload, 'x')
	}
	return outbox.Message{
		AggregateType: benchType, AggregateID: fmt.Sprint("a", n%benchAggregates), Type: "bench.done",
		Payload: append(payload, `"}`...), ContentType: "application/json",
	}
}

// enqueue writes the messages as a service does.
func (b *outboxBench) enqueue(ctx context.Context) error {
	unit := b.unit(nil)
	return b.batches(b.Messages, func(msgs []outbox.Message) error { return enqueue(ctx, &unit, msgs...) })
}

func (b *outboxBench) unit(wake func()) outbox.UnitOfWork[*sql.Tx] {
	return outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: b.db.DB, Insert: b.db.Dialect.Insert}, Stamp: outbox.Stamp{Now: b.Now}, Wake: wake}
}

func enqueue(ctx context.Context, unit *outbox.UnitOfWork[*sql.Tx], msgs ...outbox.Message) error {
	if err := unit.Add(ctx, msgs...); err != nil {
		return err
	}
	return unit.Do(ctx, func(context.Context, *sql.Tx) error { return nil })
}

// drain relays everything that was written, as a process of its own does.
func (b *outboxBench) drain(ctx context.Context) (err error) {
	db, err := relay.Open(ctx, b.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Spare(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	delivered, told := 0, b.Now()
	relays, err := relay.New(outbox.RelayConfig{
		Source: db.Outbox, Fleet: db.Fleet, Batch: b.Batch,
		Observe: func(r outbox.Report) {
			mu.Lock()
			defer mu.Unlock()
			if delivered += r.Delivered; delivered >= b.Messages {
				stop(errDrained)
			}
			if err := troubleOf(r); err != nil {
				stop(err)
			}
			if now := b.Now(); now.Sub(told) >= progressEvery {
				told = now
				b.Told(fmt.Sprintf("%d of %d messages relayed%s", delivered, b.Messages, inMemory()))
			}
		},
	}, b.sink)
	if err != nil {
		return err
	}
	if err := relays.Run(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, errDrained) {
		return err
	}
	return nil
}

// errDrained ends relays that have delivered everything.
var errDrained = errors.New("bench: everything is delivered")

// progressEvery is how often long work says how far it is.
const progressEvery = 2 * time.Second

// troubleOf is why a measurement would not be one.
func troubleOf(r outbox.Report) error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.Down != nil:
		return fmt.Errorf("bench: the destination is down: %w", r.Down)
	case r.Failed+r.Dead+r.Parked > 0:
		return errors.New("bench: the destination refuses messages")
	}
	return nil
}

// singles writes messages one by one beside a relay and returns how long after
// its commit each was acknowledged, in order of length.
func (b *outboxBench) singles(ctx context.Context) ([]time.Duration, error) {
	clock := &ackClock{Sink: b.sink, now: b.Now, at: make(chan time.Time, 1)}
	relays, err := relay.New(outbox.RelayConfig{Source: b.db.Outbox, Fleet: b.db.Fleet}, &relay.Sink{Sink: clock})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = relays.Run(ctx) }) // it returns nil
	defer running.Wait()
	defer stop()
	unit := b.unit(nil)
	delays := make([]time.Duration, 0, benchSingles)
	for n := range min(benchSingles, b.Messages) {
		if err := enqueue(ctx, &unit, benchMessage(n)); err != nil {
			return nil, err
		}
		committed := b.Now()
		relays.Wake()
		select {
		case at := <-clock.at:
			delays = append(delays, at.Sub(committed))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(ackTime):
			return nil, errors.New("bench: a message was not acknowledged; look at the destination")
		}
	}
	slices.Sort(delays)
	return delays, nil
}

// ackTime is how long one acknowledgement is waited for.
const ackTime = 30 * time.Second

// ackClock tells when messages are acknowledged.
type ackClock struct {
	outbox.Sink
	now func() time.Time
	at  chan time.Time
}

// Publish implements outbox.Sink.
func (c *ackClock) Publish(ctx context.Context, msgs []outbox.Message) []error {
	results := c.Sink.Publish(ctx, msgs)
	if len(msgs) > 0 && results[0] == nil {
		c.at <- c.now()
	}
	return results
}

// quantile is the q-th percentile of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, q int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(len(sorted)-1, (len(sorted)*q+99)/100-1)
	return float64(sorted[max(0, at)].Microseconds()) / 1000
}
