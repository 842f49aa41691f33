package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

// queueTenant is a tenant that has, or had, tasks in a queue.
type queueTenant struct {
	queue  string
	tenant ringi.Tenant
}

func compareQueues(a, b queueTenant) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.tenant, b.tenant))
}

// queueAge is how long a claim for all tenants goes by what it knows of them:
// as long as a task may stay unseen anyway.
const queueAge = time.Second

// queues are the rows of table queue that this node knows. Rows are never
// deleted. Safe for concurrent use.
type queues struct {
	mu    sync.Mutex
	known map[queueTenant]bool
	read  map[string]time.Time // when the tenants of a queue were read
	turn  ringi.Tenant         // that the last claim began with
}

func (q *queues) has(k queueTenant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known[k]
}

// learn notes rows that are certainly there.
func (q *queues) learn(list ...queueTenant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known == nil {
		q.known = map[queueTenant]bool{}
	}
	for _, k := range list {
		q.known[k] = true
	}
}

// forget starts anew, as after a restore.
func (q *queues) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known, q.read = nil, nil
}

// tenants are those of a queue that are known.
func (q *queues) tenants(queue string) (list []ringi.Tenant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k := range q.known {
		if k.queue == queue {
			list = append(list, k.tenant)
		}
	}
	return list
}

// stale reports whether the tenants of a queue should be read again, and notes
// that they will be.
func (q *queues) stale(queue string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.read[queue]; ok && !now.Before(at) && now.Sub(at) < queueAge {
		return false
	}
	if q.read == nil {
		q.read = map[string]time.Time{}
	}
	q.read[queue] = now
	return true
}

const textQueueTenants statement = `select tenant from queue where name = $1::text`

// tenantsOf returns the tenants that may have tasks in a queue.
func (s *Store) tenantsOf(ctx context.Context, queue string, now time.Time) ([]ringi.Tenant, error) {
	if s.queues.stale(queue, now) {
		read := &call{statement: textQueueTenants, row: func(row cells) error {
			s.queues.learn(queueTenant{queue, row.tenant(0)})
			return nil
		}}
		read.text(queue)
		if err := s.read(ctx, read); err != nil {
			return nil, err
		}
	}
	return s.queues.tenants(queue), nil
}
