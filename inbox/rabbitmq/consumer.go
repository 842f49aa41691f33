package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/inbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultPauseFirst and DefaultPauseMost are the pauses before a message that
	// failed is received again, doubling from the one to the other; they are those of
	// the outbox.
	DefaultPauseFirst = inbox.DefaultPauseFirst
	DefaultPauseMost  = inbox.DefaultPauseMost

	// DefaultStandBy is how long a process waits before it asks again for a queue
	// that another one reads, or for a broker that is down.
	DefaultStandBy = time.Second

	// heartbeat is how soon a connection that died without a word is noticed, here
	// and at the broker, which then lets another process read.
	heartbeat = 5 * time.Second

	// connectWait bounds a connection being made.
	connectWait = 10 * time.Second
)

// Config configures a Consumer. URL, Queue and Receive are needed.
type Config struct {
	// URL is the broker: amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST], amqps:// for TLS.
	URL string

	// TLS is the configuration of amqps; nil trusts what the system trusts.
	TLS *tls.Config

	// Queue is read. It must be there, unless Declare has it made as a quorum queue,
	// which counts how often it handed a message out.
	Queue   string
	Declare bool

	// Receive does the work of one delivery in a transaction, as
	// inbox.Consumer.Receive does. The message is acknowledged unless it answers
	// inbox.Failed. It is called for one message at a time.
	Receive func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error)

	// Observe, if set, is told the outcome of every delivery; it must not block.
	Observe func(d inbox.Delivery, outcome inbox.Outcome, err error)

	// Trouble, if set, is told of every error of the broker that Run waits out; it must
	// not block.
	Trouble func(err error)

	// Shared lets several processes read the queue at once, which gives its order up.
	Shared bool

	// StandBy is the pause before the queue or the broker is asked for again; 0
	// means DefaultStandBy.
	StandBy time.Duration

	// PauseFirst and PauseMost are the pauses after a failure; 0 means the defaults.
	PauseFirst time.Duration
	PauseMost  time.Duration
}

// Consumer receives messages. One goroutine calls Run or Round.
type Consumer struct {
	cfg  Config
	conn *amqp.Connection // nil: there is none
	from <-chan amqp.Delivery
}

// New returns a consumer that has not begun to read. It does not connect. Close it
// after use.
func New(cfg Config) (*Consumer, error) {
	if cfg.URL == "" || cfg.Queue == "" || cfg.Receive == nil {
		return nil, errors.New("rabbitmq: a consumer needs URL, Queue and Receive; set them in its config")
	}
	if _, err := amqp.ParseURI(cfg.URL); err != nil {
		return nil, fmt.Errorf("rabbitmq: the address of the broker: %w", err)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(inbox.Delivery, inbox.Outcome, error) {}
	}
	orDefault(&cfg.StandBy, DefaultStandBy)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	return &Consumer{cfg: cfg}, nil
}

// orDefault takes nothing and less for not set.
func orDefault(field *time.Duration, value time.Duration) {
	if *field <= 0 {
		*field = value
	}
}

// Run receives until ctx ends and then returns nil. Errors of the broker are
// waited out; those of the work go to Observe.
func (c *Consumer) Run(ctx context.Context) error {
	inbox.Loop(ctx, c.cfg.StandBy, c.Round, c.cfg.Trouble)
	return nil
}

// receiver is what is done with each delivery.
func (c *Consumer) receiver() inbox.Receiver {
	return inbox.Receiver{Receive: c.cfg.Receive, Observe: c.cfg.Observe, PauseFirst: c.cfg.PauseFirst, PauseMost: c.cfg.PauseMost}
}

// Close ends the connection. A message that is out comes again, here or elsewhere.
// Call it when Run has returned.
func (c *Consumer) Close() error {
	if c.conn == nil || c.conn.IsClosed() {
		return nil
	}
	return c.conn.Close()
}
