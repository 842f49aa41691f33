package relay

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringiflow/ringi/outbox"
)

// scrapeTimeout bounds what a look at the metrics may ask of the database.
const scrapeTimeout = 2 * time.Second

// tellAgain is how often a log is told of what lasts.
const tellAgain = time.Minute

// A Journal logs what an operator must see of the relays of a process. That
// messages cannot be read is told for all of them at its beginning, once a minute
// and at its end, whatever they do meanwhile. Safe for concurrent use; Log and
// Now are needed.
type Journal struct {
	Log *slog.Logger
	Now func() time.Time
	// Told reports whether somebody else says already that the database is away;
	// nil is never.
	Told func() bool

	mu   sync.Mutex
	open bool      // the end is to be told
	last time.Time // when it was told that they cannot be read
}

// Observe logs a report.
func (j *Journal) Observe(r outbox.Report) {
	now := j.Now()
	j.mu.Lock()
	tell := r.Err != nil && (j.last.IsZero() || now.Sub(j.last) >= tellAgain) && (j.Told == nil || !j.Told())
	again := r.Err == nil && j.open
	if tell {
		j.open, j.last = true, now
	} else if again {
		j.open = false
	}
	j.mu.Unlock()
	switch {
	case tell:
		j.Log.Warn("messages cannot be read", "destination", r.Destination, "err", r.Err)
	case again:
		j.Log.Info("messages can be read again", "destination", r.Destination)
	}
	logReport(j.Log, r)
}

// logReport logs everything but that messages cannot be read.
func logReport(log *slog.Logger, r outbox.Report) {
	switch {
	case r.Err != nil:
	case r.Down != nil:
		log.Warn("the destination of messages is down", "destination", r.Destination, "err", r.Down, "again", r.Until)
	}
	if r.Refused != nil && r.Failed > 0 {
		log.Warn("messages were refused and are tried again; later ones of their aggregates wait", "destination", r.Destination, "messages", r.Failed, "err", r.Refused)
	}
	if r.Dead > 0 {
		log.Error("messages were set aside after their last try: ringi outbox list --state dead", "destination", r.Destination, "messages", r.Dead, "err", r.Refused)
	}
	if r.Parked > 0 {
		log.Error("messages were parked after their last try, and their aggregates wait: ringi outbox list --state parked", "destination", r.Destination, "aggregates", r.Parked, "err", r.Refused)
	}
	if r.Lost > 0 {
		log.Warn("marks changed nothing: the lease had ended, so these messages may arrive twice", "destination", r.Destination, "messages", r.Lost)
	}
}

// describeTime is how long a destination is asked what it promises.
const describeTime = 5 * time.Second

// Announce logs what each destination promises. One that is down and has to be
// asked is waited for, but not for long.
func Announce(ctx context.Context, log *slog.Logger, sinks []*Sink) {
	var asking sync.WaitGroup
	for _, s := range sinks {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, describeTime)
			defer cancel()
			text, err := s.Describe(ctx)
			if err != nil {
				log.Warn("a destination does not say what it promises; its messages wait", "destination", s.Destination, "at", s.Name, "err", err)
				return
			}
			log.Info("messages go to", "destination", s.Destination, "at", s.Name, "promises", text)
		})
	}
	asking.Wait()
}

// Warn logs which destinations have messages waiting that none of the sinks is
// for. What cannot be asked now is left to the relays' own reports.
func Warn(ctx context.Context, log *slog.Logger, desk outbox.Desk, sinks []*Sink) {
	depths, err := desk.Backlog(ctx)
	if err != nil {
		return
	}
	for _, name := range unserved(depths, sinks) {
		log.Warn("messages wait for a destination that this relay does not serve", "destination", name)
	}
}

// Metrics are the numbers of an outbox and of the relays of this process, for
// Prometheus. How much waits is asked of the database at each scrape; what it
// does not answer in time is left out.
type Metrics struct {
	backlog func(context.Context) ([]outbox.Depth, error)
	now     func() time.Time
	done    *prometheus.CounterVec

	messages, oldest *prometheus.Desc

	log *logMetrics
}

// NewMetrics makes them over Desk.Backlog.
func NewMetrics(backlog func(context.Context) ([]outbox.Depth, error), now func() time.Time) *Metrics {
	return &Metrics{
		backlog: backlog, now: now, log: newLogMetrics(),
		done: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringi_outbox_done_total",
			Help: "What relays of this process did with messages: claimed (attempts), fed (of those, told of by the write-ahead log), delivered, failed, dead, parked, released, lost (marks too late), pruned.",
		}, []string{"destination", "what"}),
		messages: prometheus.NewDesc("ringi_outbox_messages", "Messages that are pending (claimed ones too), failing (of those), parked with their key, and dead.", []string{"destination", "tenant", "state"}, nil),
		oldest:   prometheus.NewDesc("ringi_outbox_oldest_seconds", "Age of the oldest message that is not delivered.", []string{"destination", "tenant"}, nil),
	}
}

// Handler answers scrapes for these metrics alone.
func (m *Metrics) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Observe counts what a round did.
func (m *Metrics) Observe(r outbox.Report) {
	for what, n := range map[string]int{
		"claimed": r.Claimed, "fed": r.Fed, "delivered": r.Delivered, "failed": r.Failed, "dead": r.Dead,
		"parked": r.Parked, "released": r.Released, "lost": r.Lost, "pruned": r.Pruned,
	} {
		m.done.WithLabelValues(r.Destination, what).Add(float64(n))
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.done.Describe(ch)
	m.log.describe(ch)
	ch <- m.messages
	ch <- m.oldest
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.done.Collect(ch)
	m.log.collect(ch)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	depths, err := m.backlog(ctx)
	if err != nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		// A destination that another writer named in no valid text is left out.
		if one, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...); err == nil {
			ch <- one
		}
	}
	if len(depths) == 0 { // so that it is there from the first day
		depths = []outbox.Depth{{}}
	}
	now := m.now()
	for _, v := range ViewDepths(depths, now) {
		tenant := strconv.FormatInt(v.Tenant, 10)
		for state, n := range map[string]int64{"pending": v.Pending + v.Claimed, "failing": v.Failing, "parked": v.Parked, "dead": v.Dead} {
			gauge(m.messages, float64(n), v.Destination, tenant, state)
		}
		gauge(m.oldest, float64(v.OldestMS)/1000, v.Destination, tenant)
	}
}
