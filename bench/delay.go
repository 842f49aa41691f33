package bench

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/relay"
)

// How relays find messages.
const (
	SourcePoll = "poll"
	SourceWAL  = "wal" // PostgreSQL's write-ahead log
)

const (
	// DefaultDelayFor is how long each rate is written: a thousand messages at 100
	// a second, and ten at one.
	DefaultDelayFor = 10 * time.Second

	// delayTick is how often messages are written at high rates: as many together
	// as that makes, since no disk takes thousands of commits of one connection.
	delayTick = 10 * time.Millisecond

	// settleTime is how long a server is given to count what was done on it.
	settleTime = 2 * time.Second
)

// DelayConfig says which delays are measured.
type DelayConfig struct {
	// Database, Sink and Open are those of OutboxConfig.
	Database string
	Sink     string
	Open     relay.Opener

	// Sources are measured one after the other at each rate, so that they meet the
	// same machine.
	Sources []string

	// Rates are messages per second.
	Rates []int

	// For is how long each is measured; 0 means DefaultDelayFor.
	For time.Duration

	// PollMost is the longest pause between two polls; 0 means the relay's own.
	PollMost time.Duration

	// Now is the clock.
	Now func() time.Time

	// Told hears how far it is; it may be nil.
	Told func(text string)
}

// DelayResult is what was measured.
type DelayResult struct {
	Name   string  `json:"name"`
	Store  string  `json:"store"`
	Sink   string  `json:"sink"`
	Delays []Delay `json:"delays"`
}

// Delay is one source at one rate.
type Delay struct {
	Source   string `json:"source"`
	Rate     int    `json:"rate"`
	Messages int    `json:"messages"`

	// P50MS, P99MS and MaxMS are from the answer to the commit until the
	// destination has acknowledged the message.
	P50MS float64 `json:"p50Ms"`
	P99MS float64 `json:"p99Ms"`
	MaxMS float64 `json:"maxMs"`

	// RelayTransactionsPerSecond are the transactions in the database while that
	// was written, the writer's apart; 0 for SQLite, which counts none.
	RelayTransactionsPerSecond float64 `json:"relayTransactionsPerSecond"`

	// ToldByLog is the share of the messages that the log told of.
	ToldByLog float64 `json:"toldByLog"`
}

