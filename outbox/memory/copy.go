package memory

import (
	"maps"
	"slices"

	"github.com/ringiflow/ringi/outbox"
)

// CopyOf makes s, which must be empty, hold what from holds now, claims
// included. Both change on their own from here on.
func (s *Outbox) CopyOf(from *Outbox) {
	from.mu.Lock()
	defer from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.open = make(map[string]*entry, len(from.rows)), make(map[string]*entry, len(from.open))
	for id, r := range from.rows {
		row := *r
		s.rows[id] = &row
		if from.open[id] != nil {
			s.open[id] = &row
		}
	}
	s.fleet = from.fleet.clone()
	s.changes = slices.Clone(from.changes)
	s.heads, s.last, s.turn = maps.Clone(from.heads), from.last, from.turn
	if s.heads == nil {
		s.heads = map[outbox.Key]int64{}
	}
}
