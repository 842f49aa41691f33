package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
)

// logPool is how many connections a Log uses at once besides that of the log.
const logPool = 2

// ErrNoLog says that a database has no write-ahead log that can be read.
var ErrNoLog = errors.New("only PostgreSQL has a write-ahead log that tells of messages; relay from this database by polling (--source poll), which finds them as well")

// LogConfig configures a Log.
type LogConfig struct {
	// MostWAL is the most log, in bytes, that the server may keep for it; 0 means
	// wal.DefaultMostWAL.
	MostWAL int64

	// Now is the clock.
	Now func() time.Time

	// Observe hears what it is at; it may be nil. It is called from several
	// goroutines and must not block.
	Observe func(wal.Report)
}

// Log tells the relays of this process from the write-ahead log of a database
// which messages were committed. It has connections of its own.
type Log struct {
	*wal.Reader
	close func() error
}

// OpenLog makes ready to read. The error wraps ErrNoLog where it can never work;
// whatever else is wrong is told while it runs, and the relays poll.
func OpenLog(database string, c LogConfig) (*Log, error) {
	dialect, err := DialectOf(database)
	if err != nil {
		return nil, err
	}
	if dialect != Postgres {
		return nil, fmt.Errorf("an outbox in %s: %w", dialect, ErrNoLog) // the name may have a password
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		// Its text may repeat what it could not read, but never the password.
		return nil, fmt.Errorf("the database is not named in a way that can be read: %w", err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(logPool)
	reader, err := wal.New(wal.Config{Connect: &config.Config, DB: db, MostWAL: c.MostWAL, Now: c.Now, Observe: c.Observe})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Log{Reader: reader, close: db.Close}, nil
}

// Feed is what tells the relays: outbox.RelayConfig.Feed. That of nil is nil.
func (l *Log) Feed() outbox.Feed {
	if l == nil {
		return nil
	}
	return l.Reader
}

// Begin reads until the returned function is called, which waits for the end. On
// nil it does nothing.
func (l *Log) Begin(ctx context.Context) (end func()) {
	if l == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(ctx) }) // it returns nil; its troubles were observed
	return func() {
		cancel()
		running.Wait()
	}
}

// Close ends the connections, after Begin's function. On nil it does nothing.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.close()
}

// tellAgainLater is when a reason that has not changed is told once more.
const tellAgainLater = time.Hour

// slowStart is how long a slot may take to make before somebody hears of it.
const slowStart = 10 * time.Second

// A LogJournal logs what an operator must see of a Log: that the log is read, that it
// is not and why, that the server keeps much for it. Each is told once. Safe for
// concurrent use.
type LogJournal struct {
	Journal *Journal // whose Log and Now it uses

	mu       sync.Mutex
	state    wal.State
	began    time.Time // when the slot began to be made
	slow     bool      // it was told that this takes long
	told     string    // the last reason
	toldAt   time.Time
	near     bool
	overflow time.Time // when it was told last
}

// Observe logs a report.
func (j *LogJournal) Observe(r wal.Report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log := j.Journal.Log
	switch r.State {
	case wal.Polling:
		reason := fmt.Sprint(r.Err)
		if j.state == wal.Streaming || reason != j.told || r.At.Sub(j.toldAt) >= tellAgainLater {
			j.told, j.toldAt = reason, r.At
			log.Warn("the write-ahead log is not read; messages are found by polling", "err", strings.TrimPrefix(reason, "outbox/wal: "), "again", r.Again)
		}
		j.near = false
	case wal.Starting:
		if j.state != wal.Starting {
			j.began, j.slow = r.At, false
		}
		if !j.slow && r.At.Sub(j.began) >= slowStart {
			j.slow = true
			log.Warn("the replication slot waits for transactions that are open on the server; messages are found by polling", "slot", r.Slot)
		}
	case wal.Streaming:
		if j.state != wal.Streaming {
			log.Info("the write-ahead log is read", "slot", r.Slot)
		}
	}
	j.state = r.State
	j.tellSpace(r)
}

// tellSpace tells that the server keeps much, and that there was no room here.
func (j *LogJournal) tellSpace(r wal.Report) {
	log := j.Journal.Log
	if r.Near && !j.near {
		log.Warn("the server keeps much write-ahead log for this relay; at the bound the slot is given up: look for transactions that stay open (pg_stat_activity)",
			"slot", r.Slot, "MiB", r.Retained>>20, "bound", r.Bound>>20)
	}
	if r.Retained > 0 {
		j.near = r.Near
	}
	if r.Overflow > 0 && r.At.Sub(j.overflow) >= tellAgain {
		j.overflow = r.At
		log.Info("more messages were committed than the relay remembers; polling finds the rest", "messages", r.Overflow)
	}
}
