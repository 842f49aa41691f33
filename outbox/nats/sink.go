package nats

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultTimeout bounds one call of Publish. It is below half of a relay's
	// default lease, so that an answer comes before the relay stops waiting.
	DefaultTimeout = 10 * time.Second

	// DefaultMaxBytes is the largest message. It is what a server takes that
	// nobody has configured (max_payload).
	DefaultMaxBytes = 1 << 20

	// reconnectPause is how long the client waits before it tries a lost server
	// again; a relay looks again after a second at the earliest.
	reconnectPause = 500 * time.Millisecond

	// mostPending is more than a relay ever sends in one call.
	mostPending = 1 << 16
)

// Config configures a Sink. Servers is needed; every other field has a default
// that its zero value stands for.
type Config struct {
	// Servers are nats:// or tls:// addresses to begin with.
	Servers []string

	// Stream, if set, is the stream that must take the messages; a message that
	// another one takes fails. Empty leaves it to the subject.
	Stream string

	// Subject names the subject of a message; nil means outbox.Topic.
	Subject func(m *outbox.Message) string

	// Source is the CloudEvents source; empty means outbox.DefaultEventSource.
	Source string

	// MaxBytes is the largest message, headers included; a larger one is refused
	// without being sent, as is one above the server's own max_payload. 0 means
	// DefaultMaxBytes.
	MaxBytes int

	// Timeout bounds one call of Publish; 0 means DefaultTimeout. What has no
	// answer by then counts as the destination's failure.
	Timeout time.Duration

	// Credentials, if set, is a file that says who the client is (.creds). It is
	// read again at every connection, so that it can be replaced.
	Credentials string

	// Options are further options of the client, such as a TLS configuration.
	// Those that the promises of this package rest on cannot be changed with
	// them.
	Options []nats.Option
}

// Sink publishes to JetStream. It implements outbox.Sink; several goroutines may
// call Publish at once, each with keys of its own.
type Sink struct {
	cfg  Config
	conn *nats.Conn
	js   jetstream.JetStream
}

var _ outbox.Sink = (*Sink)(nil)

// New returns a sink. It does not wait for a server: one that is down delays
// messages and must not keep a service from starting. Close it after use.
func New(cfg Config) (*Sink, error) {
	if len(cfg.Servers) == 0 {
		return nil, errors.New("nats: no server given; set Servers to the address of at least one, such as nats://127.0.0.1:4222")
	}
	if cfg.Subject == nil {
		cfg.Subject = outbox.Topic
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	options := append([]nats.Option{nats.Name("ringi-outbox"), nats.ReconnectWait(reconnectPause)}, cfg.Options...)
	if cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	conn, err := nats.Connect(strings.Join(cfg.Servers, ","), append(options,
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// Without this the client would keep messages while there is no
		// connection and send them long after the relay has moved on.
		nats.ReconnectBufSize(-1),
	)...)
	if err != nil {
		return nil, fmt.Errorf("nats: make a client for %v: %w", cfg.Servers, err)
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(mostPending), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("nats: make a client for %v: %w", cfg.Servers, err)
	}
	return &Sink{cfg: cfg, conn: conn, js: js}, nil
}

// MaxBytes is the largest message that the sink sends, headers included.
func (s *Sink) MaxBytes() int {
	// The server's limit is known once there was a connection.
	if limit := int(s.conn.MaxPayload()); limit > 0 {
		return min(limit, s.cfg.MaxBytes)
	}
	return s.cfg.MaxBytes
}

// Close ends the connection. A call of Publish under way answers with errors.
// Closing twice is fine.
func (s *Sink) Close() error {
	s.conn.Close()
	return nil
}
