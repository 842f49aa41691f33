package outbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// A claim of many messages stands in one place for all of them. When it ends without
// its marks it was an attempt of each, and each comes back alone, so that the one that
// killed its relay spends the attempts and the others are delivered.
func TestAMessageThatKillsItsRelayIsFoundAmongThoseClaimedWithIt(t *testing.T) { // O-17
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "b"), order(3, "c"))
		at := begin
		wantNames(t, f.claim(t, at, 10), "a/1 b/1 c/1")
		seen := map[string]int{}
		for range 6 {
			at = at.Add(30 * time.Second)
			for {
				got := f.claim(t, at, 10)
				if len(got) == 0 {
					break
				}
				m := got[0]
				if len(got) != 1 || !m.Orphaned {
					t.Fatalf("%s came together, orphaned: %t", names(got), m.Orphaned)
				}
				seen[m.ID] = m.Attempt
				if m.ID != id(2) && !f.mark(t, at, m, outbox.MarkDelivered, at) {
					t.Errorf("the mark of %s was lost", m.ID)
				}
			}
		}
		if seen[id(1)] != 2 || seen[id(2)] != 7 || seen[id(3)] != 2 {
			t.Errorf("attempts: %v", seen)
		}
		if st := f.stats(t); st.Claimed != 1 || st.Pending != 0 {
			t.Errorf("got %+v", st)
		}
	})
}

// Messages of one claim are settled one by one as well as together, each once.
func TestMarksOfAPartOfAClaimLeaveTheRestInHand(t *testing.T) { // O-16
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "b"), order(3, "c"), order(4, "d"))
		got := f.claim(t, begin, 10)
		if len(got) != 4 {
			t.Fatalf("claimed %s", names(got))
		}
		stands := func(want outbox.Stats) {
			t.Helper()
			st := f.stats(t)
			st.Oldest = time.Time{}
			if st != want {
				t.Errorf("got %+v, want %+v", st, want)
			}
		}
		stands(outbox.Stats{Claimed: 4})
		later := begin.Add(time.Minute)
		for i, o := range []outbox.Outcome{outbox.MarkDelivered, outbox.MarkFailed, outbox.MarkReleased} {
			if !f.mark(t, begin, got[i], o, later) {
				t.Errorf("the mark of %s was lost", got[i].ID)
			}
			if f.mark(t, begin, got[i], o, later) {
				t.Errorf("the mark of %s applied twice", got[i].ID)
			}
		}
		stands(outbox.Stats{Claimed: 1, Pending: 2, Failing: 1})
		if f.mark(t, begin, got[0], outbox.MarkDelivered, later) {
			t.Error("a delivery applied twice")
		}
		wantNames(t, f.claim(t, begin, 10), "")
		attempts := map[string]int{}
		for range 3 {
			for _, m := range f.claim(t, later, 10) {
				attempts[m.ID] = m.Attempt
			}
		}
		if attempts[got[1].ID] != 2 || attempts[got[2].ID] != 1 || attempts[got[3].ID] != 2 {
			t.Errorf("attempts: %v", attempts)
		}
		if f.mark(t, later, got[3], outbox.MarkDelivered, later) {
			t.Error("the old claim marked what another has now")
		}
	})
}

func TestWhatAClaimHasIsShownAndNotChanged(t *testing.T) { // O-26
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "b"))
		got := b.claim(t, begin, 1)
		if text := shown(b.list(t, outbox.Filter{})); text != "a/1 claimed, b/1 pending" {
			t.Errorf("got %q", text)
		}
		e := b.list(t, outbox.Filter{States: []outbox.State{outbox.Claimed}})
		if len(e) != 1 || e[0].ClaimedBy != "test" || e[0].Attempts != 1 || !e[0].NextAt.Equal(begin.Add(30*time.Second)) {
			t.Errorf("got %+v", e)
		}
		n, err := b.Retry(t.Context(), begin, outbox.Filter{States: []outbox.State{outbox.Pending}})
		did(t, n, err, 1)
		depths, err := b.Backlog(t.Context())
		if err != nil || len(depths) != 2 && len(depths) != 1 || depths[0].Claimed != 1 {
			t.Errorf("got %+v, %v", depths, err)
		}
		if !b.mark(t, begin, got[0], outbox.MarkDelivered, begin) {
			t.Error("the mark was lost")
		}
	})
}

// What a feed tells of twice is claimed once.
func TestANamedMessageInHandIsNotClaimedAgain(t *testing.T) { // O-16
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "b"))
		named := func() []outbox.ClaimedMessage {
			t.Helper()
			b, err := f.Claim(t.Context(), outbox.Claim{By: "test", Now: begin, Lease: 30 * time.Second, Limit: 10, IDs: []string{id(1), id(2)}})
			if err != nil {
				t.Fatal(err)
			}
			return b.Messages
		}
		got := named()
		if len(got) != 2 {
			t.Fatalf("claimed %s", names(got))
		}
		slices.SortFunc(got, func(a, b outbox.ClaimedMessage) int { return strings.Compare(a.ID, b.ID) })
		wantNames(t, named(), "")
		if !f.mark(t, begin, got[0], outbox.MarkReleased, begin) {
			t.Fatal("the mark was lost")
		}
		wantNames(t, named(), "a/1")
	})
}
