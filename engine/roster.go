package engine

import (
	"context"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/sense"
	"github.com/ringiflow/ringi/store"
)

// tell says to the other nodes on the store what this one sees of workers. A
// worker speaks to one node, and each is asked for all of them.
func (d *dispatcher) tell(ctx context.Context) (worked bool, err error) {
	if d.Config.Fleet == nil {
		return false, nil
	}
	d.mu.Lock()
	list, now := d.seen.Sightings(d.told), d.clock.Now()
	d.mu.Unlock()
	if err := d.reach.Wrote(ctx, 0, d.Config.Fleet.Sight(ctx, list...)); err != nil {
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
		if told, err = d.Config.Fleet.Sightings(ctx, tenant, now.Add(-sense.RosterKeep)); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	own := d.seen.Sightings(now.Add(-sense.RosterKeep))
	d.mu.Unlock()
	return sense.Views(tenant, now, told, own), nil
}
