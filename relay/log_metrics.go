package relay

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringiflow/ringi/outbox/wal"
)

// logMetrics are the numbers of a Log; there are none before its first report.
type logMetrics struct {
	mu       sync.Mutex
	last     *wal.Report
	overflow int64

	streaming, retained, bound, behind, waiting, left *prometheus.Desc
}

func newLogMetrics() *logMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ringi_outbox_log_"+name, help, nil, nil)
	}
	return &logMetrics{
		streaming: desc("streaming", "1 while messages are read from the write-ahead log, 0 while they are found by polling."),
		retained:  desc("retained_bytes", "Write-ahead log that the server keeps for this relay's slot."),
		bound:     desc("bound_bytes", "The most that it may keep before the slot is given up."),
		behind:    desc("behind_seconds", "Age of the last heartbeat that came back through the log."),
		waiting:   desc("waiting", "Messages that the log told of and that are not settled."),
		left:      desc("overflow_total", "Messages that there was no room to remember, and that polling finds."),
	}
}

// ObserveLog counts what a Log reports.
func (m *Metrics) ObserveLog(r wal.Report) {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.log.last = &r
	m.log.overflow += r.Overflow
}

func (m *logMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.streaming, m.retained, m.bound, m.behind, m.waiting, m.left} {
		ch <- d
	}
}

func (m *logMetrics) collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return
	}
	streaming := 0.0
	if m.last.State == wal.Streaming {
		streaming = 1
	}
	ch <- prometheus.MustNewConstMetric(m.streaming, prometheus.GaugeValue, streaming)
	ch <- prometheus.MustNewConstMetric(m.retained, prometheus.GaugeValue, float64(m.last.Retained))
	ch <- prometheus.MustNewConstMetric(m.bound, prometheus.GaugeValue, float64(m.last.Bound))
	ch <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, m.last.Behind.Seconds())
	ch <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(m.last.Waiting))
	ch <- prometheus.MustNewConstMetric(m.left, prometheus.CounterValue, float64(m.overflow))
}
