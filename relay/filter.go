package relay

import (
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/outbox"
)

// ParseStates reads states as State.String prints them.
func ParseStates(texts []string) ([]outbox.State, error) {
	var states []outbox.State
	for _, text := range texts {
		s := outbox.Parked
		for s.String() != text {
			if s++; s > outbox.Dead {
				return nil, fmt.Errorf("no message is %q; take some of pending, claimed, delivered, parked, dead", text)
			}
		}
		states = append(states, s)
	}
	return states, nil
}

// ParseAggregate reads TYPE or TYPE/ID.
func ParseAggregate(text string) (aggregateType, aggregateID string) {
	aggregateType, aggregateID, _ = strings.Cut(text, "/")
	return aggregateType, aggregateID
}
