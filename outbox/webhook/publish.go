package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// excerpt is how much of a bad answer goes into the error, in bytes.
	excerpt = 200

	// drained is how much of an answer is read, so that its connection can be
	// used again, in bytes. After more it is closed.
	drained = 64 << 10
)

// Publish implements outbox.Sink. Messages of one key go one after the other,
// those of different keys side by side.
func (s *Sink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	answers := make([]error, len(msgs))
	work := make(chan []int)
	var wg sync.WaitGroup
	for range min(s.cfg.Parallel, len(msgs)) {
		wg.Go(func() {
			for chain := range work {
				s.follow(ctx, msgs, chain, answers)
			}
		})
	}
	for _, chain := range chains(msgs) {
		work <- chain
	}
	close(work)
	wg.Wait()
	return answers
}

// chains parts a batch into what must go one after the other.
func chains(msgs []outbox.Message) [][]int {
	var all [][]int
	of := map[outbox.Key]int{}
	for i := range msgs {
		n, known := of[msgs[i].Key()]
		if msgs[i].Seq == 0 || !known {
			n = len(all)
			all = append(all, nil)
		}
		if msgs[i].Seq > 0 {
			of[msgs[i].Key()] = n
		}
		all[n] = append(all[n], i)
	}
	return all
}

// follow sends a chain up to its first failure.
func (s *Sink) follow(ctx context.Context, msgs []outbox.Message, chain []int, answers []error) {
	for n, i := range chain {
		if answers[i] = s.deliver(ctx, &msgs[i]); answers[i] == nil {
			continue
		}
		for _, later := range chain[n+1:] {
			answers[later] = outbox.ErrHeld
		}
		return
	}
}

// deliver sends one message, if the circuit lets it, and judges the answer.
func (s *Sink) deliver(ctx context.Context, m *outbox.Message) error {
	body := outbox.AppendCloudEvent(nil, s.cfg.Source, m)
	if len(body) > s.cfg.MaxBytes {
		return outbox.Refuse(fmt.Errorf("webhook: the event has %d bytes, at most %d are allowed; store the data elsewhere and send a reference, or raise the limit here and at the endpoint", len(body), s.cfg.MaxBytes))
	}
	if err := ctx.Err(); err != nil {
		return outbox.Excuse(fmt.Errorf("webhook: %s: not sent: %w", s.url.Host, err))
	}
	if until, ok := s.circuit.enter(s.cfg.Now()); !ok {
		return outbox.Excuse(fmt.Errorf("webhook: %s: not sent: the endpoint failed and is left alone until %s", s.url.Host, until.UTC().Format(time.RFC3339)))
	}
	answer, err := s.post(ctx, m, body)
	switch {
	case err != nil && ctx.Err() != nil:
		s.circuit.abandon() // we stopped; that says nothing about the endpoint
	case err != nil:
		s.circuit.fail(s.cfg.Now(), -1)
	case answer.verdict == down:
		s.circuit.fail(s.cfg.Now(), answer.patience)
	default:
		s.circuit.succeed()
	}
	if err != nil {
		return fmt.Errorf("webhook: %s: no answer: %w", s.url.Host, withoutURL(err))
	}
	return answer.error(s.url.Host)
}

// post makes one signed request and reads the answer.
func (s *Sink) post(ctx context.Context, m *outbox.Message, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	timestamp := strconv.FormatInt(s.cfg.Now().Unix(), 10)
	// The names as the specification writes them; HTTP ignores case.
	req.Header.Set(headerID, m.ID)
	req.Header.Set(headerTimestamp, timestamp)
	req.Header.Set(headerSignature, signatures(s.current(), m.ID, timestamp, body))
	req.Header.Set("content-type", "application/cloudevents+json")
	req.Header.Set("user-agent", "ringi-outbox")
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := m.Headers[name]; value != "" && printable(value) {
			req.Header.Set(name, value)
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, drained))
	if err != nil && ctx.Err() != nil {
		return answer{}, err
	}
	return judge(resp, text, s.cfg.Now()), nil
}

// printable tells whether a value may stand in a header as it is.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// withoutURL drops the URL from the client's error: its query may be a secret.
func withoutURL(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
