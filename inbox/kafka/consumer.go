package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/inbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultBatch is how many records one round takes: enough to share a commit
	// of offsets, few enough not to hold up a rebalance.
	DefaultBatch = 100

	// DefaultParallel is how many partitions are worked on at once.
	DefaultParallel = 8

	// DefaultPauseFirst and DefaultPauseMost are the pauses before a record that
	// failed is received again, doubling from the one to the other; they are
	// those of the outbox.
	DefaultPauseFirst = inbox.DefaultPauseFirst
	DefaultPauseMost  = inbox.DefaultPauseMost

	// commitTime bounds the commit of offsets, also while stopping.
	commitTime = 10 * time.Second

	// signs of life are sent so many times within Session.
	signs = 3

	// idlePause is the pause of Run after an error of the broker.
	idlePause = time.Second
)

// Config configures a Consumer. Brokers, Group, Topics and Receive are needed.
type Config struct {
	// Brokers are host:port pairs to begin with; the others are learnt from them.
	Brokers []string

	// Group is the consumer group; its members share the partitions.
	Group string

	// Topics are read from their beginning when the group is new.
	Topics []string

	// Receive does the work of one delivery in a transaction, as
	// inbox.Consumer.Receive does. An offset is committed unless it answers
	// inbox.Failed. It is called for several partitions at once.
	Receive func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error)

	// Observe, if set, is told the outcome of every delivery, from the goroutine
	// that received it; it must not block.
	Observe func(d inbox.Delivery, outcome inbox.Outcome, err error)

	// Trouble, if set, is told of every error of the broker that Run waits out; it must
	// not block.
	Trouble func(err error)

	// Batch is how many records one round takes, Parallel how many partitions are
	// worked on at once; 0 means the defaults.
	Batch    int
	Parallel int

	// Create asks the brokers to make topics that are not there, which they do unless
	// auto.create.topics.enable says no.
	Create bool

	// Session is how soon the group notices a member that died without a word, and
	// gives its partitions to others; 0 means the client's default of 45 s. The broker
	// sets limits to it.
	Session time.Duration

	// PauseFirst and PauseMost are the pauses after a failure; 0 means the defaults.
	PauseFirst time.Duration
	PauseMost  time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// Options are further options of the client, such as TLS or SASL. Those that
	// the promises of this package rest on cannot be changed with them.
	Options []kgo.Opt
}

// Consumer receives records. One goroutine calls Run or Round.
type Consumer struct {
	cfg    Config
	client *kgo.Client

	mu    sync.Mutex
	lines map[place]*line
}

// New returns a consumer that has not begun to read. It does not wait for a
// broker. Close it after use.
func New(cfg Config) (*Consumer, error) {
	if len(cfg.Brokers) == 0 || cfg.Group == "" || len(cfg.Topics) == 0 || cfg.Receive == nil {
		return nil, errors.New("kafka: a consumer needs Brokers, Group, Topics and Receive; set them in its config")
	}
	if cfg.Observe == nil {
		cfg.Observe = func(inbox.Delivery, inbox.Outcome, error) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	orDefault(&cfg.Batch, DefaultBatch)
	orDefault(&cfg.Parallel, DefaultParallel)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	c := &Consumer{cfg: cfg, lines: map[place]*line{}}
	forget := func(_ context.Context, client *kgo.Client, lost map[string][]int32) {
		c.forget(lost)
		client.ResumeFetchPartitions(lost)
	}
	options := append([]kgo.Opt{kgo.ClientID("ringi-inbox"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, cfg.Options...)
	if cfg.Session > 0 {
		options = append(options, kgo.SessionTimeout(cfg.Session), kgo.HeartbeatInterval(cfg.Session/signs))
	}
	if cfg.Create {
		options = append(options, kgo.AllowAutoTopicCreation())
	}
	client, err := kgo.NewClient(append(options,
		kgo.SeedBrokers(cfg.Brokers...), kgo.ConsumerGroup(cfg.Group), kgo.ConsumeTopics(cfg.Topics...),
		kgo.DisableAutoCommit(), // an offset is committed after the work, never by the clock
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(forget), kgo.OnPartitionsLost(forget),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: make a client for %v: %w", cfg.Brokers, err)
	}
	c.client = client
	return c, nil
}

// orDefault takes nothing and less for not set.
func orDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Run receives until ctx ends and then returns nil. Errors of brokers are waited
// out; those of the work go to Observe.
func (c *Consumer) Run(ctx context.Context) error {
	inbox.Loop(ctx, idlePause, c.Round, c.cfg.Trouble)
	return nil
}

// Close leaves the group, so that others get its partitions at once. Call it
// when Run has returned.
func (c *Consumer) Close() error {
	c.client.CloseAllowingRebalance()
	return nil
}
