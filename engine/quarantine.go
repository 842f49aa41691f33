package engine

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// quarantineFor is how long a run that could not be read or decided is left
// alone before it is tried again: its rows, or this program, may have been
// mended meanwhile, and trying costs all others some time.
const quarantineFor = time.Minute

// A quarantine holds the runs that cannot be read or decided, so that each
// fails alone. It lives in memory: the run's rows are not touched, for nobody
// knows what is wrong with them. Safe for concurrent use.
type quarantine struct {
	mu   sync.Mutex
	runs map[store.Key]sick
}

type sick struct {
	since time.Time
	until time.Time
	err   error
}

func (q *quarantine) put(key store.Key, now time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs == nil {
		q.runs = map[store.Key]sick{}
	}
	since := now
	if s, ok := q.runs[key]; ok {
		since = s.since
	}
	q.runs[key] = sick{since: since, until: now.Add(quarantineFor), err: err}
}

// err is why the run is left alone, or nil. A run whose time is over may be
// tried again.
func (q *quarantine) err(key store.Key, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, ok := q.runs[key]; ok && now.Before(s.until) {
		return s.err
	}
	return nil
}

// cured forgets a run that could be decided again.
func (q *quarantine) cured(key store.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.runs, key)
}

// whyAlone is what people are told of a run that is left alone. What exactly is
// wrong with its rows is for the operator's log.
func whyAlone(err error) string {
	var refusal *ringi.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return "this run cannot be read or decided and is left alone; the server's log says why"
}

// incidents lists the runs of a tenant, or the one run, as people see them.
func (q *quarantine) incidents(tenant ringi.Tenant, run ringi.RunID) []ringi.IncidentView {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []ringi.IncidentView
	for key, s := range q.runs {
		if key.Tenant == tenant && (run == "" || key.Run == run) {
			out = append(out, ringi.IncidentView{Run: key.Run, Incident: ringi.Incident{
				Kind: ringi.IncidentCorrupt, Since: s.since, Allowed: []ringi.Resolution{},
				Message: whyAlone(s.err),
			}})
		}
	}
	slices.SortFunc(out, func(a, b ringi.IncidentView) int { return strings.Compare(string(a.Run), string(b.Run)) })
	return out
}
