package outbox_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ringiflow/ringi/outbox"
)

// O8: a wave holds one ordered message of a key, and no more than it may.
func TestWavesKeepTheOrderOfAKey(t *testing.T) {
	var msgs []outbox.Message
	for i := range 40 {
		m := outbox.Message{AggregateID: string(rune('a' + i%3)), Seq: int64(i + 1)}
		if i%5 == 0 {
			m.Seq, m.Unordered = 0, true
		}
		msgs = append(msgs, m)
	}
	for _, most := range []int{1, 2, 7, 100} {
		last := map[outbox.Key]int{}
		var all []int
		for n, wave := range outbox.Waves(msgs, most) {
			if len(wave) > most {
				t.Errorf("a wave of %d, at most %d are asked for", len(wave), most)
			}
			seen := map[outbox.Key]bool{}
			for _, i := range wave {
				key := msgs[i].Key()
				if msgs[i].Seq > 0 && (seen[key] || last[key] > i) {
					t.Errorf("wave %d of %d: message %d of key %s is out of its order", n, most, i, key.AggregateID)
				}
				if msgs[i].Seq > 0 {
					seen[key], last[key] = true, i
				}
			}
			all = append(all, wave...)
		}
		slices.Sort(all)
		if len(all) != len(msgs) || len(slices.Compact(all)) != len(msgs) {
			t.Errorf("of %d messages %d are in waves of at most %d", len(msgs), len(all), most)
		}
	}
}

// What stands behind a failure of its key is held; what stands before, other keys
// and unordered messages are not.
func TestWhatStandsBehindAFailureIsHeld(t *testing.T) {
	msgs := []outbox.Message{{AggregateID: "a", Seq: 1}, {AggregateID: "a", Seq: 2}, {AggregateID: "b", Seq: 1}, {AggregateID: "a"}, {AggregateID: "a", Seq: 3}}
	answers := make([]error, len(msgs))
	answers[1] = errors.New("no")
	outbox.HoldBehind(msgs, answers, []int{1, 2})
	if answers[0] != nil || answers[2] != nil || answers[3] != nil || !errors.Is(answers[4], outbox.ErrHeld) {
		t.Errorf("answers %v", answers)
	}
}
