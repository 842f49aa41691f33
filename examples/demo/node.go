package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// countEvery is how often the numbers of a node are read: what it did since
	// is not counted when it is killed.
	countEvery = 500 * time.Millisecond
	// countTime ends a reading that is not answered.
	countTime = 2 * time.Second
)

// A Node is what one of several servers did, as its own metrics said until
// shortly before each kill: all numbers are at least so much.
type Node struct {
	Name    string `json:"name"`
	Kills   int    `json:"kills"`
	Commits int    `json:"commits"` // transactions that reached the database
	Started int    `json:"runsStarted"`
	Ended   int    `json:"runsEnded"`
}

// A counter counts what nodes do, over all their incarnations. It is safe for
// concurrent use.
type counter struct {
	urls   []string
	client *http.Client

	mu    sync.Mutex
	nodes []counted
}

// counted is one node's count.
type counted struct {
	incarnation int
	kills       int
	before      reading // all incarnations that have ended
	now         reading // the present one
}

// A reading is what a node's metrics say.
type reading struct{ commits, started, ended int }

func (r reading) plus(o reading) reading {
	return reading{r.commits + o.commits, r.started + o.started, r.ended + o.ended}
}

func newCounter(urls []string) *counter {
	return &counter{urls: urls, client: &http.Client{Timeout: countTime}, nodes: make([]counted, len(urls))}
}

// watch reads all nodes now and then, until ctx ends.
func (c *counter) watch(ctx context.Context) {
	var all sync.WaitGroup
	for i := range c.urls {
		all.Go(func() {
			for pause(ctx, countEvery) == nil {
				c.read(ctx, i)
			}
		})
	}
	all.Wait()
}

// read reads one node; one that does not answer has its last numbers.
func (c *counter) read(ctx context.Context, i int) {
	c.mu.Lock()
	incarnation := c.nodes[i].incarnation
	c.mu.Unlock()
	r, err := c.ask(ctx, c.urls[i])
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[i].incarnation == incarnation { // else it was killed meanwhile, and counted
		c.nodes[i].now = r
	}
}

// killed says that a node's incarnation has ended.
func (c *counter) killed(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &c.nodes[i]
	n.incarnation++
	n.kills++
	n.before, n.now = n.before.plus(n.now), reading{}
}

// tell returns the numbers.
func (c *counter) tell() []Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Node
	for i, n := range c.nodes {
		sum := n.before.plus(n.now)
		all = append(all, Node{Name: nodeName(i), Kills: n.kills, Commits: sum.commits, Started: sum.started, Ended: sum.ended})
	}
	return all
}

func nodeName(i int) string { return "node " + strconv.Itoa(i+1) }

// ask reads the metrics of a node.
func (c *counter) ask(ctx context.Context, url string) (r reading, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return r, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return parseMetrics(resp.Body)
}

// parseMetrics reads what a node's metrics say, in Prometheus' text format.
func parseMetrics(text io.Reader) (r reading, err error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		into := map[string]*int{
			"ringi_commits_total": &r.commits, "ringi_runs_started_total": &r.started, "ringi_runs_ended_total": &r.ended,
		}[name]
		if into == nil {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return r, fmt.Errorf("the metric %s: %w", name, err)
		}
		*into += int(n) // of several labels the sum
	}
	return r, lines.Err()
}
