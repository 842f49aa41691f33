package table

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi/outbox"
)

// Group is the messages of one insert that share a key, as indexes into it.
type Group struct {
	Key     outbox.Key
	Members []int
}

// Arrange checks messages and groups the ordered ones by key, keys in the order
// in which every writer takes their heads: two writers that took them in
// different orders would wait for each other for ever.
func Arrange(msgs []outbox.Message) ([]Group, error) {
	ids := make(map[string]bool, len(msgs))
	at := make(map[outbox.Key]int)
	var groups []Group
	for i := range msgs {
		m := &msgs[i]
		if err := m.Check(); err != nil {
			return nil, err
		}
		if m.Seq != 0 {
			return nil, fmt.Errorf("outbox: message %s: seq is %d before the insert; leave it 0, the insert assigns it", m.ID, m.Seq)
		}
		if ids[m.ID] {
			return nil, fmt.Errorf("outbox: insert message %s: %w", m.ID, outbox.ErrDuplicate)
		}
		ids[m.ID] = true
		if m.Unordered {
			continue
		}
		g, ok := at[m.Key()]
		if !ok {
			g = len(groups)
			at[m.Key()] = g
			groups = append(groups, Group{Key: m.Key()})
		}
		groups[g].Members = append(groups[g].Members, i)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Key.Tenant, b.Key.Tenant),
			cmp.Compare(a.Key.AggregateType, b.Key.AggregateType),
			cmp.Compare(a.Key.AggregateID, b.Key.AggregateID))
	})
	return groups, nil
}
