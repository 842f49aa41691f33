package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultTimeout bounds one call of Publish. It is below half of a relay's
	// default lease, so that an answer comes before the relay stops waiting.
	DefaultTimeout = 10 * time.Second

	// DefaultMaxBytes is the largest message. It is what a broker of version 4 takes
	// that nobody has configured (max_message_size).
	DefaultMaxBytes = 16 << 20

	// heartbeat is how soon a connection that died without a word is noticed.
	heartbeat = 5 * time.Second

	// mostPending is how many messages are sent before their confirmations are
	// awaited. As many returned ones must have room before they are looked at.
	mostPending = 512
)

// Config configures a Sink. URL is needed; every other field has a default that
// its zero value stands for.
type Config struct {
	// URL is the broker: amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST], amqps:// for TLS.
	URL string

	// TLS is the configuration of amqps; nil trusts what the system trusts.
	TLS *tls.Config

	// Exchange is where messages are published; empty is the default exchange, whose
	// routing keys are names of queues.
	Exchange string

	// Key names the routing key of a message; nil means outbox.Topic.
	Key func(m *outbox.Message) string

	// Source is the CloudEvents source; empty means outbox.DefaultEventSource.
	Source string

	// MaxBytes is the largest message, headers included; a larger one is refused
	// without being sent. 0 means DefaultMaxBytes.
	MaxBytes int

	// Timeout bounds one call of Publish; 0 means DefaultTimeout. What has no
	// answer by then counts as the destination's failure.
	Timeout time.Duration
}

// Sink publishes to RabbitMQ. It implements outbox.Sink; one goroutine at a time
// calls Publish.
type Sink struct {
	cfg  Config
	link *link // nil: there is no connection

	mu      sync.Mutex
	blocked string // why the broker takes nothing; written by the connection
}

var _ outbox.Sink = (*Sink)(nil)

// New returns a sink. It does not connect: a broker that is down delays messages
// and must not keep a service from starting. Close it after use.
func New(cfg Config) (*Sink, error) {
	if cfg.URL == "" {
		return nil, errors.New("rabbitmq: no broker given; set URL to its address, such as amqp://127.0.0.1:5672")
	}
	if _, err := amqp.ParseURI(cfg.URL); err != nil {
		return nil, fmt.Errorf("rabbitmq: the address of the broker: %w", err)
	}
	if cfg.Key == nil {
		cfg.Key = outbox.Topic
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Sink{cfg: cfg}, nil
}

// MaxBytes is the largest message that the sink sends, headers included.
func (s *Sink) MaxBytes() int { return s.cfg.MaxBytes }

// Close ends the connection. Call it when no Publish is under way.
func (s *Sink) Close() error {
	s.drop()
	return nil
}

// Describe says in one line what the destination promises, for people who start
// a relay. It asks the broker and fails when there is none, or no such exchange.
// Like Publish it is for one goroutine at a time.
func (s *Sink) Describe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	l, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	place := "the queue of its routing key"
	if s.cfg.Exchange != "" {
		place = "exchange " + s.cfg.Exchange
	}
	version, _ := l.conn.Properties["version"].(string)
	return fmt.Sprintf("rabbitmq %s: a message counts as delivered when all queues that %s leads to have it on disk, quorum queues on most of their replicas; duplicate window: none, consumers drop repeats by message_id with an inbox; messages of at most %d bytes",
		version, place, s.cfg.MaxBytes), nil
}

// A link is a connection with a channel that confirms.
type link struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	raw     net.Conn
	returns chan amqp.Return
	ended   chan *amqp.Error // brings why the channel ended
	said    *amqp.Error      // that, once it was read
}

// connect returns the connection, made if there is none.
func (s *Sink) connect(ctx context.Context) (*link, error) {
	if s.link != nil && !s.link.channel.IsClosed() {
		return s.link, nil
	}
	s.drop()
	l := &link{returns: make(chan amqp.Return, mostPending), ended: make(chan *amqp.Error, 1)}
	if err := s.dial(ctx, l); err != nil {
		return nil, outbox.Excuse(fmt.Errorf("rabbitmq: connect: %w", err))
	}
	s.link = l
	return l, nil
}

func (s *Sink) dial(ctx context.Context, l *link) (err error) {
	stop := func() bool { return true }
	defer func() { stop() }()
	l.conn, err = amqp.DialConfig(s.cfg.URL, amqp.Config{
		Heartbeat: heartbeat, TLSClientConfig: s.cfg.TLS, Properties: amqp.Table{"connection_name": "ringi-outbox"},
		Dial: func(network, address string) (net.Conn, error) {
			var d net.Dialer
			raw, err := d.DialContext(ctx, network, address)
			if err == nil {
				l.raw = raw
				stop = context.AfterFunc(ctx, func() { _ = raw.Close() }) // what follows knows nothing of ctx
			}
			return raw, err
		},
	})
	if err != nil {
		return err
	}
	if l.channel, err = l.conn.Channel(); err == nil {
		err = l.channel.Confirm(false)
	}
	if err == nil && s.cfg.Exchange != "" {
		err = l.channel.ExchangeDeclarePassive(s.cfg.Exchange, amqp.ExchangeTopic, true, false, false, false, nil)
	}
	if err != nil {
		return errors.Join(err, l.raw.Close())
	}
	l.channel.NotifyReturn(l.returns)
	l.channel.NotifyClose(l.ended)
	go s.watch(l.conn.NotifyBlocked(make(chan amqp.Blocking, 1)))
	return nil
}

// watch notes whether the broker takes nothing because it has no memory or disk
// left, until the connection ends.
func (s *Sink) watch(blocked <-chan amqp.Blocking) {
	for b := range blocked {
		s.setBlocked(b.Active, b.Reason)
	}
	s.setBlocked(false, "")
}

func (s *Sink) setBlocked(active bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = ""
	if active {
		s.blocked = reason
	}
}

func (s *Sink) whyBlocked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked
}

// drop ends the connection without waiting for the broker.
func (s *Sink) drop() {
	if s.link == nil {
		return
	}
	_ = s.link.raw.Close() // it is given up; the client ends when it cannot read
	s.link = nil
}
