package demo

import (
	"slices"
	"testing"
	"time"
)

// W31: one seed draws the same kills, another draws others.
func TestKillsFollowFromTheSeed(t *testing.T) {
	if !slices.Equal(drawKills(7, 6, time.Minute), drawKills(7, 6, time.Minute)) {
		t.Error("one seed drew different kills")
	}
	if slices.Equal(drawKills(7, 6, time.Minute), drawKills(8, 6, time.Minute)) {
		t.Error("two seeds drew the same kills")
	}
}

// W31: whatever the seed and however long the feeding, both are killed more than
// five times, within that time, and with a rest in between.
func TestKillsAreEnoughAndLeaveARest(t *testing.T) {
	for _, span := range []time.Duration{minSpan, maxSpan, 10 * time.Minute} {
		for seed := range uint64(200) {
			server, last := 0, time.Duration(0)
			kills := drawKills(seed, killsWithin(span), span)
			for _, k := range kills {
				if k.server {
					server++
				}
				if k.at-last < killRest || k.at > span {
					t.Fatalf("seed %d, %s: a kill at %s after one at %s", seed, span, k.at, last)
				}
				last = k.at
			}
			if worker := len(kills) - server; server < killsNeeded || worker != server {
				t.Fatalf("seed %d, %s: %d kills of the server, %d of the worker", seed, span, server, worker)
			}
		}
	}
}
