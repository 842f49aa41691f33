package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A proxy stands between workers and the server. It keeps its address while the
// server is restarted, loses answers when a scenario asks for it, and remembers
// what passed.
type proxy struct {
	url string

	mu     sync.Mutex
	target http.Handler          // the server; nil while it is away
	lose   map[string]int        // by verb, how many answers to lose from now on
	refuse map[string][]exchange // by verb, what to answer in the server's place from now on
	seen   []exchange
	polls  int // under way
}

// An exchange is a request of a worker with its answer.
type exchange struct {
	verb   string // of /v1/tasks/VERB
	body   string
	answer string
	status int
	lost   bool // the worker did not see the answer
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{lose: map[string]int{}, refuse: map[string][]exchange{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// loses makes the next n answers to a verb get lost; of polls only those that
// bring tasks.
func (p *proxy) loses(verb string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose[verb] = n
}

// reaches sets the server; nil takes it away.
func (p *proxy) reaches(server http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = server
}

// exchanges are those of a verb whose request names a run or step.
func (p *proxy) exchanges(verb, about string) []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []exchange
	for _, e := range p.seen {
		if e.verb == verb && strings.Contains(e.body, about) {
			out = append(out, e)
		}
	}
	return out
}

// polling counts the polls that are under way.
func (p *proxy) polling() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.polls
}

// ServeHTTP passes a request on. What it loses, and what comes while the server
// is away, gets a closed connection for an answer.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := strings.TrimPrefix(r.URL.Path, "/v1/tasks/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	target := p.target
	if verb == "poll" {
		p.polls++
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.polls--
		}()
	}
	p.mu.Unlock()
	if target == nil {
		panic(http.ErrAbortHandler)
	}
	if e, ours := p.refusal(verb, string(body)); ours {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(e.status)
		_, _ = io.WriteString(w, e.answer) // a worker that is gone needs no answer
		return
	}
	// The server must see the whole body, and when the worker hangs up.
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	target.ServeHTTP(answer, r)
	if p.remember(exchange{verb: verb, body: string(body), answer: answer.Body.String(), status: answer.Code}) {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // a worker that is gone needs no answer
}

// refuses makes the proxy answer requests of a verb in the server's place.
func (p *proxy) refuses(verb string, answers ...exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse[verb] = answers
}

func (p *proxy) refusal(verb, body string) (e exchange, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refuse[verb]) == 0 {
		return exchange{}, false
	}
	e, p.refuse[verb] = p.refuse[verb][0], p.refuse[verb][1:]
	e.verb, e.body, e.lost = verb, body, true
	p.seen = append(p.seen, e)
	return e, true
}

// remember keeps an exchange and decides whether its answer gets lost.
func (p *proxy) remember(e exchange) (lost bool) {
	var brought struct{ Tasks []json.RawMessage }
	_ = json.Unmarshal([]byte(e.answer), &brought) // an answer that is none brings none
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose[e.verb] > 0 && (e.verb != "poll" || len(brought.Tasks) > 0) {
		p.lose[e.verb]--
		e.lost = true
	}
	p.seen = append(p.seen, e)
	return e.lost
}
