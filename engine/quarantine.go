package engine

import (
	"errors"
	"fmt"
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
// fails alone, and those beside whose log stands a row that cannot be read. It
// lives in memory: the run's rows are not touched, for nobody knows what is
// wrong with them. After a restart a run is known again when it is next read.
// Safe for concurrent use.
type quarantine struct {
	mu   sync.Mutex
	runs map[store.Key]sick
}

// A sick run. One whose log can be read is not left alone: what is wrong with
// the rows beside it is written anew by the transition that changes them.
type sick struct {
	since time.Time
	until time.Time // it is left alone until then; zero: it is not
	err   error     // why; with until
	rows  []store.BadRow
}

// put leaves a run alone for a while. It reports whether that is news.
func (q *quarantine) put(key store.Key, now time.Time, err error) (news bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(key, now)
	news = s.err == nil || !now.Before(s.until)
	s.until, s.err = now.Add(quarantineFor), err
	q.runs[key] = s
	return news
}

// mark keeps in mind that a row beside a run's log cannot be read. It reports
// whether that is news.
func (q *quarantine) mark(row store.BadRow, now time.Time) (news bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(row.Key, now)
	known := slices.ContainsFunc(s.rows, func(b store.BadRow) bool { return b.String() == row.String() })
	if !known && len(s.rows) < mostBadRows {
		s.rows = append(slices.Clip(s.rows), row)
		q.runs[row.Key] = s
	}
	return !known
}

// mostBadRows bounds what is kept in mind of one run.
const mostBadRows = 100

// of is what is known of a run. The caller holds the lock.
func (q *quarantine) of(key store.Key, now time.Time) sick {
	if q.runs == nil {
		q.runs = map[store.Key]sick{}
	}
	s, ok := q.runs[key]
	if !ok {
		s.since = now
	}
	return s
}

// err is why the run is left alone, or nil. A run whose time is over may be
// tried again.
func (q *quarantine) err(key store.Key, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, ok := q.runs[key]; ok && now.Before(s.until) {
		return s.err // never nil
	}
	return nil
}

// cured forgets a run that could be decided again.
func (q *quarantine) cured(key store.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.runs, key)
}

// unread says that a run is sick because it could not be read: reading it again
// tells whether it still is.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// unreadRun is a run that cannot be read.
func unreadRun(err error) *brokenRun { return &brokenRun{unread{err}} }

// byReading reports whether reading the run tells that it is well.
func (s sick) byReading() bool {
	var u unread
	return s.err == nil || errors.As(s.err, &u)
}

// readable forgets what was found by reading a run.
func (q *quarantine) readable(key store.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, ok := q.runs[key]; ok && s.byReading() {
		delete(q.runs, key)
	}
}

// unsure lists runs of a tenant, or the one run, about which reading them tells
// more; at most so many.
func (q *quarantine) unsure(tenant ringi.Tenant, run ringi.RunID, most int) []store.Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	var keys []store.Key
	for key, s := range q.runs {
		if key.Tenant == tenant && (run == "" || key.Run == run) && s.byReading() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return strings.Compare(string(a.Run), string(b.Run)) })
	return keys[:min(most, len(keys))]
}

// longestReason bounds what an incident says of its cause, in bytes.
const longestReason = 300

// whyAlone is what people are told of a run that is left alone. The stack of a fault of ours stays in the log.
func whyAlone(err error) string {
	var refusal *ringi.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return "this run cannot be read or decided and is left alone: " + reasonOf(err)
}

// reasonOf is an error as people see it: its first line, and not too much of it.
func reasonOf(err error) string {
	reason, _, _ := strings.Cut(readable(err.Error()), "\n")
	if len(reason) > longestReason {
		reason = strings.ToValidUTF8(reason[:longestReason], "") + "…"
	}
	return reason
}

// incident is what a person sees of a sick run.
func (s sick) incident() ringi.Incident {
	in := ringi.Incident{Kind: ringi.IncidentCorrupt, Since: s.since, Allowed: []ringi.Resolution{}}
	if s.err != nil {
		in.Message = whyAlone(s.err)
	} else {
		row := s.rows[0]
		name := strings.TrimSpace(row.Table + " " + row.Row)
		in.Message = fmt.Sprintf("%s cannot be read, and the run goes on, since its log is sound: %s", name, reasonOf(row.Err))
		if more := len(s.rows) - 1; more > 0 {
			in.Message += fmt.Sprintf("; and %d more", more)
		}
	}
	return in
}

// incidents lists the runs of a tenant, or the one run, as people see them.
func (q *quarantine) incidents(tenant ringi.Tenant, run ringi.RunID) []ringi.IncidentView {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []ringi.IncidentView
	for key, s := range q.runs {
		if key.Tenant == tenant && (run == "" || key.Run == run) {
			out = append(out, ringi.IncidentView{Run: key.Run, Incident: s.incident()})
		}
	}
	slices.SortFunc(out, func(a, b ringi.IncidentView) int { return strings.Compare(string(a.Run), string(b.Run)) })
	return out
}
