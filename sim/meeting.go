package sim

import (
	"context"

	"github.com/ringiflow/ringi/store"
)

// A meeting is how a node knows of the others: it hears from the database who was
// seen there lately, also of some that are dead by now. What nobody asks for in a
// world goes to the database as it was when the node began.
type meeting struct {
	store.Fleet
	n *node
}

// meeting is nil where the database can have one node only.
func (n *node) meeting() store.Fleet {
	f, ok := n.w.db.Driver.(store.Fleet)
	if !ok {
		return nil
	}
	return meeting{f, n}
}

// now is the fleet of the database that is there now.
func (m meeting) now() (store.Fleet, error) {
	f, ok := m.n.w.db.Driver.(store.Fleet)
	if !ok || m.n.cut || !m.n.up {
		return nil, store.ErrUnavailable
	}
	return f, nil
}

// Meet implements store.Fleet.
func (m meeting) Meet(ctx context.Context, self store.Node) (store.Met, error) {
	f, err := m.now()
	if err != nil {
		return store.Met{}, err
	}
	return f.Meet(ctx, self)
}

// Sight implements store.Fleet.
func (m meeting) Sight(ctx context.Context, seen ...store.Sighting) error {
	f, err := m.now()
	if err != nil {
		return err
	}
	return f.Sight(ctx, seen...)
}
