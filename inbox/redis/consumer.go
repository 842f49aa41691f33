package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringiflow/ringi/inbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultAckWait is how long an entry waits for a sign of life before somebody
	// else takes it.
	DefaultAckWait = 30 * time.Second

	// DefaultPauseFirst and DefaultPauseMost are the pauses before an entry that
	// failed is received again, doubling from the one to the other; they are those of
	// the outbox.
	DefaultPauseFirst = inbox.DefaultPauseFirst
	DefaultPauseMost  = inbox.DefaultPauseMost

	// fetchWait is how long one round waits for an entry; a stop waits for it too.
	fetchWait = time.Second

	// answerWait bounds the answer for an entry, which is given also while stopping.
	answerWait = 5 * time.Second

	// idlePause is the pause of Run after an error of the server, and of a round
	// while others have as many entries as may be out.
	idlePause = time.Second

	// signs of life are sent so many times within AckWait.
	signs = 3
)

// Config configures a Consumer. URL, Stream, Name and Receive are needed.
type Config struct {
	// URL is the server: redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss:// for TLS.
	// With Cluster it is one node of a cluster, and ?addr=HOST:PORT names more.
	URL     string
	Cluster bool

	// Client is used instead of URL, such as one for a cluster or for Sentinel. Close
	// leaves it open.
	Client redis.UniversalClient

	// Stream is the stream to read, from its beginning when Name is new.
	Stream string

	// Name is the consumer group; processes that use the same name share the
	// entries. It is made by Run, with the stream if that is not there yet.
	Name string

	// Body is the field that holds the payload; empty means "data".
	Body string

	// Receive does the work of one delivery in a transaction, as
	// inbox.Consumer.Receive does. The entry is acknowledged unless it answers
	// inbox.Failed. It is called for one entry at a time.
	Receive func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error)

	// Observe, if set, is told the outcome of every delivery; it must not block.
	Observe func(d inbox.Delivery, outcome inbox.Outcome, err error)

	// Trouble, if set, is told of every error of the broker that Run waits out; it must
	// not block.
	Trouble func(err error)

	// Pending is how many entries may be out at once, in all processes; 0 means 1,
	// which keeps the order.
	Pending int

	// AckWait is how long an entry waits for a sign of life; 0 means DefaultAckWait.
	AckWait time.Duration

	// PauseFirst and PauseMost are the pauses after a failure; 0 means the defaults.
	PauseFirst time.Duration
	PauseMost  time.Duration
}

// Consumer receives entries. One goroutine calls Run or Round.
type Consumer struct {
	cfg    Config
	client redis.UniversalClient
	joined bool // the group is there
}

// New returns a consumer that has not begun to read. It does not wait for a
// server. Close it after use.
func New(cfg Config) (*Consumer, error) {
	if cfg.URL == "" && cfg.Client == nil || cfg.Stream == "" || cfg.Name == "" || cfg.Receive == nil {
		return nil, errors.New("redis: a consumer needs URL, Stream, Name and Receive; set them in its config")
	}
	if cfg.Observe == nil {
		cfg.Observe = func(inbox.Delivery, inbox.Outcome, error) {}
	}
	if cfg.Body == "" {
		cfg.Body = "data"
	}
	if cfg.Pending <= 0 {
		cfg.Pending = 1
	}
	orDefault(&cfg.AckWait, DefaultAckWait)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	if cfg.Client != nil {
		return &Consumer{cfg: cfg, client: cfg.Client}, nil
	}
	if cfg.Cluster {
		options, err := redis.ParseClusterURL(cfg.URL)
		if err != nil {
			return nil, fmt.Errorf("redis: the address of the cluster: %w", err)
		}
		options.ClientName, options.ContextTimeoutEnabled = "ringi-inbox", true
		return &Consumer{cfg: cfg, client: redis.NewClusterClient(options)}, nil
	}
	options, err := redis.ParseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("redis: the address of the server: %w", err)
	}
	options.ClientName, options.ContextTimeoutEnabled = "ringi-inbox", true
	return &Consumer{cfg: cfg, client: redis.NewClient(options)}, nil
}

// orDefault takes nothing and less for not set.
func orDefault(field *time.Duration, value time.Duration) {
	if *field <= 0 {
		*field = value
	}
}

// Run receives until ctx ends and then returns nil. Errors of the server are
// waited out; those of the work go to Observe.
func (c *Consumer) Run(ctx context.Context) error {
	inbox.Loop(ctx, idlePause, c.Round, c.cfg.Trouble)
	return nil
}

// receiver is what is done with each delivery.
func (c *Consumer) receiver() inbox.Receiver {
	return inbox.Receiver{Receive: c.cfg.Receive, Observe: c.cfg.Observe, PauseFirst: c.cfg.PauseFirst, PauseMost: c.cfg.PauseMost}
}

// Close ends the connections, unless they are Config.Client's. An entry that is
// out comes again, here or elsewhere. Call it when Run has returned.
func (c *Consumer) Close() error {
	if c.cfg.Client != nil {
		return nil
	}
	return c.client.Close()
}
