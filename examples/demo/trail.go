package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
)

// A trail is what the history of one run says about the way to its end, or
// of many runs together.
type trail struct {
	redelivered int      // attempts and hand-outs that followed one that nobody answered for
	lateResults int      // results that came too late to move the run, kept as evidence
	decided     int      // approvals that people decided about
	unknown     []string // steps whose outcome stayed unknown and was taken for applied; of one run only
}

func (t *trail) add(of trail) {
	t.redelivered += of.redelivered
	t.lateResults += of.lateResults
	t.decided += of.decided
}

// historyOf reads the whole history of a run.
func historyOf(ctx context.Context, service ringi.Service, run ringi.RunID) ([]ringi.HistoryEvent, error) {
	var events []ringi.HistoryEvent
	for after := int64(0); ; {
		page, err := insist(ctx, func() (ringi.HistoryPage, error) {
			return service.History(ctx, ringi.HistoryQuery{Tenant: ringi.DefaultTenant, Run: run, After: after})
		})
		if err != nil {
			return nil, fmt.Errorf("read the history of run %s: %w", run, err)
		}
		events = append(events, page.Events...)
		if page.Next == 0 {
			return events, nil
		}
		after = page.Next
	}
}

// trailOf counts in the history of one run. An attempt counts as delivered
// again when it follows one that nobody answered for, or when its token says
// that it was handed out more than once.
func trailOf(events []ringi.HistoryEvent) (trail, error) {
	var t trail
	unanswered := map[string]bool{} // by step and direction: the attempt before was given up
	handOuts := map[string]int{}    // beyond the first, by step, direction and attempt
	for _, e := range events {
		var fact struct {
			ringi.CallRef
			Assume  ringi.Applied `json:"assume"`
			Outcome ringi.Outcome `json:"outcome"`
		}
		if err := json.Unmarshal(e.Data, &fact); err != nil {
			return trail{}, fmt.Errorf("read event %d (%s): %w", e.Seq, e.Kind, err)
		}
		call := fact.Step + " " + string(fact.Direction)
		switch e.Kind {
		case "ActivityTimedOut":
			unanswered[call] = true
		case "ActivityRetried":
			if unanswered[call] {
				t.redelivered++
			}
			delete(unanswered, call)
		case "LateResult":
			t.lateResults++
		case "DecisionRecorded":
			t.decided = 1 // the order asks once, however many people answer
		case "OutcomeUnknown":
			if fact.Assume != ringi.AppliedNo && !slices.Contains(t.unknown, fact.Step) {
				t.unknown = append(t.unknown, fact.Step)
			}
		}
		if n := int(fact.Token & 0xffff); n > 1 { // the low half of a token counts the hand-outs
			attempt := fmt.Sprintf("%s %d", call, fact.Attempt)
			handOuts[attempt] = max(handOuts[attempt], n-1)
		}
	}
	for _, n := range handOuts {
		t.redelivered += n
	}
	return t, nil
}
