package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// More waits open, and more events are sent, than can be kept in mind.
func TestPairsAreFoundHoweverMuchIsNew(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const waits = 6000
	var writes []store.Write
	for n := range waits {
		w := startOf(n, 10)
		w.Waits = []store.WaitChange{{Step: "w", Row: &ringi.WaitRow{Step: "w", Event: "paid", Key: fmt.Sprint(n), OpenedAt: at}}}
		writes = append(writes, w)
	}
	look := func() []store.Pair {
		t.Helper()
		pairs, err := s.Pairs(t.Context(), store.PairQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return pairs
	}
	send := func(n int) {
		t.Helper()
		if _, err := s.Send(t.Context(), ringi.DefaultTenant, ringi.SentEvent{ID: fmt.Sprint("e-", n), Name: "paid", Key: fmt.Sprint(n), SentAt: at}, at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	send(0) // before its wait
	if pairs := look(); len(pairs) != 0 {
		t.Errorf("%+v before any wait", pairs)
	}
	mustCommit(t, s, writes...)
	for want := 1; want <= 3; want++ {
		for range 2 { // they stay until they are gone
			if pairs := look(); len(pairs) != want || pairs[0].Key != writes[0].Key {
				t.Fatalf("%d pairs, want %d, the oldest event first", len(pairs), want)
			}
		}
		send(want * 1900)
	}
}
