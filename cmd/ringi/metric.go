package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

// scrapeTimeout bounds what a look at the metrics may ask of the database.
const scrapeTimeout = 2 * time.Second

// metrics are the numbers of a server, for Prometheus.
type metrics struct {
	registry    *prometheus.Registry
	started     prometheus.Counter
	ended       *prometheus.CounterVec
	commits     prometheus.Counter
	failed      prometheus.Counter
	lostWrites  prometheus.Counter
	batch       prometheus.Histogram
	expired     *prometheus.CounterVec
	lapsed      prometheus.Counter
	late        prometheus.Histogram
	quarantined prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "ringi_" + name, Help: help})
	}
	by := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringi_" + name, Help: help}, []string{label})
	}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		started:    counter("runs_started_total", "Runs that this node started."),
		ended:      by("runs_ended_total", "Runs that this node saw end, by their final status.", "status"),
		commits:    counter("commits_total", "Batches that reached the database."),
		failed:     counter("commits_failed_total", "Batches that did not, or of which nobody knew."),
		lostWrites: counter("writes_lost_total", "Writes that lost their race and were decided again."),
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
	m.registry.MustRegister(m.started, m.ended, m.commits, m.failed, m.lostWrites, m.batch, m.expired, m.lapsed, m.late, m.quarantined,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, s := range ringi.Statuses() { // so that each is there from the first day
		if s.Final() {
			m.ended.WithLabelValues(string(s))
		}
	}
	for _, why := range []ringi.Expiry{ringi.ExpiryLease, ringi.ExpiryAttempt, ringi.ExpiryQueue, ringi.ExpiryTotal} {
		m.expired.WithLabelValues(string(why))
	}
	return m
}

// observer feeds the metrics from the engine.
func (m *metrics) observer() engine.Observer {
	return engine.Observer{
		Expired:     func(why ringi.Expiry) { m.expired.WithLabelValues(string(why)).Inc() },
		Lapsed:      func(n int) { m.lapsed.Add(float64(n)) },
		Fired:       func(late time.Duration) { m.late.Observe(max(late, 0).Seconds()) },
		Quarantined: func(ringi.Tenant, ringi.RunID, error) { m.quarantined.Inc() },
	}
}

// handler answers scrapes.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// countedStore counts what a store was asked to commit and what it took, and
// hints the relay that messages were written.
type countedStore struct {
	store.Store
	m    *metrics
	wake chan<- struct{}
}

// Commit commits, and counts the writes that were applied.
func (s *countedStore) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	done, err := s.Store.Commit(ctx, writes...)
	if len(writes) == 0 {
		return done, err
	}
	if err != nil {
		s.m.failed.Inc()
		return done, err
	}
	s.m.commits.Inc()
	s.m.batch.Observe(float64(len(writes)))
	s.m.lostWrites.Add(float64(len(done.Lost)))
	lost := map[int]bool{}
	for _, l := range done.Lost {
		lost[l.Index] = true
	}
	for i := range writes {
		if lost[i] {
			continue
		}
		if writes[i].Start != nil {
			s.m.started.Inc()
		}
		if len(writes[i].Messages) > 0 {
			select {
			case s.wake <- struct{}{}:
			default: // a hint waits already
			}
		}
		if status, ends := endOf(&writes[i]); ends {
			s.m.ended.WithLabelValues(string(status)).Inc()
		}
	}
	return done, nil
}

// endOf is the final status that a write gives its run.
func endOf(w *store.Write) (ringi.Status, bool) {
	switch {
	case w.Run != nil:
		return w.Run.Status, w.Run.Status.Final()
	case w.Start != nil:
		return w.Start.Status, w.Start.Status.Final()
	}
	return "", false
}

// A depths collector asks the database at each scrape how much waits.
type depths struct {
	records store.Records
	outbox  func(context.Context) (outbox.Stats, error)
	now     func() time.Time

	queue, oldest, messages *prometheus.Desc
}

func newDepths(records store.Records, stats func(context.Context) (outbox.Stats, error), now func() time.Time) *depths {
	return &depths{
		records: records, outbox: stats, now: now,
		queue:    prometheus.NewDesc("ringi_queue_tasks", "Tasks in a queue that are ready, and under lease.", []string{"queue", "state"}, nil),
		oldest:   prometheus.NewDesc("ringi_queue_oldest_seconds", "Age of the oldest task that is ready.", []string{"queue"}, nil),
		messages: prometheus.NewDesc("ringi_outbox_messages", "Messages that are pending, failing (of those), and dead.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (d *depths) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.queue
	ch <- d.oldest
	ch <- d.messages
}

// Collect implements prometheus.Collector. What the database does not answer in
// time is left out.
func (d *depths) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if queues, err := d.records.Queues(ctx, ringi.DefaultTenant, d.now()); err == nil {
		for _, q := range queues {
			gauge(d.queue, float64(q.Ready), q.Queue, "ready")
			gauge(d.queue, float64(q.Leased), q.Queue, "leased")
			gauge(d.oldest, float64(q.OldestMS)/1000, q.Queue)
		}
	}
	if s, err := d.outbox(ctx); err == nil {
		gauge(d.messages, float64(s.Pending+s.Claimed), "pending")
		gauge(d.messages, float64(s.Failing), "failing")
		gauge(d.messages, float64(s.Dead), "dead")
	}
}
