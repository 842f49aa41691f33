package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultTimeout bounds one call of Publish. It is below half of a relay's
	// default lease, so that an answer comes before the relay stops waiting.
	DefaultTimeout = 10 * time.Second

	// DefaultMaxBytes is the largest record. It is what a broker takes that
	// nobody has configured (message.max.bytes), less room for the batch around it.
	DefaultMaxBytes = 1_000_000

	// metadataAge is how soon the client asks again where partitions are led. Its
	// own default of seconds would use up a call's time when a leader moves.
	metadataAge = 250 * time.Millisecond

	// longestBackoff is the longest pause of the client between tries within a call.
	longestBackoff = time.Second

	// absentPause is how long a topic that was not there is not asked for again.
	// Asking takes about a second, in which the call's other messages wait.
	absentPause = 10 * time.Second

	// leastBatch is the smallest batch limit that the client takes, in bytes.
	leastBatch = 512

	// leastTimeout is the shortest time-out that can be told to a broker, twice.
	leastTimeout = 200 * time.Millisecond

	// batchOverhead is what Kafka puts around the records of one batch, in bytes.
	batchOverhead = 128
)

// Headers says which headers a record has.
type Headers string

// The choices of Config.Headers.
const (
	// EventHeaders are all that the package comment lists; it is the default,
	// because without them nothing tells a consumer what happened.
	EventHeaders Headers = ""

	// DebeziumHeaders is the header id alone, so that a record is to the byte what
	// Debezium's outbox router makes of the row by its defaults. The message's type,
	// its content type and its own headers, a trace among them, do not travel.
	DebeziumHeaders Headers = "debezium"
)

// Config configures a Sink. Brokers is needed; every other field has a default
// that its zero value stands for.
type Config struct {
	// Brokers are host:port pairs to begin with; the others are learnt from them.
	Brokers []string

	// Topic names the topic of a message; nil means outbox.Topic. Order holds
	// within a topic: a choice by the message's type gives up the order between
	// types of one aggregate. Messages of one type must not change their topic.
	Topic func(m *outbox.Message) string

	// Headers is which headers a record has; empty means EventHeaders.
	Headers Headers

	// Source is the CloudEvents source; empty means outbox.DefaultEventSource.
	Source string

	// MaxBytes is the largest record, key and headers included; a larger one is
	// refused without being sent. Keep it at or below the topics'
	// max.message.bytes; 0 means DefaultMaxBytes.
	MaxBytes int

	// Timeout bounds one call of Publish; 0 means DefaultTimeout. What has no
	// answer by then counts as the destination's failure.
	Timeout time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// TLS, if set, encrypts the connections; a zero tls.Config trusts whom the
	// system trusts.
	TLS *tls.Config

	// Login, if it has a user, is how the client says who it is.
	Login Login

	// Options are further options of the client, such as compression. Those that
	// the promises of this package rest on cannot be changed with them.
	Options []kgo.Opt
}

// Sink publishes to Kafka. It implements outbox.Sink; one goroutine at a time
// calls Publish.
type Sink struct {
	client   *kgo.Client
	topic    func(*outbox.Message) string
	source   string
	headers  Headers
	maxBytes int
	timeout  time.Duration
	now      func() time.Time
	known    map[string]bool      // topics whose partitions the client has seen
	absent   map[string]time.Time // topics that were not there, and when
}

var _ outbox.Sink = (*Sink)(nil)

// New returns a sink. It does not wait for a broker: one that is down delays
// messages and must not keep a service from starting. Close it after use.
func New(cfg Config) (*Sink, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("kafka: no broker given; set Brokers to host:port of at least one")
	}
	if cfg.Topic == nil {
		cfg.Topic = outbox.Topic
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Headers != EventHeaders && cfg.Headers != DebeziumHeaders {
		return nil, fmt.Errorf("kafka: headers %q are not known; leave them empty for all, or say %s for the message id alone", cfg.Headers, DebeziumHeaders)
	}
	login, err := cfg.Login.options()
	if err != nil {
		return nil, err
	}
	cfg.Options = append(login, cfg.Options...)
	client, err := kgo.NewClient(clientOptions(cfg)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: make a client for %v: %w", cfg.Brokers, err)
	}
	return &Sink{
		client: client, topic: cfg.Topic, source: cfg.Source, headers: cfg.Headers, maxBytes: cfg.MaxBytes, timeout: cfg.Timeout, now: cfg.Now,
		known: map[string]bool{}, absent: map[string]time.Time{},
	}, nil
}

// clientOptions puts the caller's options between what they may change and what
// they may not.
func clientOptions(cfg Config) []kgo.Opt {
	answer := max(cfg.Timeout, leastTimeout) / 2
	options := append([]kgo.Opt{
		kgo.ClientID("ringi-outbox"),
		kgo.MetadataMinAge(metadataAge),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*longestBackoff/10, longestBackoff)
		}),
	}, cfg.Options...)
	if cfg.TLS != nil {
		options = append(options, kgo.DialTLSConfig(cfg.TLS))
	}
	return append(options,
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// Sending starts when a whole call's records stand in their partitions,
		// or a record could fail before a later one of its key is known.
		kgo.ManualFlushing(),
		kgo.MaxBufferedRecords(1<<20),
		kgo.ProducerBatchMaxBytes(int32(max(leastBatch, min(cfg.MaxBytes, 1<<30)+batchOverhead))),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // the hash of Kafka's own client
		// A call that gave up must not go on sending; see the package comment.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.ProduceRequestTimeout(answer),
		kgo.RequestTimeoutOverhead(answer),
	)
}

// MaxBytes is the largest record that the sink sends, key and headers included.
func (s *Sink) MaxBytes() int { return s.maxBytes }

// Describe says in one line what the destination promises, for people who start
// a relay. It asks no broker and its error is always nil.
func (s *Sink) Describe(context.Context) (string, error) {
	return fmt.Sprintf("kafka: acknowledged by all in-sync replicas, order per aggregate id, records of at most %d bytes; duplicate window: none, a message sent again after a crash arrives twice under one id, so consumers need an inbox", s.maxBytes), nil
}

// Close ends the connections. A call of Publish under way answers with errors.
// Closing twice is fine.
func (s *Sink) Close() error {
	s.client.Close()
	return nil
}
