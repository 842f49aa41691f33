package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// A counter is a service that counts what it did and was asked, by key. While it
// holds, it does what a request asks for and answers nothing.
type counter struct {
	*httptest.Server
	mu       sync.Mutex
	holding  bool
	held     int
	release  chan struct{}  // closed: what is held is answered
	effects  map[string]int // by path and key, of a service that honours keys
	requests map[string]int // by path and key
}

func startCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{release: make(chan struct{}), effects: map[string]int{}, requests: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.handle))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if key := r.URL.Query().Get("key"); c.of(c.requests, "/charge "+key) == 0 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"id":"found"}`)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the caller has gone
	key := r.URL.Path + " " + r.Header.Get("Idempotency-Key")
	c.mu.Lock()
	c.effects[key], c.requests[key] = 1, c.requests[key]+1
	hold := c.holding
	if hold {
		c.held++
	}
	c.mu.Unlock()
	if hold {
		select {
		case <-r.Context().Done():
			return
		case <-c.release:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprint(w, `{"id":"done"}`)
}

func (c *counter) of(counts map[string]int, key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counts[key]
}

func (c *counter) hold(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = yes
}

func (c *counter) holds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

const countedDefinition = `ringi: v1
name: counted
defaults: { timeouts: { attempt: 10s, heartbeat: 1s, total: 2m } }
steps:
  - id: all
    parallel:
      branches:
        repeats:
          - id: register
            http: { method: PUT, url: "URL/register", body: { run: "${ run.id }" } }
            accepted: "nothing fails behind it"
        asks:
          - id: charge
            http: { method: POST, url: "URL/charge", body: { run: "${ run.id }" } }
            effect: probeable
            probe: { http: { method: GET, url: "URL/charges", query: { key: "${ step.key }" } } }
            accepted: "nothing fails behind it"
        once:
          - id: mail
            http: { method: POST, url: "URL/mail" }
            effect: at_most_once
            on_unknown: assume_applied
            accepted: "a second mail is worse than none"
output: { register: "${ steps.register.output.id }", charge: "${ steps.charge.output.id }" }
`

// The server is killed while its calls are out and unanswered. Afterwards each
// step goes on as its contract says: the same request under the same key, a
// question, or nothing at all.
func TestHTTPStepsKeepTheirContractsThroughKill9(t *testing.T) { // W14 W31
	const runs = 5
	w, c := newDesk(t), startCounter(t)
	w.env["RINGI_HTTP_ALLOW"] = "127.0.0.1"
	p := w.server()
	if got := w.runWith(strings.ReplaceAll(countedDefinition, "URL", c.URL), "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	c.hold(true)
	var ids []ringi.RunID
	for i := range runs {
		ids = append(ids, w.begin("counted", "-i", fmt.Sprintf("n=%d", i)).Run)
	}
	eventually(t, "all calls to be out", func() bool { return c.holds() >= 3*runs })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.exit()
	c.hold(false)
	p = w.server()
	for _, id := range ids {
		eventually(t, "run "+string(id), func() bool { return w.show(id).Status == ringi.Completed })
		if got := w.run("history", string(id), "--json").out; !strings.Contains(got, `"output":{"charge":"found","register":"done"}`) {
			t.Errorf("run %s has another output: %s", id, got)
		}
		for step, want := range map[string]int{"register": 2, "charge": 1, "mail": 1} {
			key := fmt.Sprintf("/%s %s/%s", step, id, step)
			if n := c.of(c.requests, key); n != want || c.of(c.effects, key) != 1 {
				t.Errorf("%s was called %d times, want %d", key, n, want)
			}
		}
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.exit()
}

// A server that is asked to end lets its calls end, and records what they
// answered before it goes.
func TestCallsOfHTTPStepsEndBeforeTheServer(t *testing.T) { // TC-23
	w, c := newDesk(t), startCounter(t)
	w.env["RINGI_HTTP_ALLOW"] = "127.0.0.1"
	p := w.server()
	src := "ringi: v1\nname: slow\nsteps:\n  - id: mail\n    http: { method: POST, url: \"" + c.URL + "/mail\" }\n    effect: at_most_once\n    accepted: test\n"
	if got := w.runWith(src, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	c.hold(true)
	run := w.begin("slow", "-i", "n=1").Run
	eventually(t, "the call to be out", func() bool { return c.holds() == 1 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to drain", func() bool { return strings.Contains(p.err.String(), "draining") })
	close(c.release)
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("the server exits with %d: %s", code, p.err)
	}
	p = w.server()
	if got := w.show(run).Status; got != ringi.Completed {
		t.Errorf("the run is %s, want its answer recorded", got)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.exit()
}

// What only this machine can reach is refused by default, and the failure says
// who can allow it.
func TestHTTPStepsDoNotReachPrivateNetworksByDefault(t *testing.T) {
	c := startCounter(t)
	w := served(t, "ringi: v1\nname: inside\nsteps:\n  - id: look\n    http: { method: GET, url: \""+c.URL+"\" }\n")
	id := w.begin("inside", "-i", "n=1").Run
	eventually(t, "the end", func() bool { return w.show(id).Status == ringi.Failed })
	if got := w.run("history", string(id), "--json").out; !strings.Contains(got, `"code":"http_private_address"`) || !strings.Contains(got, "--http-allow") {
		t.Errorf("the failure does not say why: %s", got)
	}
	if got := w.run("serve", "--http-allow", "intranet"); got.code != cli.ExitUsage || !strings.Contains(got.err, "10.0.0.0/8") {
		t.Errorf("a network that is none: %+v", got)
	}
}
