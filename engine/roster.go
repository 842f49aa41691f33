package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// rosterKeep is how long a worker is shown after its last sign of life.
	rosterKeep = time.Minute
	// rosterCapacity is how recent a poll must be for its worker to count as
	// capacity: a worker with free slots polls at least every longestPoll.
	rosterCapacity = longestPoll + 10*time.Second
	// rosterMost bounds the memory that names of workers take.
	rosterMost = 10_000
)

// A roster is the workers that this node saw lately. Its zero value is empty;
// the dispatcher's lock guards it.
type roster struct {
	workers map[rosterKey]*rosterEntry
	sweptAt time.Time
}

type rosterKey struct {
	tenant ringi.Tenant
	worker string
}

type rosterEntry struct {
	polled map[string]time.Time // by queue
	alive  time.Time
}

func (r *roster) entry(tenant ringi.Tenant, worker string) *rosterEntry {
	key := rosterKey{tenant, worker}
	e := r.workers[key]
	if e == nil {
		e = &rosterEntry{polled: map[string]time.Time{}}
		if r.workers == nil {
			r.workers = map[rosterKey]*rosterEntry{}
		}
		if len(r.workers) < rosterMost {
			r.workers[key] = e
		}
	}
	return e
}

func (r *roster) polled(req ringi.PollRequest, now time.Time) {
	e := r.entry(req.Tenant, req.Worker)
	e.alive = now
	e.polled[req.Queue] = now
}

// beat notes a heartbeat. It makes nobody capacity.
func (r *roster) beat(tenant ringi.Tenant, worker string, now time.Time) {
	r.entry(tenant, worker).alive = now
}

// forget drops the workers that were not seen for rosterKeep.
func (r *roster) forget(now time.Time) {
	if now.Sub(r.sweptAt) < rosterKeep {
		return
	}
	r.sweptAt = now
	for key, e := range r.workers {
		if now.Sub(e.alive) > rosterKeep {
			delete(r.workers, key)
		}
	}
}

// queue lists who serves a queue, by name. Of the queue without a name, nobody
// does: there are the workers that only beat.
func (r *roster) queue(tenant ringi.Tenant, queue string, now time.Time) []ringi.WorkerView {
	var out []ringi.WorkerView
	for key, e := range r.workers {
		at, ok := e.polled[queue]
		if queue == "" {
			ok = len(e.polled) == 0
		}
		if key.tenant != tenant || !ok || now.Sub(e.alive) > rosterKeep {
			continue
		}
		out = append(out, ringi.WorkerView{Worker: key.worker, LastPoll: at, LastSeen: e.alive, Capacity: now.Sub(at) <= rosterCapacity})
	}
	slices.SortFunc(out, func(a, b ringi.WorkerView) int { return cmp.Compare(a.Worker, b.Worker) })
	return out
}

// queues lists the queues that somebody polls.
func (r *roster) queues(tenant ringi.Tenant, now time.Time) []string {
	var out []string
	for key, e := range r.workers {
		if key.tenant != tenant || now.Sub(e.alive) > rosterKeep {
			continue
		}
		if len(e.polled) == 0 && !slices.Contains(out, "") {
			out = append(out, "")
		}
		for q := range e.polled {
			if !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	slices.Sort(out)
	return out
}
