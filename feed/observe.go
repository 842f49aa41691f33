package feed

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringiflow/ringi/inbox"
)

// tellEvery is how often a trouble that lasts is told again.
const tellEvery = time.Minute

// A Journal writes what people should know of feeds into a log: what was set aside at
// once, an outage at its beginning, once a minute and at its end. Log and Now are
// needed.
type Journal struct {
	Log *slog.Logger
	Now func() time.Time

	mu    sync.Mutex
	since map[string]time.Time // by feed: when its trouble was told last
}

// Observe is told of deliveries; it is for Config.Observe.
func (j *Journal) Observe(feed string, d inbox.Delivery, outcome inbox.Outcome, err error) {
	switch {
	case outcome == inbox.Poisoned && err != nil:
		j.Log.Error("a message was set aside: ringi feed list shows it, ringi feed retry sends it again", "feed", feed, "id", d.ID, "err", err)
	case outcome == inbox.Failed:
		j.Trouble(feed, err)
	default:
		j.over(feed)
	}
}

// Trouble is told of errors of brokers; it is for Config.Trouble.
func (j *Journal) Trouble(feed string, err error) {
	now := j.Now()
	j.mu.Lock()
	told, lasts := j.since[feed]
	again := !lasts || now.Sub(told) >= tellEvery
	if again {
		if j.since == nil {
			j.since = map[string]time.Time{}
		}
		j.since[feed] = now
	}
	j.mu.Unlock()
	if again {
		j.Log.Warn("a feed stands still", "feed", feed, "err", err)
	}
}

// over tells that a feed goes on.
func (j *Journal) over(feed string) {
	j.mu.Lock()
	_, lasted := j.since[feed]
	delete(j.since, feed)
	j.mu.Unlock()
	if lasted {
		j.Log.Info("a feed goes on", "feed", feed)
	}
}

// Metrics counts what became of deliveries, ringi_feed_messages_total by feed and
// outcome: handled, failed or aside. It is a prometheus.Collector.
type Metrics struct{ *prometheus.CounterVec }

// NewMetrics returns numbers that are 0.
func NewMetrics() Metrics {
	return Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ringi_feed_messages_total", Help: "Deliveries of brokers, by what became of them: handled, failed (and tried again), aside (set aside).",
	}, []string{"feed", "outcome"})}
}

// Observe is told of deliveries; it is for Config.Observe.
func (m Metrics) Observe(feed string, _ inbox.Delivery, outcome inbox.Outcome, _ error) {
	word := "handled"
	switch outcome {
	case inbox.Failed:
		word = "failed"
	case inbox.Poisoned:
		word = "aside"
	}
	m.WithLabelValues(feed, word).Inc()
}

// Handler answers scrapes with these numbers alone.
func (m Metrics) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
