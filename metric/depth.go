package metric

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// scrapeTimeout bounds what a look at the metrics may ask of the database.
const scrapeTimeout = 2 * time.Second

// A depths collector asks the database at each scrape how much waits.
type depths struct {
	records store.Records
	now     func() time.Time

	queue, oldest *prometheus.Desc
}

// NewDepths collects how many tasks wait in each queue.
func NewDepths(records store.Records, now func() time.Time) prometheus.Collector {
	return &depths{
		records: records, now: now,
		queue:  prometheus.NewDesc("ringi_queue_tasks", "Tasks in a queue that are ready, and under lease.", []string{"queue", "state"}, nil),
		oldest: prometheus.NewDesc("ringi_queue_oldest_seconds", "Age of the oldest task that is ready.", []string{"queue"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (d *depths) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.queue
	ch <- d.oldest
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
}
