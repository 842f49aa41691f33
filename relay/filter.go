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

// ParseAggregate reads TYPE or TYPE/ID. It refuses empty parts: who wrote them
// meant one aggregate, and without them the messages of all would be selected.
func ParseAggregate(text string) (aggregateType, aggregateID string, err error) {
	aggregateType, aggregateID, one := strings.Cut(text, "/")
	if aggregateType == "" || one && aggregateID == "" {
		return "", "", fmt.Errorf("%q names no aggregate; write TYPE or TYPE/ID, as in Order/o-17", text)
	}
	return aggregateType, aggregateID, nil
}
