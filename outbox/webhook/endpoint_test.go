package webhook_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/webhook"
)

var begin = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// endpoint is a receiver over TLS in this process. It verifies what it gets.
type endpoint struct {
	*httptest.Server
	secret webhook.Secret

	mu      sync.Mutex
	now     time.Time
	got     []string                                  // "aggregate/seq" of what was acknowledged, in order
	seen    []string                                  // webhook-id of every request
	faults  []error                                   // of verification
	answer  func(w http.ResponseWriter, event string) // nil: 204
	last    http.Header
	body    []byte
	most    int // requests at once
	current int
}

func startEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{now: begin, secret: secret(t)}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(e.receive))
	t.Cleanup(e.Close)
	return e
}

func secret(t *testing.T) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(webhook.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (e *endpoint) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e.mu.Lock()
	e.current++
	e.most = max(e.most, e.current)
	if _, wrong := webhook.Verify([]webhook.Secret{e.secret}, r.Header, body, e.now); wrong != nil || err != nil {
		e.faults = append(e.faults, wrong, err)
	}
	var event struct{ Subject, Sequence string }
	if err := json.Unmarshal(body, &event); err != nil {
		e.faults = append(e.faults, err)
	}
	seq, err := strconv.Atoi(event.Sequence)
	if err != nil {
		e.faults = append(e.faults, err)
	}
	name := fmt.Sprintf("%s/%d", event.Subject, seq)
	e.seen = append(e.seen, r.Header.Get("webhook-id"))
	e.last, e.body = r.Header.Clone(), body
	answer := e.answer
	e.mu.Unlock()

	recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	if answer != nil {
		answer(recorder, name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current--
	if recorder.status < 300 {
		e.got = append(e.got, name)
	}
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// sink posts to the endpoint under the endpoint's clock.
func (e *endpoint) sink(t *testing.T, change func(*webhook.Config)) *webhook.Sink {
	t.Helper()
	cfg := webhook.Config{
		URL: e.URL + "/hooks?token=t0ken", Secrets: []webhook.Secret{e.secret}, RootCAs: x509.NewCertPool(),
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Now: e.clock,
	}
	cfg.RootCAs.AddCert(e.Certificate())
	if change != nil {
		change(&cfg)
	}
	s, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (e *endpoint) clock() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

func (e *endpoint) pass(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.Add(d)
}

func (e *endpoint) answers(f func(w http.ResponseWriter, event string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

func (e *endpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen)
}

// status answers every request alike.
func status(code int, header ...string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, "answer %d", code)
	}
}

// check complains about requests that did not verify.
func (e *endpoint) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, err := range e.faults {
		t.Errorf("the receiver could not verify: %v", err)
	}
}

// order is the seq-th message of an aggregate.
func order(aggregate string, seq int) outbox.Message {
	return outbox.Message{
		ID:     fmt.Sprintf("01890000-0000-7000-8000-%012x", int(aggregate[len(aggregate)-1])<<16+seq),
		Tenant: 1, AggregateType: "Order", AggregateID: aggregate, Type: "order.placed", Seq: int64(seq),
		Payload: []byte(`{"n":1}`), ContentType: "application/json", CreatedAt: begin,
	}
}

// orders are count messages of each aggregate, mixed.
func orders(count int, aggregates ...string) (msgs []outbox.Message) {
	for seq := 1; seq <= count; seq++ {
		for _, a := range aggregates {
			msgs = append(msgs, order(a, seq))
		}
	}
	return msgs
}

// of picks what the endpoint acknowledged of one aggregate.
func (e *endpoint) of(aggregate string) (got []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range e.got {
		if len(name) > len(aggregate) && name[:len(aggregate)+1] == aggregate+"/" {
			got = append(got, name)
		}
	}
	return got
}

func wantInOrder(t *testing.T, e *endpoint, count int, aggregates ...string) {
	t.Helper()
	for _, a := range aggregates {
		var want []string
		for seq := 1; seq <= count; seq++ {
			want = append(want, fmt.Sprintf("%s/%d", a, seq))
		}
		if got := e.of(a); !slices.Equal(got, want) {
			t.Errorf("aggregate %s: %v, want %v", a, got, want)
		}
	}
}
