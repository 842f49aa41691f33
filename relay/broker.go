package relay

import (
	"crypto/tls"
	"strings"

	"github.com/ringiflow/ringi/address"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/outbox/nats"
	"github.com/ringiflow/ringi/outbox/rabbitmq"
	"github.com/ringiflow/ringi/outbox/redis"
)

func openKafka(name, brokers, source string, with *address.Params) (*Sink, error) {
	cfg := kafka.Config{
		Brokers: strings.Split(strings.TrimSuffix(brokers, "/"), ","), Source: source, MaxBytes: with.Number("max-bytes"), Topic: topic(with.Take("topic-prefix")),
		Headers: kafka.Headers(with.Text("headers")),
		Login:   kafka.Login{Mechanism: with.Text("sasl"), User: with.Text("user")},
	}
	if with.Yes("tls") {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if passwords := with.Secrets("password-file"); len(passwords) > 0 {
		cfg.Login.Password = passwords[0]
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	sink, err := kafka.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func openNATS(name, scheme, servers, source string, with *address.Params) (*Sink, error) {
	cfg := nats.Config{
		Stream: with.Text("stream"), Source: source, MaxBytes: with.Number("max-bytes"),
		Credentials: with.File("creds"), Subject: topic(with.Take("subject-prefix")),
	}
	for server := range strings.SplitSeq(strings.TrimSuffix(servers, "/"), ",") {
		cfg.Servers = append(cfg.Servers, scheme+"://"+server)
	}
	if cfg.Subject != nil && cfg.Stream == "" {
		with.Fail("name the stream too (stream=S) when you choose a subject-prefix: its duplicate window is asked for")
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	sink, err := nats.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func openRedis(name, scheme, at, source string, with *address.Params) (*Sink, error) {
	redis.Quiet() // the relay tells of an outage once
	cfg := redis.Config{
		URL: with.Server(scheme, at), Cluster: with.Yes("cluster"), Stream: topic(with.Take("stream-prefix")), Source: source,
		MaxBytes: with.Number("max-bytes"), Keep: int64(with.Number("keep")), Replicas: with.Number("replicas"),
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	sink, err := redis.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func openRabbitMQ(name, scheme, at, source string, with *address.Params) (*Sink, error) {
	cfg := rabbitmq.Config{
		URL: with.Server(scheme, at), Exchange: with.Text("exchange"), Key: topic(with.Take("key-prefix")), Source: source, MaxBytes: with.Number("max-bytes"),
	}
	if err := with.End(); err != nil {
		return nil, err
	}
	sink, err := rabbitmq.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

// topic names topics by a prefix; without one the sinks have their own.
func topic(prefix []string) func(*outbox.Message) string {
	if len(prefix) == 0 {
		return nil
	}
	return func(m *outbox.Message) string { return prefix[0] + m.AggregateType }
}
