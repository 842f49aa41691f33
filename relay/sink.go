package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/ringiflow/ringi/address"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/ndjson"
	"github.com/ringiflow/ringi/outbox/webhook"
)

// A Sink is an open destination.
type Sink struct {
	outbox.Sink

	// Destination is whose messages it takes; empty means those that name none.
	Destination string

	// Name says in short what it is, without secrets.
	Name string

	describe func(context.Context) (string, error)
	close    func() error
}

// Describe says in one line what the destination promises, among it for how long
// it drops repeats. A destination that has to be asked and is down is an error.
func (s *Sink) Describe(ctx context.Context) (string, error) { return s.describe(ctx) }

// Close gives back what was opened.
func (s *Sink) Close() error { return s.close() }

// MaxBytes is the largest message that the destination takes; 0 when it knows no
// limit below that of the outbox.
func (s *Sink) MaxBytes() int {
	if sized, ok := s.Sink.(interface{ MaxBytes() int }); ok {
		return sized.MaxBytes()
	}
	return 0
}

// An Opener opens destinations.
type Opener struct {
	// Stdout is where stdout writes; nil refuses it.
	Stdout io.Writer

	// Path finds a file that was named; nil takes the name as it is.
	Path func(name string) string

	// Source is the CloudEvents source of destinations that name none; empty means
	// outbox.DefaultEventSource.
	Source string

	// Ringi makes the sink for a server of ringi, with the key in a file; without
	// the parameter the name is empty. Nil refuses such destinations.
	Ringi func(server, keyFile string) (*outbox.Runs, error)
}

// Open opens the destinations of places. Those that it had opened are closed
// again when one fails. A destination that is down is no failure: its messages
// wait.
func (o Opener) Open(places []Place) ([]*Sink, error) {
	var sinks []*Sink
	for _, p := range places {
		s, err := o.open(p)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("destination %s: %w", address.WithoutSecrets(p.URL), err), CloseAll(sinks))
		}
		s.Destination = p.Destination
		sinks = append(sinks, s)
	}
	return sinks, nil
}

// CloseAll closes sinks.
func CloseAll(sinks []*Sink) error {
	var errs []error
	for _, s := range sinks {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (o Opener) open(p Place) (*Sink, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Path == nil {
		o.Path = func(name string) string { return name }
	}
	name := address.WithoutSecrets(p.URL)
	if p.URL == schemeStdout {
		return o.stdout(name)
	}
	if path, ok := strings.CutPrefix(p.URL, schemeFile); ok {
		return o.file(name, path)
	}
	scheme, at, with, err := address.Split(p.URL, o.Path)
	if err != nil {
		return nil, err
	}
	source := with.Text("source")
	if source == "" {
		source = o.Source
	}
	switch scheme + "://" {
	case schemeKafka:
		return openKafka(name, at, source, with)
	case schemeNATS, schemeNATSTLS:
		return openNATS(name, strings.TrimPrefix(scheme, "nats+"), at, source, with)
	case schemeRabbitMQ, schemeRabbitMQTLS:
		return openRabbitMQ(name, scheme, at, source, with)
	case schemeRedis, schemeRedisTLS:
		return openRedis(name, scheme, at, source, with)
	case schemeWebhook, schemeWebhookHTTP:
		return openWebhook(name, strings.TrimPrefix(scheme, "webhook+"), at, source, with)
	}
	return o.ringi(name, strings.TrimPrefix(scheme, "ringi+")+"://"+at, with)
}

func (o Opener) stdout(name string) (*Sink, error) {
	if o.Stdout == nil {
		return nil, errors.New("standard output is used for something else here; write to a file")
	}
	const says = "stdout: one CloudEvent a line; a message counts as delivered when the pipe has taken it; duplicate window: none, readers drop repeats by the id"
	return &Sink{Sink: ndjson.NewWriter(o.Stdout, o.Source), Name: name, describe: always(says), close: nothing}, nil
}

func (o Opener) file(name, path string) (*Sink, error) {
	file, err := ndjson.OpenFile(o.Path(path), o.Source)
	if err != nil {
		return nil, err
	}
	says := fmt.Sprintf("%s: one CloudEvent a line, on disk before a message counts as delivered; duplicate window: none, readers drop repeats by the id", name)
	return &Sink{Sink: file, Name: name, describe: always(says), close: file.Close}, nil
}

func (o Opener) ringi(name, server string, with *address.Params) (*Sink, error) {
	key := with.File("key-file")
	if err := with.End(); err != nil {
		return nil, err
	}
	if o.Ringi == nil {
		return nil, errors.New("a server of ringi is no destination here")
	}
	runs, err := o.Ringi(server, key)
	if err != nil {
		return nil, err
	}
	says := fmt.Sprintf("ringi: %s starts a run for each message %s and takes every other as an event; duplicate window: run starts for ever, by their key; events as long as the server keeps them, by the message id",
		server, outbox.RunStartType)
	return &Sink{Sink: runs, Name: name, describe: always(says), close: nothing}, nil
}

// openWebhook takes its own parameters away; all others are the endpoint's.
func openWebhook(name, scheme, at, source string, with *address.Params) (*Sink, error) {
	cfg := webhook.Config{PlainHTTP: scheme == "http", Source: source, MaxBytes: with.Number("max-bytes"), Parallel: with.Number("parallel")}
	for _, text := range with.Secrets("secret-file") {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return nil, err
		}
		cfg.Secrets = append(cfg.Secrets, secret)
	}
	for _, text := range with.Take("allow-network") {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("the parameter allow-network is %q; write a network, as in 10.0.0.0/8", text)
		}
		cfg.AllowNetworks = append(cfg.AllowNetworks, network)
	}
	if with.Err() != nil {
		return nil, with.Err()
	}
	if len(cfg.Secrets) == 0 {
		return nil, errors.New("messages must be signed: name a file that holds the secret (?secret-file=F)")
	}
	cfg.URL = scheme + "://" + at
	if query := with.Left(); query != "" {
		cfg.URL += "?" + query
	}
	sink, err := webhook.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{Sink: sink, Name: name, describe: sink.Describe, close: sink.Close}, nil
}

func always(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

func nothing() error { return nil }
