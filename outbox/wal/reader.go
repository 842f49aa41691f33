package wal

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	DefaultMostWAL    = 1 << 30          // a disk that has not a gigabyte to spare is full anyway
	DefaultBuffer     = 10_000           // messages of two seconds at a high rate; a few megabytes
	DefaultWatch      = 2 * time.Second  // log of two seconds is far less than the bound
	DefaultBehind     = 30 * time.Second // longer than a transaction of a million messages takes to read
	DefaultPauseFirst = time.Second      // a server that restarts is back about then
	DefaultPauseMost  = time.Minute      // what a wrong setting costs until it is right
)

// Config configures a Reader. Connect and DB are needed; every other field has a
// default that its zero value stands for.
type Config struct {
	// Connect is how the server itself is reached, with all its hosts; that of them
	// which takes writes is read, unless ValidateConnect says otherwise.
	Connect *pgconn.Config

	// DB is the same database for ordinary statements: the checks at the beginning,
	// the looks at the slot, and heartbeats.
	DB *sql.DB

	// Publication is made or completed when it is missing; empty means ringi_outbox,
	// with the schema of the table behind it if that is not public.
	Publication string

	// MostWAL is the most log, in bytes, that the slot may hold on the server. It is
	// given up when it would hold more at the next look, should the log grow on.
	MostWAL int64

	// Buffer is the most messages that are remembered at once; when there are more,
	// all that wait are left to polling.
	Buffer int

	// Watch is how often the slot is looked at and a heartbeat written.
	Watch time.Duration

	// Behind is how old the last heartbeat that came back may become before the
	// slot is replaced.
	Behind time.Duration

	// PauseFirst and PauseMost bound the pause before the next slot, doubling from
	// the one to the other. After the bound of MostWAL it is PauseMost.
	PauseFirst time.Duration
	PauseMost  time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// Observe, if set, is told of every change of state and every look, from
	// goroutines of Run; it must not block and must be safe for concurrent use.
	Observe func(Report)
}

// State is what a Reader does.
type State int

// The states of a Reader.
const (
	// Polling: there is no slot, and relays find everything by polling.
	Polling State = iota
	// Starting: the slot is being made, which waits for every open transaction.
	Starting
	// Streaming: relays hear of every commit.
	Streaming
)

// String names a state for people.
func (s State) String() string { return [...]string{"polling", "starting", "streaming"}[s] }

// Report is what a Reader is at.
type Report struct {
	At    time.Time
	State State

	// Slot is the slot's name, empty while polling.
	Slot string

	// Err is why there is no slot: what happened and what to set.
	Err error

	// Again is when the next slot is tried while polling.
	Again time.Time

	// Retained is how many bytes of log the slot holds on the server, Bound the
	// most that it may; Near says that it is half of it or more.
	Retained, Bound int64
	Near            bool

	// Behind is how long ago the last heartbeat that came back was written.
	Behind time.Duration

	// Waiting messages are remembered and not settled. Overflow counts those since
	// the last report that there was no room for and that polling finds.
	Waiting  int
	Overflow int64
}

// Reader reads the log for the relays of a process. It is an outbox.Feed.
type Reader struct {
	cfg  Config
	desk *desk
}

var _ outbox.Feed = (*Reader)(nil)

// New checks cfg and fills its defaults in. Nothing is opened.
func New(cfg Config) (*Reader, error) {
	if cfg.Connect == nil || cfg.DB == nil {
		return nil, errors.New("outbox/wal: a reader needs the database twice: set Connect and DB in its config")
	}
	orDefault(&cfg.MostWAL, DefaultMostWAL)
	orDefault(&cfg.Buffer, DefaultBuffer)
	orDefault(&cfg.Watch, DefaultWatch)
	orDefault(&cfg.Behind, DefaultBehind)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Report) {}
	}
	return &Reader{cfg: cfg, desk: newDesk(cfg.Buffer)}, nil
}

// orDefault takes nothing and less for not set.
func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Run reads until ctx ends and then returns nil. Whatever goes wrong is told to
// Observe and tried again; the relays poll meanwhile.
func (r *Reader) Run(ctx context.Context) error {
	pause := r.cfg.PauseFirst
	for {
		s := &session{Reader: r, slot: "ringi_outbox_" + strings.ToLower(rand.Text()[:12])}
		err := s.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if s.streamed() {
			pause = r.cfg.PauseFirst
		}
		if errors.Is(err, errTooMuch) {
			pause = r.cfg.PauseMost
		}
		r.desk.reset(0)
		now := r.cfg.Now()
		r.cfg.Observe(Report{At: now, State: Polling, Err: err, Again: now.Add(pause)})
		if !wait(ctx, pause) {
			return nil
		}
		pause = min(2*pause, r.cfg.PauseMost)
	}
}

// wait pauses; false says that ctx has ended.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
