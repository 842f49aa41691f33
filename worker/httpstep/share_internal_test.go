package httpstep

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/worker"
)

// A net of hosts that answer after a while, under virtual time.
type hosts struct {
	mu    sync.Mutex
	takes map[string]time.Duration // by host; absent: at once
	now   map[string]int           // calls under way
	most  map[string]int           // and the most that ever were
	all   int
	peak  int
}

func (h *hosts) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go h.serve(server)
	return client, nil
}

func (h *hosts) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	h.count(r.Host, 1)
	defer h.count(r.Host, -1)
	h.mu.Lock()
	takes := h.takes[r.Host]
	h.mu.Unlock()
	if takes > 0 {
		<-time.After(takes)
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

func (h *hosts) count(host string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now[host] += n
	h.all += n
	h.most[host], h.peak = max(h.most[host], h.now[host]), max(h.peak, h.all)
}

// takesOf says how long a host takes to answer.
func (h *hosts) takesOf(host string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takes[host] = d
}

// peaks are the most calls at once, to one host and to all.
func (h *hosts) peaks(host string) (one, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most[host], h.peak
}

// A node performs http steps against hosts.
type node struct {
	t     *testing.T
	eng   *engine.Engine
	hosts *hosts
	end   func()
}

func startNode(t *testing.T) *node {
	t.Helper()
	h := &hosts{takes: map[string]time.Duration{}, now: map[string]int{}, most: map[string]int{}}
	p := New(Config{})
	p.transport.DialContext = h.dial
	mem := store.NewMemory(store.MemoryConfig{})
	eng, err := engine.New(engine.Config{Store: mem, Records: mem, Catalog: mem, Events: mem, Later: p.Later})
	if err != nil {
		t.Fatal(err)
	}
	eng.Start()
	const source = `{ringi: v1, name: call, input: {type: object, required: [url], properties: {url: {type: string}}},
		steps: [{id: h, http: {method: PUT, url: "${ input.url }"}}]}`
	if got, err := eng.Publish(t.Context(), ringi.Publication{File: "call.yaml", Source: []byte(source)}); err != nil || got.Version != 1 {
		t.Fatalf("publish: %+v, %v", got, err)
	}
	w, err := worker.New(worker.Config{
		Service: eng, Actor: ringi.Actor{ID: "http", Kind: ringi.System}, Queues: []worker.Queue{p.Queue()},
		Trouble: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return &node{t: t, eng: eng, hosts: h, end: func() {
		stop()
		running.Wait()
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}}
}

func (n *node) begin(runs int, url string) (all []ringi.RunID) {
	n.t.Helper()
	for range runs {
		r := n.eng.Do(n.t.Context(), ringi.Command{Actor: ringi.Actor{ID: "a", Kind: ringi.Machine}, Do: ringi.Start{
			Definition: "call", Input: json.RawMessage(fmt.Sprintf(`{"url":%q}`, url)),
		}})[0]
		if r.Err != nil {
			n.t.Fatal(r.Err)
		}
		all = append(all, r.Run)
	}
	return all
}

// take is how long it takes until all have completed, each at its first attempt.
func (n *node) take(runs []ringi.RunID, limit time.Duration) time.Duration {
	n.t.Helper()
	begun := time.Now()
	for _, run := range runs {
		for {
			v, err := n.eng.Run(n.t.Context(), 0, run)
			if err != nil {
				n.t.Fatal(err)
			}
			if v.Status == ringi.Completed && v.Steps[0].Attempts == 1 {
				break
			}
			if v.Status.Final() || time.Since(begun) > limit {
				n.t.Fatalf("after %v run %s is %s with %+v", time.Since(begun), run, v.Status, v.Steps)
			}
			<-time.After(50 * time.Millisecond)
		}
	}
	return time.Since(begun)
}

// One host that hangs, with more calls to make than there are slots, takes its
// share and no more. The others do not notice, and what waits for it uses up no
// attempt.
func TestASlowHostHoldsUpNobodyElse(t *testing.T) { // W26
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.end()
		n.hosts.takesOf("slow.example", 20*time.Second)
		n.hosts.takesOf("quick.example", 10*time.Millisecond)
		slow := n.begin(300, "http://slow.example/")
		<-time.After(5 * time.Second)
		if took := n.take(n.begin(60, "http://quick.example/"), time.Minute); took > 3*time.Second {
			t.Errorf("calls to another host took %v", took)
		}
		if took := n.take(slow, 14*time.Minute); took > 6*time.Minute {
			t.Errorf("300 calls of 20 s took %v: 25 at once are done in 4 minutes", took)
		}
		if got, _ := n.hosts.peaks("slow.example"); got > DefaultSlots/shareOf {
			t.Errorf("%d calls to one host at once, want %d", got, DefaultSlots/shareOf)
		}
	})
}

// Nor does the bound idle a host that is quick: what waits comes as fast as calls end.
func TestABurstToAQuickHostGoesThroughItsShare(t *testing.T) { // W26
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.end()
		n.hosts.takesOf("quick.example", 100*time.Millisecond)
		if took := n.take(n.begin(1000, "http://quick.example/"), time.Hour); took > 15*time.Second {
			t.Errorf("1,000 calls of 100 ms took %v: 25 at once are done in 4 s", took)
		}
		if got, _ := n.hosts.peaks("quick.example"); got > DefaultSlots/shareOf {
			t.Errorf("%d calls to one host at once", got)
		}
	})
}

func TestHostsTogetherFillTheSlots(t *testing.T) { // W26
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.end()
		var all []ringi.RunID
		for i := range 6 {
			host := fmt.Sprintf("h%d.example", i)
			n.hosts.takesOf(host, time.Second)
			all = append(all, n.begin(50, "http://"+host+"/")...)
		}
		n.take(all, time.Hour)
		if _, got := n.hosts.peaks(""); got != DefaultSlots {
			t.Errorf("%d calls at once, want %d", got, DefaultSlots)
		}
	})
}

func TestAHostIsOneInAllItsSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"http://A.example/x": "a.example 80", "https://a.example.": "a.example 443", "HTTP://a.example:80": "a.example 80",
		"https://a.example:0443/?y": "a.example 443", "http://[::1]:8080/": "::1 8080", "http://a.example:8080": "a.example 8080",
	} {
		u, err := url.Parse(text)
		if err != nil || hostOf(u) != want {
			t.Errorf("%s: %q %v, want %q", text, hostOf(u), err, want)
		}
	}
}

// What was let through and never began counts for a while only, and hosts that
// nobody calls are forgotten.
func TestASharesMemoryIsBounded(t *testing.T) {
	s, at := newShare(8), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for i := range 3 {
		got := s.later("a", callID{token: int64(i)}, at)
		if (got == 0) != (i < 2) {
			t.Errorf("call %d waits %v", i, got)
		}
	}
	if got := s.later("a", callID{token: 9}, at.Add(arrival)); got != 0 {
		t.Errorf("after %v it still waits %v", arrival, got)
	}
	for i := range 10_000 {
		at = at.Add(time.Second)
		s.later(fmt.Sprint("host", i), callID{}, at)
	}
	if len(s.hosts) > 2*fewHosts {
		t.Errorf("%d hosts are kept", len(s.hosts))
	}
}
