package sense

import (
	"cmp"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// LongestPoll ends below the idle time-outs of common proxies.
	LongestPoll = 20 * time.Second
	// RosterKeep is how long a worker is shown after its last sign of life.
	RosterKeep = time.Minute
	// capacity is how recent a poll must be for its worker to count as capacity: a
	// worker with free slots polls at least every LongestPoll.
	capacity = LongestPoll + 10*time.Second
	// RosterTold is how often nodes tell one another what they saw.
	RosterTold = 10 * time.Second
	// rosterMost bounds the memory that names of workers take.
	rosterMost = 10_000
)

// A Roster is the workers that this node saw lately. Its zero value is empty. It
// must not be used concurrently.
type Roster struct {
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

func (r *Roster) entry(tenant ringi.Tenant, worker string) *rosterEntry {
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

// Polled notes a poll.
func (r *Roster) Polled(req ringi.PollRequest, now time.Time) {
	e := r.entry(req.Tenant, req.Worker)
	e.alive = now
	e.polled[req.Queue] = now
}

// Beat notes a heartbeat. It makes nobody capacity.
func (r *Roster) Beat(tenant ringi.Tenant, worker string, now time.Time) {
	r.entry(tenant, worker).alive = now
}

// Forget drops the workers that were not seen for RosterKeep.
func (r *Roster) Forget(now time.Time) {
	if now.Sub(r.sweptAt) < RosterKeep {
		return
	}
	r.sweptAt = now
	for key, e := range r.workers {
		if now.Sub(e.alive) > RosterKeep {
			delete(r.workers, key)
		}
	}
}

// Sightings lists what this node has seen of workers since a time: a line for
// each queue that a worker polls, or one without a queue.
func (r *Roster) Sightings(since time.Time) []store.Sighting {
	var list []store.Sighting
	for key, e := range r.workers {
		if !e.alive.After(since) {
			continue
		}
		for queue, at := range e.polled {
			list = append(list, store.Sighting{Tenant: key.tenant, Worker: key.worker, Queue: queue, Polled: at, Seen: e.alive})
		}
		if len(e.polled) == 0 {
			list = append(list, store.Sighting{Tenant: key.tenant, Worker: key.worker, Seen: e.alive})
		}
	}
	return list
}

// Views are the workers of a tenant, by queue and name: what others told lately, and
// what this node saw itself.
func Views(tenant ringi.Tenant, now time.Time, told, own []store.Sighting) map[string][]ringi.WorkerView {
	views := map[rosterKey]map[string]ringi.WorkerView{} // by worker and queue
	add := func(s store.Sighting, fresh time.Duration) {
		key := rosterKey{tenant, s.Worker}
		if views[key] == nil {
			views[key] = map[string]ringi.WorkerView{}
		}
		v := views[key][s.Queue]
		v.Worker, v.Capacity = s.Worker, v.Capacity || s.Queue != "" && now.Sub(s.Polled) <= fresh
		v.LastPoll, v.LastSeen = later(v.LastPoll, s.Polled), later(v.LastSeen, s.Seen)
		views[key][s.Queue] = v
	}
	for _, s := range told {
		add(s, capacity+RosterTold)
	}
	for _, s := range own {
		if s.Tenant == tenant {
			add(s, capacity)
		}
	}
	out := map[string][]ringi.WorkerView{}
	for _, queues := range views {
		for queue, v := range queues {
			if queue != "" || len(queues) == 1 { // it polls by now
				out[queue] = append(out[queue], v)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b ringi.WorkerView) int { return cmp.Compare(a.Worker, b.Worker) })
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
