package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultTimeout bounds one call of Publish. It is below half of a relay's
	// default lease, so that an answer comes before the relay stops waiting.
	DefaultTimeout = 10 * time.Second

	// DefaultMaxBytes is the largest message. The server would take 512 MB, and
	// answer nobody else while it does.
	DefaultMaxBytes = 1 << 20

	// waitMargin is what is left of the time of a call when the replicas are not
	// waited for any longer, for the server's answer to come.
	waitMargin = 500 * time.Millisecond
)

// Config configures a Sink. URL or Client is needed; every other field has a
// default that its zero value stands for.
type Config struct {
	// URL is the server: redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss:// for
	// TLS. With Cluster it is one node of a cluster, and ?addr=HOST:PORT names more.
	URL     string
	Cluster bool

	// Client is used instead of URL, such as one for Sentinel. Its own retries must be off
	// (MaxRetries -1): a retry could come behind what is sent next. Close leaves it open.
	Client redis.UniversalClient

	// Stream names the stream of a message; nil means outbox.Topic.
	Stream func(m *outbox.Message) string

	// Source is the CloudEvents source; empty means outbox.DefaultEventSource.
	Source string

	// MaxBytes is the largest message, headers included; a larger one is refused
	// without being sent. 0 means DefaultMaxBytes.
	MaxBytes int

	// Keep, if above 0, is about how many entries a stream keeps: older ones are
	// removed whether or not they were read.
	Keep int64

	// Replicas is how many replicas must have a message before it counts as
	// delivered; 0 is none.
	Replicas int

	// Timeout bounds one call of Publish; 0 means DefaultTimeout. What has no
	// answer by then counts as the destination's failure.
	Timeout time.Duration
}

// Sink publishes to Redis Streams. It implements outbox.Sink; one goroutine at a
// time calls Publish.
type Sink struct {
	cfg    Config
	client redis.UniversalClient
}

var _ outbox.Sink = (*Sink)(nil)

// New returns a sink. It does not wait for a server: one that is down delays
// messages and must not keep a service from starting. Close it after use.
func New(cfg Config) (*Sink, error) {
	if cfg.Stream == nil {
		cfg.Stream = outbox.Topic
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	client := cfg.Client
	if client == nil {
		var err error
		if client, err = connect(cfg); err != nil {
			return nil, err
		}
	}
	return &Sink{cfg: cfg, client: client}, nil
}

func connect(cfg Config) (redis.UniversalClient, error) {
	if cfg.URL == "" {
		return nil, errors.New("redis: no server given; set URL to its address, such as redis://127.0.0.1:6379")
	}
	const never, once = -1, 1 // a retry of the client's own could come behind what is sent next
	if cfg.Cluster {
		options, err := redis.ParseClusterURL(cfg.URL)
		if err != nil {
			return nil, fmt.Errorf("redis: the address of the cluster: %w", err)
		}
		options.MaxRetries, options.DialerRetries, options.ClientName = never, once, "ringi-outbox"
		options.ContextTimeoutEnabled, options.ReadTimeout, options.WriteTimeout = true, cfg.Timeout, cfg.Timeout
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("redis: the address of the server: %w", err)
	}
	options.MaxRetries, options.DialerRetries, options.ClientName = never, once, "ringi-outbox"
	options.ContextTimeoutEnabled, options.ReadTimeout, options.WriteTimeout = true, cfg.Timeout, cfg.Timeout
	return redis.NewClient(options), nil
}

// Quiet turns off what the client writes to standard error by itself, for every
// client of the process: each refused connection is a line there. What a Sink
// answers says the same.
func Quiet() { logging.Disable() }

// MaxBytes is the largest message that the sink sends, headers included.
func (s *Sink) MaxBytes() int { return s.cfg.MaxBytes }

// Close ends the connections, unless they are Config.Client's.
func (s *Sink) Close() error {
	if s.cfg.Client != nil {
		return nil
	}
	return s.client.Close()
}

// Describe says in one line what the destination promises, for people who start
// a relay. It asks the server and fails when there is none; a server that does
// not tell its settings is said to be silent about them.
func (s *Sink) Describe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	promise := "the server does not say when an acknowledged message is on disk"
	if set, err := s.client.ConfigGet(ctx, "append*").Result(); err == nil {
		promise = durability(set)
	}
	if s.cfg.Replicas > 0 {
		promise += fmt.Sprintf(", and %d replicas have it", s.cfg.Replicas)
	}
	return fmt.Sprintf("redis: %s; duplicate window: none, consumers drop repeats by ce-id with an inbox; messages of at most %d bytes", promise, s.cfg.MaxBytes), nil
}

func durability(set map[string]string) string {
	switch {
	case set["appendonly"] != "yes":
		return "an acknowledged message is in memory only (appendonly no): a crash loses what came since the last dump"
	case set["appendfsync"] == "always":
		return "an acknowledged message is on disk"
	case set["appendfsync"] == "everysec":
		return "an acknowledged message is on disk within about a second (appendfsync everysec)"
	}
	return "an acknowledged message is on disk when the system writes it (appendfsync " + strings.TrimSpace(set["appendfsync"]) + ")"
}
