package feed_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/inbox"
)

// An outage is told at its beginning, once a minute and at its end, of each feed.
func TestTheJournalTellsOfAnOutageOnceAMinute(t *testing.T) {
	var told bytes.Buffer
	now := time.UnixMilli(1_700_000_000_000)
	j := &feed.Journal{Log: slog.New(slog.NewTextHandler(&told, nil)), Now: func() time.Time { return now }}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(told.String()), "\n")
		told.Reset()
		if len(want) == 0 && got[0] == "" {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("told %q, want %q", got, want)
		}
		for i, w := range want {
			if !strings.Contains(got[i], w) {
				t.Errorf("told %s, want %s", got[i], w)
			}
		}
	}
	down := errors.New("refused")
	j.Trouble("a", down)
	j.Observe("a", inbox.Delivery{ID: "m"}, inbox.Failed, down)
	j.Trouble("b", down)
	lines("feed=a", "feed=b")
	now = now.Add(59 * time.Second)
	j.Trouble("a", down)
	lines()
	now = now.Add(time.Second)
	j.Trouble("a", down)
	lines("a feed stands still")
	j.Observe("a", inbox.Delivery{ID: "m"}, inbox.Handled, nil)
	j.Observe("a", inbox.Delivery{ID: "m"}, inbox.Handled, nil)
	lines("a feed goes on")
	j.Observe("a", inbox.Delivery{ID: "m"}, inbox.Poisoned, down)
	j.Observe("a", inbox.Delivery{ID: "m"}, inbox.Poisoned, nil)
	lines("id=m")
}
