package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// broker stands for a message broker: a server of its own that passes events on
// and can be killed. A real one has its sink in outbox/kafka or outbox/nats.
type broker struct {
	addr    string
	server  *http.Server
	deliver func(ctx context.Context, id, order string) error
}

var _ outbox.Sink = (*broker)(nil)

func newBroker(deliver func(ctx context.Context, id, order string) error) (*broker, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &broker{addr: listener.Addr().String(), deliver: deliver}
	b.serve(listener)
	return b, nil
}

// start starts the server again, on the port that it had.
func (b *broker) start() error {
	listener, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	b.serve(listener)
	return nil
}

func (b *broker) serve(listener net.Listener) {
	b.server = &http.Server{Handler: http.HandlerFunc(b.take), ReadHeaderTimeout: time.Second}
	go func(server *http.Server) {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Println("broker:", err)
		}
	}(b.server)
}

// kill ends the server and every connection.
func (b *broker) kill() {
	_ = b.server.Close() // its listener is gone either way
	http.DefaultClient.CloseIdleConnections()
}

// take hands an event to its consumer, twice, as brokers now and then do, and
// acknowledges it.
func (b *broker) take(w http.ResponseWriter, r *http.Request) {
	var event struct{ ID, Subject string }
	err := json.NewDecoder(r.Body).Decode(&event)
	for range 2 {
		if err == nil {
			err = b.deliver(r.Context(), event.ID, event.Subject)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// send sends one event and waits for its acknowledgement.
func (b *broker) send(ctx context.Context, m *outbox.Message) error {
	body := outbox.AppendCloudEvent(nil, "//shop", m)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.addr, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/cloudevents+json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("broker: %s", answer.Status)
	}
	return nil
}

// Publish implements outbox.Sink: after the first failure of a key its later
// messages are held.
func (b *broker) Publish(ctx context.Context, msgs []outbox.Message) []error {
	results := make([]error, len(msgs))
	failed := map[outbox.Key]bool{}
	for i := range msgs {
		key := msgs[i].Key()
		if failed[key] {
			results[i] = outbox.ErrHeld
			continue
		}
		if results[i] = b.send(ctx, &msgs[i]); results[i] != nil {
			failed[key] = true
		}
	}
	return results
}
