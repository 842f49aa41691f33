package nats

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ringiflow/ringi/outbox"
)

// Window is the shortest duplicate window of the streams that may take the
// messages: a repeat that comes later than this after the first copy is not
// dropped. It asks the server and fails when there is none or no stream.
func (s *Sink) Window(ctx context.Context) (time.Duration, error) {
	streams, err := s.streams(ctx)
	if err != nil {
		return 0, err
	}
	window := streams[0].Config.Duplicates
	for _, info := range streams[1:] {
		window = min(window, info.Config.Duplicates)
	}
	return window, nil
}

// Describe says in one line what the destination promises, for people who start
// a relay: the streams, their effective duplicate window, replicas and storage.
// It asks the server and fails when there is none or no stream.
func (s *Sink) Describe(ctx context.Context) (string, error) {
	streams, err := s.streams(ctx)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, info := range streams {
		c := info.Config
		parts = append(parts, fmt.Sprintf("stream %s (%s, replicas: %d) drops repeats for %s after the first copy", c.Name, strings.ToLower(c.Storage.String()), c.Replicas, c.Duplicates))
	}
	return fmt.Sprintf("nats: %s; a repeat after that reaches consumers, so they need an inbox; an acknowledged message is on disk after the server's sync_interval; messages of at most %d bytes",
		strings.Join(parts, "; "), s.MaxBytes()), nil
}

// streams asks for the streams that may take the messages; there is at least one.
func (s *Sink) streams(ctx context.Context) ([]*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if s.cfg.Stream != "" {
		stream, err := s.js.Stream(ctx, s.cfg.Stream)
		if err != nil {
			return nil, fmt.Errorf("nats: ask about stream %s: %w", s.cfg.Stream, err)
		}
		return []*jetstream.StreamInfo{stream.CachedInfo()}, nil
	}
	list := s.js.ListStreams(ctx, jetstream.WithStreamListSubject(outbox.TopicPrefix+">"))
	var streams []*jetstream.StreamInfo
	for info := range list.Info() {
		streams = append(streams, info)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("nats: ask for the streams that listen to %s>: %w", outbox.TopicPrefix, err)
	}
	if len(streams) == 0 {
		return nil, fmt.Errorf("nats: no stream listens to %s>; create one, or name the stream in Config.Stream", outbox.TopicPrefix)
	}
	return streams, nil
}