// Delays measures from the commit to the destination while messages are written at
// a rate by a process that gives relays no hint.
func Delays(ctx context.Context, cfg DelayConfig) (_ DelayResult, err error) {
	if cfg.For <= 0 {
		cfg.For = DefaultDelayFor
	}
	if cfg.Told == nil {
		cfg.Told = func(string) {}
	}
	places, err := relay.ParsePlaces(cfg.Sink)
	if err != nil {
		return DelayResult{}, err
	}
	if len(places) != 1 || places[0].Destination != "" {
		return DelayResult{}, errors.New("bench: one destination without a name is measured at a time")
	}
	sinks, err := cfg.Open.Open(places)
	if err != nil {
		return DelayResult{}, err
	}
	defer func() { err = errors.Join(err, relay.CloseAll(sinks)) }()
	db, own, remove, err := scratch(ctx, cfg.Database)
	if err != nil {
		return DelayResult{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	out := DelayResult{Name: "outbox-delay", Store: string(db.Dialect), Sink: sinks[0].Name}
	for _, rate := range cfg.Rates {
		for _, source := range cfg.Sources {
			m := &delayBench{DelayConfig: cfg, source: source, rate: rate, database: own, counted: db, sink: sinks[0], acked: map[string]time.Time{}}
			d, err := m.measure(ctx)
			if err != nil {
				return out, err
			}
			cfg.Told(fmt.Sprintf("%s at %d a second: p50 %.1f ms, p99 %.1f ms, %.0f transactions a second", source, rate, d.P50MS, d.P99MS, d.RelayTransactionsPerSecond))
			out.Delays = append(out.Delays, d)
		}
	}
	return out, nil
}

// delayBench is one source at one rate.
type delayBench struct {
	DelayConfig
	source   string
	rate     int
	database string
	counted  *relay.Database // asks for counts
	sink     *relay.Sink

	mu        sync.Mutex
	acked     map[string]time.Time
	delivered int
	fed       int
	trouble   error
}

// Publish implements outbox.Sink: it notes when messages are acknowledged.
func (b *delayBench) Publish(ctx context.Context, msgs []outbox.Message) []error {
	results := b.sink.Publish(ctx, msgs)
	now := b.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range results {
		if results[i] == nil {
			b.acked[msgs[i].ID] = now
		}
	}
	return results
}

func (b *delayBench) measure(ctx context.Context) (d Delay, err error) {
	stop, err := b.begin(ctx)
	if err != nil {
		return d, err
	}
	ended := sync.OnceValue(stop)
	defer func() { err = errors.Join(err, ended()) }()
	// A relay that has just begun looks often and takes its share of the
	// partitions; what is measured is how it is after that.
	if _, _, err := b.write(ctx, min(b.For, settleTime)); err != nil {
		return d, err
	}
	before, begun, err := b.transactions(ctx)
	if err != nil {
		return d, err
	}
	committed, commits, err := b.write(ctx, b.For)
	if err != nil {
		return d, err
	}
	after, at, err := b.transactions(ctx)
	if err != nil {
		return d, err
	}
	delays := make([]time.Duration, 0, len(committed))
	b.mu.Lock()
	for id, at := range committed {
		// The log may tell before the writer hears of its own commit.
		delays = append(delays, max(0, b.acked[id].Sub(at)))
	}
	b.mu.Unlock()
	slices.SortFunc(delays, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	d = Delay{Source: b.source, Rate: b.rate, Messages: len(delays), P50MS: quantile(delays, 50), P99MS: quantile(delays, 99), MaxMS: quantile(delays, 100)}
	if before > 0 {
		d.RelayTransactionsPerSecond = max(0, float64(after-before-commits)/at.Sub(begun).Seconds())
	}
	if err = ended(); err == nil && b.delivered > 0 {
		d.ToldByLog = float64(b.fed) / float64(b.delivered)
	}
	return d, err
}

// begin starts relays as a process of their own does, and waits until they read.
func (b *delayBench) begin(ctx context.Context) (stop func() error, err error) {
	db, err := relay.Open(ctx, b.database)
	if err != nil {
		return nil, err
	}
	if err := db.Spare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	cfg := outbox.RelayConfig{Source: db.Outbox, Fleet: db.Fleet, PollMost: b.PollMost, Observe: func(r outbox.Report) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.delivered += r.Delivered
		b.fed += r.Fed
		if err := troubleOf(r); err != nil && b.trouble == nil {
			b.trouble = err
		}
	}}
	log, end, err := b.read(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	cfg.Feed = log.Feed()
	relays, err := relay.New(cfg, &relay.Sink{Sink: b})
	if err != nil {
		end()
		return nil, errors.Join(err, log.Close(), db.Close())
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- relays.Run(running) }()
	return func() error {
		end()
		cancel()
		return errors.Join(<-done, log.Close(), db.Close(), b.trouble)
	}, nil
}

// read begins to read the log, if that is what is measured.
func (b *delayBench) read(ctx context.Context) (log *relay.Log, end func(), err error) {
	if b.source != SourceWAL {
		return nil, func() {}, nil
	}
	states := make(chan wal.Report, 1)
	log, err = relay.OpenLog(b.database, relay.LogConfig{Now: b.Now, Observe: func(r wal.Report) {
		if r.State != wal.Starting {
			select {
			case states <- r:
			default: // the first one is waited for
			}
		}
	}})
	if err != nil {
		return nil, nil, err
	}
	end = log.Begin(ctx)
	select {
	case r := <-states:
		err = r.Err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, nil, errors.Join(err, log.Close())
	}
	return log, end, nil
}

// write writes at the rate for a time and waits until everything is acknowledged.
// It returns when each message was committed, and in how many transactions.
func (b *delayBench) write(ctx context.Context, span time.Duration) (map[string]time.Time, int64, error) {
	unit := outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: b.counted.DB, Insert: b.counted.Dialect.Insert}, Stamp: outbox.Stamp{Now: b.Now}}
	tick := max(delayTick, time.Second/time.Duration(b.rate))
	each := max(1, int(tick*time.Duration(b.rate)/time.Second))
	at := map[string]time.Time{}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	commits := int64(0)
	end := b.Now().Add(span)
	for n := 0; b.Now().Before(end) || n == 0; n += each {
		msgs := make([]outbox.Message, each)
		for i := range msgs {
			msgs[i] = benchMessage(n + i)
			msgs[i].ID = outbox.NewID(b.Now())
		}
		if err := enqueue(ctx, &unit, msgs...); err != nil {
			return nil, 0, err
		}
		commits++
		now := b.Now()
		for i := range msgs {
			at[msgs[i].ID] = now
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	return at, commits, b.await(ctx, at)
}

// await waits until everything is acknowledged.
func (b *delayBench) await(ctx context.Context, ids map[string]time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	tick := time.NewTicker(delayTick)
	defer tick.Stop()
	for {
		b.mu.Lock()
		left := 0
		for id := range ids {
			if b.acked[id].IsZero() {
				left++
			}
		}
		trouble := b.trouble
		b.mu.Unlock()
		if left == 0 || trouble != nil {
			return trouble
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: %d messages were not acknowledged; look at the destination", left)
		}
	}
}

// transactions counts those of the database, once the server has noted them.
func (b *delayBench) transactions(ctx context.Context) (n int64, at time.Time, err error) {
	if b.counted.Dialect != relay.Postgres {
		return 0, b.Now(), nil
	}
	select {
	case <-time.After(settleTime):
	case <-ctx.Done():
		return 0, at, ctx.Err()
	}
	err = b.counted.DB.QueryRowContext(ctx, `select xact_commit + xact_rollback from pg_stat_database where datname = current_database()`).Scan(&n)
	return n, b.Now(), err
}
