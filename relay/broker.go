package relay

import (
	"crypto/tls"
	"strings"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/outbox/nats"
	"github.com/ringiflow/ringi/outbox/rabbitmq"
	"github.com/ringiflow/ringi/outbox/redis"
)

func openKafka(name, brokers, source string, with *params) (*Sink, error) {
	cfg := kafka.Config{
		Brokers: strings.Split(strings.TrimSuffix(brokers, "/"), ","), Source: source, MaxBytes: with.number("max-bytes"), Topic: topic(with.take("topic-prefix")),
		Login: kafka.Login{Mechanism: with.text("sasl"), User: with.text("user")},
	}
	if with.yes("tls") {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if passwords := with.secrets("password-file"); len(passwords) > 0 {
		cfg.Login.Password = passwords[0]
	}
	if err := with.end(); err != nil {
		return nil, err
	}
	sink, err := kafka.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func openNATS(name, scheme, servers, source string, with *params) (*Sink, error) {
	cfg := nats.Config{
		Stream: with.text("stream"), Source: source, MaxBytes: with.number("max-bytes"),
		Credentials: with.file("creds"), Subject: topic(with.take("subject-prefix")),
	}
	for server := range strings.SplitSeq(strings.TrimSuffix(servers, "/"), ",") {
		cfg.Servers = append(cfg.Servers, scheme+"://"+server)
	}
	if cfg.Subject != nil && cfg.Stream == "" {
		with.fail("name the stream too (stream=S) when you choose a subject-prefix: its duplicate window is asked for")
	}
	if err := with.end(); err != nil {
		return nil, err
	}
	sink, err := nats.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, Parallel: true, describe: sink.Describe, close: sink.Close}, nil
}

func openRedis(name, scheme, address, source string, with *params) (*Sink, error) {
	redis.Quiet() // the relay tells of an outage once
	cfg := redis.Config{
		URL: with.place(scheme, address), Cluster: with.yes("cluster"), Stream: topic(with.take("stream-prefix")), Source: source,
		MaxBytes: with.number("max-bytes"), Keep: int64(with.number("keep")), Replicas: with.number("replicas"),
	}
	if err := with.end(); err != nil {
		return nil, err
	}
	sink, err := redis.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func openRabbitMQ(name, scheme, address, source string, with *params) (*Sink, error) {
	cfg := rabbitmq.Config{
		URL: with.place(scheme, address), Exchange: with.text("exchange"), Key: topic(with.take("key-prefix")), Source: source, MaxBytes: with.number("max-bytes"),
	}
	if err := with.end(); err != nil {
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
