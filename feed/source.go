package feed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/address"
	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/kafka"
	"github.com/ringiflow/ringi/inbox/nats"
	"github.com/ringiflow/ringi/inbox/rabbitmq"
	"github.com/ringiflow/ringi/inbox/redis"
	kafkasink "github.com/ringiflow/ringi/outbox/kafka"
	redissink "github.com/ringiflow/ringi/outbox/redis"
)

// How sources begin.
const (
	schemeKafka       = "kafka"
	schemeNATS        = "nats"
	schemeNATSTLS     = "nats+tls"
	schemeRabbitMQ    = "amqp"
	schemeRabbitMQTLS = "amqps"
	schemeRedis       = "redis"
	schemeRedisTLS    = "rediss"
)

// Forms says which sources there are, for messages to people.
const Forms = "kafka://HOST:PORT?topic=T, nats://HOST?stream=S, amqp://HOST?queue=Q, redis://HOST?stream=S"

// A Source is an open source. Whoever gave it up closes it.
type Source struct {
	// Name says in short what it is, without secrets.
	Name string

	consumer interface {
		Run(ctx context.Context) error
		Close() error
	}
}

// Run receives until ctx ends and then returns nil. A broker that is down is waited
// for.
func (s *Source) Run(ctx context.Context) error { return s.consumer.Run(ctx) }

// Close ends the connections. Call it when Run has returned.
func (s *Source) Close() error { return s.consumer.Close() }

// An Opener opens sources.
type Opener struct {
	// Group is the group of consumers of sources that name none. All processes of one
	// group share the messages.
	Group string

	// Path finds a file that was named; nil takes the name as it is.
	Path func(name string) string

	// Receiver is what is done with each delivery. One source calls it for one message
	// at a time, Kafka for one of each partition.
	Receiver inbox.Receiver
}

// Open opens a source. One whose broker is down is no failure: Run waits for it.
func (o Opener) Open(text string) (*Source, error) {
	scheme, place, with, err := address.Split(text, o.Path)
	name := address.WithoutSecrets(text)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", name, err)
	}
	s := &Source{Name: name}
	if group := with.Text("group"); group != "" {
		o.Group = group
	}
	if place == "" {
		return nil, fmt.Errorf("the source %q is not one of %s", name, Forms)
	}
	switch scheme {
	case schemeKafka:
		s.consumer, err = o.kafka(place, with)
	case schemeNATS, schemeNATSTLS:
		s.consumer, err = o.nats(strings.TrimPrefix(scheme, "nats+"), place, with)
	case schemeRabbitMQ, schemeRabbitMQTLS:
		s.consumer, err = o.rabbitmq(scheme, place, with)
	case schemeRedis, schemeRedisTLS:
		s.consumer, err = o.redis(scheme, place, with)
	default:
		return nil, fmt.Errorf("the source %q is not one of %s", name, Forms)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", name, err)
	}
	return s, nil
}

func (o Opener) kafka(place string, with *address.Params) (*kafka.Consumer, error) {
	r := o.Receiver
	cfg := kafka.Config{
		Brokers: strings.Split(strings.TrimSuffix(place, "/"), ","), Group: o.Group, Topics: with.Take("topic"), Create: with.Yes("create"), Session: with.Span("session"),
		Receive: r.Receive, Observe: r.Observe, Trouble: r.Trouble, PauseFirst: r.PauseFirst, PauseMost: r.PauseMost,
	}
	login := kafkasink.Login{Mechanism: with.Text("sasl"), User: with.Text("user")}
	if passwords := with.Secrets("password-file"); len(passwords) > 0 {
		login.Password = passwords[0]
	}
	var encrypted *tls.Config
	if with.Yes("tls") {
		encrypted = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(cfg.Topics) == 0 {
		with.Fail("name the topic (?topic=T), or several")
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	var err error
	if cfg.Options, err = kafkasink.ClientOptions(encrypted, login); err != nil {
		return nil, err
	}
	return kafka.New(cfg)
}

func (o Opener) nats(scheme, place string, with *address.Params) (*nats.Consumer, error) {
	r := o.Receiver
	cfg := nats.Config{
		Stream: with.Text("stream"), Name: o.Group, Subjects: with.Take("subject"), Credentials: with.File("creds"), AckWait: with.Span("ack-wait"),
		Receive: r.Receive, Observe: r.Observe, Trouble: r.Trouble, PauseFirst: r.PauseFirst, PauseMost: r.PauseMost,
	}
	for server := range strings.SplitSeq(strings.TrimSuffix(place, "/"), ",") {
		cfg.Servers = append(cfg.Servers, scheme+"://"+server)
	}
	if cfg.Stream == "" {
		with.Fail("name the stream (?stream=S)")
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	return nats.New(cfg)
}

func (o Opener) redis(scheme, place string, with *address.Params) (*redis.Consumer, error) {
	redissink.Quiet() // an outage is told once
	r := o.Receiver
	cfg := redis.Config{
		URL: with.Server(scheme, place), Cluster: with.Yes("cluster"), Stream: with.Text("stream"), Name: o.Group, AckWait: with.Span("ack-wait"),
		Receive: r.Receive, Observe: r.Observe, Trouble: r.Trouble, PauseFirst: r.PauseFirst, PauseMost: r.PauseMost,
	}
	if cfg.Stream == "" {
		with.Fail("name the stream (?stream=S)")
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	return redis.New(cfg)
}

func (o Opener) rabbitmq(scheme, place string, with *address.Params) (*rabbitmq.Consumer, error) {
	r := o.Receiver
	cfg := rabbitmq.Config{
		URL: with.Server(scheme, place), Queue: with.Text("queue"), Declare: with.Yes("declare"),
		Receive: r.Receive, Observe: r.Observe, PauseFirst: r.PauseFirst, PauseMost: r.PauseMost,
		Trouble: func(err error) {
			if r.Trouble != nil && !errors.Is(err, rabbitmq.ErrStandsBy) { // which is as it should be
				r.Trouble(err)
			}
		},
	}
	if cfg.Queue == "" {
		with.Fail("name the queue (?queue=Q)")
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	return rabbitmq.New(cfg)
}
