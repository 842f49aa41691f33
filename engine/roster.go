package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// rosterKeep is how long a worker is shown after its last sign of life.
	rosterKeep = time.Minute
	// rosterCapacity is how recent a poll must be for its worker to count as
	// capacity: a worker with free slots polls at least every longestPoll.
	rosterCapacity = longestPoll + 10*time.Second
	// rosterTold is how often nodes tell one another what they saw.
	rosterTold = 10 * time.Second
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

// sightings lists what this node has seen of workers since a time: a line for
// each queue that a worker polls, or one without a queue.
func (r *roster) sightings(since time.Time) []store.Sighting {
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

// tell says to the other nodes on the store what this one sees of workers. A
// worker speaks to one node, and each is asked for all of them.
func (d *dispatcher) tell(ctx context.Context) (worked bool, err error) {
	if d.Config.Fleet == nil {
		return false, nil
	}
	d.mu.Lock()
	list, now := d.seen.sightings(d.told), d.clock.now()
	d.mu.Unlock()
	if err := d.reach.wrote(ctx, 0, d.Config.Fleet.Sight(ctx, list...)); err != nil {
		return false, err
	}
	d.told = now.Add(-time.Millisecond) // what came in the same instant is told twice
	return false, nil
}

// workers lists who serves the queues of a tenant, by queue and name: what this
// node saw, and what others told lately.
func (d *dispatcher) workers(ctx context.Context, tenant ringi.Tenant, now time.Time) (map[string][]ringi.WorkerView, error) {
	var told []store.Sighting
	if d.Config.Fleet != nil {
		var err error
		if told, err = d.Config.Fleet.Sightings(ctx, tenant, now.Add(-rosterKeep)); err != nil {
			return nil, err
		}
	}
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
		add(s, rosterCapacity+rosterTold)
	}
	d.mu.Lock()
	for _, s := range d.seen.sightings(now.Add(-rosterKeep)) {
		if s.Tenant == tenant {
			add(s, rosterCapacity)
		}
	}
	d.mu.Unlock()
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
	return out, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
