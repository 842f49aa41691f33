package demo

import (
	"slices"
	"testing"
	"time"
)

// W31: one seed draws the same kills, another draws others.
func TestKillsFollowFromTheSeed(t *testing.T) {
	if !slices.Equal(drawKills(7, cast{nodes: 1}, 6, time.Minute), drawKills(7, cast{nodes: 1}, 6, time.Minute)) {
		t.Error("one seed drew different kills")
	}
	if slices.Equal(drawKills(7, cast{nodes: 1}, 6, time.Minute), drawKills(8, cast{nodes: 1}, 6, time.Minute)) {
		t.Error("two seeds drew the same kills")
	}
}

// W31: whatever the seed, the cast and however long the feeding, all are killed
// often enough, within that time, and with a rest in between.
func TestKillsAreEnoughAndLeaveARest(t *testing.T) {
	for _, who := range []cast{{nodes: 1}, {nodes: 3, database: true}, {nodes: 5}} {
		for _, span := range []time.Duration{minSpan, maxSpan, 10 * time.Minute} {
			for seed := range uint64(100) {
				checkKills(t, seed, who, span)
			}
		}
	}
}

func checkKills(t *testing.T, seed uint64, who cast, span time.Duration) {
	t.Helper()
	last := time.Duration(0)
	of, each := map[kind]int{}, map[kill]bool{}
	for _, k := range drawKills(seed, who, killsWithin(span), span) {
		of[k.what]++
		each[kill{what: k.what, nth: k.nth}] = true
		if k.at-last < killRest || k.at > span {
			t.Fatalf("seed %d, %+v, %s: a kill at %s after one at %s", seed, who, span, k.at, last)
		}
		last = k.at
	}
	if of[aServer] < killsNeeded || of[aWorker] != of[aServer] || who.database != (of[theDatabase] >= crashesNeeded) {
		t.Fatalf("seed %d, %+v, %s: kills %v", seed, who, span, of)
	}
	for nth := range who.nodes {
		if !each[kill{what: aServer, nth: nth}] || !each[kill{what: aWorker, nth: nth}] {
			t.Fatalf("seed %d, %+v, %s: node %d or its worker is never killed", seed, who, span, nth)
		}
	}
}
