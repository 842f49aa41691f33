package sim_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ringiflow/ringi/store"
)

// A counter answers differently each time that it is asked.
type counter struct{ n atomic.Int64 }

func (c *counter) next() string { return fmt.Sprint(c.n.Add(1)) }

// A doubling store writes a transition again, behind itself.
type doubling struct{ store.Store }

// Commit implements store.Store.
func (d doubling) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	done, err := d.Store.Commit(ctx, writes...)
	if err != nil || len(writes) != 1 || len(done.Lost) > 0 || writes[0].Body == nil || writes[0].First == 1 {
		return done, err
	}
	again := writes[0]
	again.Commit[0]++
	again.First, again.Last = again.Last+1, 2*again.Last-again.First+1
	again.Prev, again.Head = again.Head, store.Chain(again.Head, again.Body)
	again.Needs, again.Messages, again.Audit = nil, nil, nil
	if _, err := d.Store.Commit(ctx, again); err != nil {
		return done, err
	}
	return done, nil
}
