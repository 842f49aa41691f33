package httpstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/httpstep"
)

// A service answers as it is told and remembers what it was asked.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	answer func(w http.ResponseWriter, r *http.Request)
}

func startService(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *service {
	t.Helper()
	s := &service{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.Close)
	return s
}

func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body))
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		answer(w, r)
	}
}

func (s *service) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// last is the newest request and its body.
func (s *service) last() (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[len(s.asked)-1], s.bodies[len(s.bodies)-1]
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, "says %d", code)
	}
}

func body(kind, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, text)
	}
}

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC) // constant: the clock of every test

// local is a configuration that may dial this machine.
func local() httpstep.Config {
	return httpstep.Config{
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Now:           func() time.Time { return now },
	}
}

// perform makes one attempt as a worker does.
func perform(ctx context.Context, config httpstep.Config, task ringi.Task) (string, *worker.Failure) {
	out, err := httpstep.New(config).Queue().Activities[0].Call(ctx, task)
	var f *worker.Failure
	if err != nil && !errors.As(err, &f) {
		f = &worker.Failure{Code: "not a failure", Message: err.Error()}
	}
	return string(out), f
}

// attempt is the task of a request, in the hand-out that its token says.
func attempt(effect string, number int, handOut int64, request string) ringi.Task {
	return ringi.Task{
		Run: "r", CallRef: ringi.CallRef{Step: "s", Attempt: number, Token: 7<<16 + handOut},
		Key: "r/s", Effect: effect, Input: json.RawMessage(request),
	}
}

func firstOf(effect, request string) ringi.Task { return attempt(effect, 1, 1, request) }

func shown(f *worker.Failure) string {
	if f == nil {
		return "none"
	}
	return strings.TrimSpace(fmt.Sprintf("%s retryable=%v applied=%q after=%s", f.Code, f.Retryable, f.Applied, f.RetryAfter))
}
