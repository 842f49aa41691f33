package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const metricsText = `# HELP ringi_commits_total Batches that reached the database.
# TYPE ringi_commits_total counter
ringi_commits_total %d
ringi_runs_started_total 1.2e+01
ringi_runs_ended_total{status="completed"} 3
ringi_runs_ended_total{status="failed"} 4
ringi_commits_failed_total 99
`

// W31: what a node did is counted over all its lives, and never twice.
func TestANodeIsCountedThroughItsKills(t *testing.T) {
	var commits atomic.Int64
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, metricsText, commits.Load())
	}))
	defer metrics.Close()
	c := newCounter([]string{metrics.URL, "http://127.0.0.1:1"})
	for _, n := range []int64{5, 8} {
		commits.Store(n)
		c.read(t.Context(), 0)
	}
	c.killed(0)
	commits.Store(2)
	c.read(t.Context(), 0)
	c.read(t.Context(), 1) // nobody answers there
	want := []Node{{Name: "node 1", Kills: 1, Commits: 10, Started: 24, Ended: 14}, {Name: "node 2"}}
	if got := c.tell(); !slices.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestMetricsThatAreNoNumbersAreAnError(t *testing.T) {
	if r, err := parseMetrics(strings.NewReader("ringi_commits_total many\n")); err == nil {
		t.Errorf("read %+v", r)
	}
}
