package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// service is a ringi.Service that answers as a test says and remembers what it
// was asked. What is not set answers with its zero value.
type service struct {
	do        func(ringi.Command) ringi.Result
	publish   func(ringi.Publication) (ringi.Published, error)
	poll      func(ringi.PollRequest) ([]ringi.Task, error)
	heartbeat func([]ringi.Beat) ([]ringi.BeatAnswer, error)
	run       func(ringi.RunID) (ringi.RunView, error)
	history   func(ringi.HistoryQuery) (ringi.HistoryPage, error)
	list      func(ringi.Query) (ringi.Page, error)

	mu       sync.Mutex
	batches  [][]ringi.Command
	queries  []ringi.Query
	received []ringi.Publication
}

func (s *service) Do(_ context.Context, commands ...ringi.Command) []ringi.Result {
	s.mu.Lock()
	s.batches = append(s.batches, commands)
	s.mu.Unlock()
	results := make([]ringi.Result, len(commands))
	for i, c := range commands {
		if s.do != nil {
			results[i] = s.do(c)
		}
	}
	return results
}

func (s *service) Publish(_ context.Context, p ringi.Publication) (ringi.Published, error) {
	s.mu.Lock()
	s.received = append(s.received, p)
	s.mu.Unlock()
	if s.publish == nil {
		return ringi.Published{Name: "order", Version: 1}, nil
	}
	return s.publish(p)
}

func (s *service) Poll(_ context.Context, p ringi.PollRequest) ([]ringi.Task, error) {
	if s.poll == nil {
		return nil, nil
	}
	return s.poll(p)
}

func (s *service) Heartbeat(_ context.Context, beats ...ringi.Beat) ([]ringi.BeatAnswer, error) {
	if s.heartbeat == nil {
		return make([]ringi.BeatAnswer, len(beats)), nil
	}
	return s.heartbeat(beats)
}

func (s *service) Run(_ context.Context, _ ringi.Tenant, run ringi.RunID) (ringi.RunView, error) {
	if s.run == nil {
		return ringi.RunView{}, nil
	}
	return s.run(run)
}

func (s *service) History(_ context.Context, q ringi.HistoryQuery) (ringi.HistoryPage, error) {
	if s.history == nil {
		return ringi.HistoryPage{}, nil
	}
	return s.history(q)
}

func (s *service) List(_ context.Context, q ringi.Query) (ringi.Page, error) {
	s.mu.Lock()
	s.queries = append(s.queries, q)
	s.mu.Unlock()
	if s.list == nil {
		return ringi.Page{}, nil
	}
	return s.list(q)
}

func (s *service) Close() error { return nil }

// last is the last command that came in.
func (s *service) last(t *testing.T) ringi.Command {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		t.Fatal("no command reached the service")
	}
	batch := s.batches[len(s.batches)-1]
	return batch[len(batch)-1]
}

// asked counts what reached the service.
func (s *service) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches) + len(s.queries) + len(s.received)
}

// byName lets a key be a name and its scopes: "alice:decide,read". A name that
// starts with m- is a machine.
func byName(r *http.Request) (api.Identity, error) {
	name, scopes, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ":")
	if !ok {
		return api.Identity{}, &ringi.Error{Code: ringi.CodeUnauthenticated, Message: "no key", Hint: "send one"}
	}
	who := api.Identity{Actor: ringi.Actor{ID: name, Kind: ringi.Person}, Tenant: ringi.DefaultTenant, Scopes: strings.Split(scopes, ",")}
	if strings.HasPrefix(name, "m-") {
		who.Actor.Kind = ringi.Machine
	}
	if name, group, ok := strings.Cut(who.Actor.ID, "@"); ok {
		who.Actor.ID, who.Actor.Groups = name, []string{group}
	}
	return who, nil
}

// newServer is a handler over s; change the config before it is made with edit.
func newServer(t *testing.T, s ringi.Service, edit func(*api.Config)) *api.Server {
	t.Helper()
	config := api.Config{Service: s, Who: byName}
	if edit != nil {
		edit(&config)
	}
	h, err := api.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// connect is a client of a handler, over a real connection, with a key.
func connect(t *testing.T, h http.Handler, key string) *api.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := api.NewClient(api.ClientConfig{Address: srv.URL, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask is one request to a handler as an admin.
func ask(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:7070"
	r.Header.Set("Authorization", "Bearer root:admin")
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
