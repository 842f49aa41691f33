package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/inbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultAckWait is how long the server waits for a sign of life before it
	// gives a message to somebody else.
	DefaultAckWait = 30 * time.Second

	// DefaultPauseFirst and DefaultPauseMost are the pauses before a message that
	// failed is received again, doubling from the one to the other; they are those of
	// the outbox.
	DefaultPauseFirst = inbox.DefaultPauseFirst
	DefaultPauseMost  = inbox.DefaultPauseMost

	// fetchWait is how long one fetch waits for a message. A stop does not wait
	// for it.
	fetchWait = 5 * time.Second

	// idlePause is the pause of Run after an error of the server.
	idlePause = time.Second

	// signs of life are sent so many times within DefaultAckWait.
	signs = 3
)

// Config configures a Consumer. Servers, Stream, Name and Receive are needed.
type Config struct {
	// Servers are nats:// or tls:// addresses to begin with.
	Servers []string

	// Stream is the stream to read, from its beginning when Name is new.
	Stream string

	// Name is the durable consumer in the stream; processes that use the same
	// name share its messages. It is made, or brought up to date, by Run.
	Name string

	// Subjects choose among the stream's messages; none means all.
	Subjects []string

	// Receive does the work of one delivery in a transaction, as
	// inbox.Consumer.Receive does. The message is acknowledged unless it answers
	// inbox.Failed. It is called for one message at a time.
	Receive func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error)

	// Observe, if set, is told the outcome of every delivery; it must not block.
	Observe func(d inbox.Delivery, outcome inbox.Outcome, err error)

	// Trouble, if set, is told of every error of the broker that Run waits out; it must
	// not block.
	Trouble func(err error)

	// Pending is how many messages may be out at once, in all processes; 0 means
	// 1, which keeps the order.
	Pending int

	// AckWait is how long the server waits for a sign of life; 0 means
	// DefaultAckWait.
	AckWait time.Duration

	// PauseFirst and PauseMost are the pauses after a failure; 0 means the defaults.
	PauseFirst time.Duration
	PauseMost  time.Duration

	// Credentials, if set, is a file that says who the client is (.creds). It is
	// read again at every connection, so that it can be replaced.
	Credentials string

	// Options are further options of the client, such as TLS.
	Options []nats.Option
}

// Consumer receives messages. One goroutine calls Run or Round.
type Consumer struct {
	cfg  Config
	conn *nats.Conn
	js   jetstream.JetStream
	from jetstream.Consumer // nil until the server has it
}

// New returns a consumer that has not begun to read. It does not wait for a
// server. Close it after use.
func New(cfg Config) (*Consumer, error) {
	if len(cfg.Servers) == 0 || cfg.Stream == "" || cfg.Name == "" || cfg.Receive == nil {
		return nil, errors.New("nats: a consumer needs Servers, Stream, Name and Receive; set them in its config")
	}
	if cfg.Observe == nil {
		cfg.Observe = func(inbox.Delivery, inbox.Outcome, error) {}
	}
	if cfg.Pending <= 0 {
		cfg.Pending = 1
	}
	orDefault(&cfg.AckWait, DefaultAckWait)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	options := append([]nats.Option{nats.Name("ringi-inbox")}, cfg.Options...)
	if cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	conn, err := nats.Connect(strings.Join(cfg.Servers, ","), append(options, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))...)
	if err != nil {
		return nil, fmt.Errorf("nats: make a client for %v: %w", cfg.Servers, err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("nats: make a client for %v: %w", cfg.Servers, err)
	}
	return &Consumer{cfg: cfg, conn: conn, js: js}, nil
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

// Close ends the connection. A message that is out comes again, here or
// elsewhere. Call it when Run has returned.
func (c *Consumer) Close() error {
	c.conn.Close()
	return nil
}
