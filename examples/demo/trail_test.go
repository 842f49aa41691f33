package demo

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ringiflow/ringi"
)

// history makes events of facts, as a server shows them.
func history(t *testing.T, facts ...ringi.Fact) []ringi.HistoryEvent {
	t.Helper()
	var events []ringi.HistoryEvent
	for i, fact := range facts {
		data, err := json.Marshal(fact)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ringi.HistoryEvent{Seq: int64(i) + 1, Kind: ringi.KindOf(fact), Data: data})
	}
	return events
}

func call(step string, attempt int, seq, handOut int64) ringi.CallRef {
	return ringi.CallRef{Step: step, Attempt: attempt, Token: seq<<16 | handOut}
}

// W12, W31: what counts as delivered again, as late and as decided.
func TestTallyOfAHistory(t *testing.T) {
	vote := ringi.DecisionRecorded{Step: "approve", Person: "alice", Approve: true}
	for _, c := range []struct {
		name  string
		facts []ringi.Fact
		want  trail
	}{
		{"a run without trouble", []ringi.Fact{
			ringi.RunStarted{}, ringi.ActivityScheduled{Step: "a", Attempt: 1}, ringi.ActivitySucceeded{CallRef: call("a", 1, 2, 1)},
		}, trail{}},
		{"an attempt after one that nobody answered for", []ringi.Fact{
			ringi.ActivityTimedOut{CallRef: call("a", 1, 2, 1), Why: ringi.ExpiryLease},
			ringi.ActivityRetried{Step: "a", Attempt: 2},
			ringi.ActivitySucceeded{CallRef: call("a", 2, 4, 1)},
		}, trail{redelivered: 1}},
		{"an attempt after one that failed", []ringi.Fact{
			ringi.ActivityFailed{CallRef: call("a", 1, 2, 1)}, ringi.ActivityRetried{Step: "a", Attempt: 2},
		}, trail{}},
		{"the same attempt handed out three times", []ringi.Fact{
			ringi.ActivityStarted{CallRef: call("a", 1, 2, 3)}, ringi.ActivitySucceeded{CallRef: call("a", 1, 2, 3)},
		}, trail{redelivered: 2}},
		{"a late result", []ringi.Fact{ringi.LateResult{CallRef: call("a", 1, 2, 1), Kind: "succeeded"}}, trail{lateResults: 1}},
		{"two votes about one order", []ringi.Fact{vote, vote}, trail{decided: 1}},
		{"an outcome that is taken for applied", []ringi.Fact{ringi.OutcomeUnknown{Step: "confirm"}}, trail{unknown: []string{"confirm"}}},
		{"an outcome that is taken for not applied", []ringi.Fact{ringi.OutcomeUnknown{Step: "confirm", Assume: ringi.AppliedNo}}, trail{}},
	} {
		got, err := trailOf(history(t, c.facts...))
		if err != nil {
			t.Fatal(err)
		}
		if got.redelivered != c.want.redelivered || got.lateResults != c.want.lateResults || got.decided != c.want.decided || !slices.Equal(got.unknown, c.want.unknown) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
