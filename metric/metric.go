// Package metric has the numbers of a server, for Prometheus: what its engine and
// its store did, and how much waits. Those of an outbox and its relays are in
// package relay.
package metric

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store"
)

// Metrics are the numbers of one server. Safe for concurrent use.
type Metrics struct {
	// Registry holds them; others may be registered beside them.
	Registry *prometheus.Registry

	started     prometheus.Counter
	ended       *prometheus.CounterVec
	commits     prometheus.Counter
	failed      prometheus.Counter
	lostWrites  *prometheus.CounterVec
	batch       prometheus.Histogram
	expired     *prometheus.CounterVec
	lapsed      prometheus.Counter
	late        prometheus.Histogram
	quarantined prometheus.Counter
}

// New makes them, all at zero.
func New() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "ringi_" + name, Help: help})
	}
	by := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringi_" + name, Help: help}, []string{label})
	}
	m := &Metrics{
		Registry:   prometheus.NewRegistry(),
		started:    counter("runs_started_total", "Runs that this node started."),
		ended:      by("runs_ended_total", "Runs that this node saw end, by their final status.", "status"),
		commits:    counter("commits_total", "Batches that reached the database."),
		failed:     counter("commits_failed_total", "Batches that did not, or of which nobody knew."),
		lostWrites: by("writes_lost_total", "Writes that lost their race and were decided again, by what was lost: the run's sequence to another server, a start_key, or a task to another lease.", "condition"),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ringi_commit_writes", Help: "Writes of different runs in one batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
		expired: by("attempts_expired_total", "Attempts that ran out of a limit: lease is a lost lease.", "why"),
		lapsed:  counter("handovers_lapsed_total", "Tasks handed to a worker that never confirmed them."),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ringi_timer_late_seconds", Help: "How late timers fired.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
		}),
		quarantined: counter("runs_quarantined_total", "Runs that could not be read or decided."),
	}
	m.Registry.MustRegister(m.started, m.ended, m.commits, m.failed, m.lostWrites, m.batch, m.expired, m.lapsed, m.late, m.quarantined,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, s := range ringi.Statuses() { // so that each is there from the first day
		if s.Final() {
			m.ended.WithLabelValues(string(s))
		}
	}
	for _, what := range []store.Condition{store.CondSequence, store.CondStartKey, store.CondTask} {
		m.lostWrites.WithLabelValues(string(what))
	}
	for _, why := range []ringi.Expiry{ringi.ExpiryLease, ringi.ExpiryAttempt, ringi.ExpiryQueue, ringi.ExpiryTotal} {
		m.expired.WithLabelValues(string(why))
	}
	return m
}

// Observer feeds the metrics from the engine.
func (m *Metrics) Observer() engine.Observer {
	return engine.Observer{
		Expired:     func(why ringi.Expiry) { m.expired.WithLabelValues(string(why)).Inc() },
		Lapsed:      func(n int) { m.lapsed.Add(float64(n)) },
		Fired:       func(late time.Duration) { m.late.Observe(max(late, 0).Seconds()) },
		Quarantined: func(ringi.Tenant, ringi.RunID, error) { m.quarantined.Inc() },
	}
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{Registry: m.Registry})
}
