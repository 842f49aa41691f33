package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
)

// script is a feed that a test tells what to say.
type script struct {
	mu      sync.Mutex
	hint    func()
	queue   []string
	gap     bool
	settled []string
	parts   []outbox.Partition
	left    bool
}

func (s *script) Join(_ string, hint func()) outbox.Lane {
	s.hint = hint
	return s
}

func (s *script) Take(parts []outbox.Partition, limit int) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(limit, len(s.queue))
	ids, gap := s.queue[:n:n], s.gap
	s.queue, s.gap, s.parts = s.queue[n:], false, parts
	return ids, gap
}

func (s *script) Settle(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, ids...)
}

func (s *script) Leave() { s.left = true }

// tell says that messages were committed.
func (s *script) tell(ns ...int) {
	s.mu.Lock()
	for _, n := range ns {
		s.queue = append(s.queue, id(n))
	}
	s.mu.Unlock()
	s.hint()
}

// seen lets what the test has read be written again.
func (s *script) seen() { s.Settle(nil) }

// settles tells whether the feed may forget exactly these.
func (s *script) settles(ns ...int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := make([]string, len(ns))
	for i, n := range ns {
		want[i] = id(n)
	}
	got := slices.Clone(s.settled)
	slices.Sort(got)
	return slices.Equal(slices.Compact(got), want)
}

// fedRelay is a relay with a feed in the bubble, idle for an hour.
func fedRelay(t *testing.T, sink *fakeSink, change func(*outbox.RelayConfig)) (f fixture, feed *script, stop func()) {
	t.Helper()
	f, feed = fixtureInMemory(), &script{}
	cfg := outbox.RelayConfig{Source: f, Sink: sink, Feed: feed, PollMost: time.Hour}
	if change != nil {
		change(&cfg)
	}
	stop = begun(t, cfg)
	elapse(time.Hour + time.Minute)
	return f, feed, stop
}

func fixtureInMemory() fixture {
	m := new(memory.Outbox)
	return fixture{Source: m, insert: m.Insert}
}

func TestWhatAFeedTellsOfIsDeliveredAtOnce(t *testing.T) { // O6
	synctest.Test(t, func(t *testing.T) {
		sink, fed := &fakeSink{}, 0
		f, feed, stop := fedRelay(t, sink, func(c *outbox.RelayConfig) {
			c.Observe = func(r outbox.Report) { fed += r.Fed }
		})
		f.put(t, written(1, "a"), written(2, "b"))
		feed.tell(1, 2)
		synctest.Wait() // no time passes
		if sink.taken() != "a/1 b/1" || fed != 2 || !feed.settles(1, 2) {
			t.Errorf("got %q, %d told by the feed, settled %v", sink.taken(), fed, feed.settled)
		}
		stop()
		if !feed.left {
			t.Error("a relay that stopped still listens")
		}
	})
}

// O-8: the rules of a claim stand above the feed: an earlier message of the key that
// it did not tell of goes first.
func TestWhatAFeedForgotGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{}
		f, feed, stop := fedRelay(t, sink, nil)
		f.put(t, written(1, "a"), written(2, "a"), written(3, "a"), written(4, "b"))
		feed.tell(3)
		elapse(time.Second)
		if got := sink.taken(); got != "a/1 a/2 a/3" {
			t.Errorf("got %q; what nobody told of waits for a poll", got)
		}
		feed.seen()
		elapse(time.Hour)
		if got := sink.taken(); got != "a/1 a/2 a/3 b/1" {
			t.Errorf("got %q after a poll", got)
		}
		stop()
	})
}

func TestAFeedThatSaysLittleMakesTheRelayPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{}
		f, feed, stop := fedRelay(t, sink, func(c *outbox.RelayConfig) { c.Batch = 3 })
		for n := 1; n <= 20; n++ {
			f.put(t, written(n, "k"))
		}
		feed.gap = true
		feed.hint()
		synctest.Wait()
		if got := len(sink.got); got != 20 {
			t.Errorf("%d of 20 delivered", got)
		}
		stop()
	})
}

// A commit stands in the log a moment before others see it.
func TestAMessageThatCannotBeSeenYetIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fakeSink{}
		f, feed, stop := fedRelay(t, sink, nil)
		feed.tell(1)
		elapse(15 * time.Millisecond)
		f.put(t, written(1, "a"))
		elapse(30 * time.Millisecond)
		if got := sink.taken(); got != "a/1" {
			t.Errorf("got %q", got)
		}
		feed.tell(9) // never seen at all
		elapse(time.Second)
		if !feed.settles(1, 9) {
			t.Errorf("settled %v: what never shows holds the log for ever", feed.settled)
		}
		stop()
	})
}

// A destination that is down leaves everything to polling, and is not asked for each
// message that the feed tells of.
func TestAFeedIsNotHeardWhileTheDestinationIsDown(t *testing.T) { // O7
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		sink := &fakeSink{answer: func(outbox.Message) error {
			if up.Load() {
				return nil
			}
			return errDown
		}}
		f, feed, stop := fedRelay(t, sink, func(c *outbox.RelayConfig) { c.PollMost = time.Second })
		for n := 1; n <= 50; n++ {
			f.put(t, written(n, "a"))
			feed.tell(n)
			elapse(10 * time.Millisecond)
		}
		if len(sink.calls) > 3 {
			t.Errorf("%d calls of a destination that is down", len(sink.calls))
		}
		feed.mu.Lock()
		if len(feed.queue) > 0 {
			t.Errorf("%d messages wait in the feed", len(feed.queue))
		}
		feed.mu.Unlock()
		up.Store(true)
		elapse(time.Minute)
		if got := len(sink.got); got != 50 {
			t.Errorf("%d of 50 delivered", got)
		}
		stop()
	})
}

// A backlog and what is new take turns.
func TestABacklogDoesNotWaitForWhatIsNew(t *testing.T) { // O-28
	synctest.Test(t, func(t *testing.T) {
		f, feed := fixtureInMemory(), &script{}
		for n := 1; n <= 20; n++ {
			f.put(t, written(n, "old"))
		}
		next, old := 100, 0
		sink := &fakeSink{}
		sink.answer = func(m outbox.Message) error {
			if m.AggregateID == "old" {
				old++
			}
			if next < 130 { // there is always something new
				next++
				f.put(t, written(next, "new"))
				feed.tell(next)
			}
			return nil
		}
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Feed: feed, Batch: 2, PollMost: time.Hour})
		elapse(time.Second)
		if len(sink.got) != 50 || old != 20 {
			t.Fatalf("%d delivered, %d of the backlog", len(sink.got), old)
		}
		last := slices.IndexFunc(sink.got, func(m outbox.Message) bool { return m.AggregateID == "old" && m.Seq == 20 })
		first := slices.IndexFunc(sink.got, func(m outbox.Message) bool { return m.AggregateID == "new" })
		if first > 10 || last == len(sink.got)-1 {
			t.Errorf("the first new one came at %d, the last of the backlog at %d of %d", first, last, len(sink.got))
		}
		stop()
	})
}

// Where one full batch follows the other, the feed need not remember anything, and
// nothing that it told of is forgotten.
func TestABacklogIsLeftToPolling(t *testing.T) { // O-34
	synctest.Test(t, func(t *testing.T) {
		f, feed, most := fixtureInMemory(), &script{}, 0
		told := make([]int, 100)
		for n := range told {
			told[n] = n + 1
			f.put(t, written(n+1, fmt.Sprint("k", n)))
		}
		sink := &fakeSink{}
		sink.answer = func(outbox.Message) error {
			switch n := len(sink.got); {
			case n == 0:
				feed.tell(told...)
			case n > 10:
				feed.mu.Lock()
				most = max(most, len(feed.queue))
				feed.mu.Unlock()
			}
			return nil
		}
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Feed: feed, Batch: 4, PollMost: time.Hour})
		elapse(time.Second)
		if len(sink.got) != 100 || most > 0 || !feed.settles(told...) {
			t.Errorf("%d delivered, %d waited in the feed, %d settled", len(sink.got), most, len(feed.settled))
		}
		stop()
	})
}

func TestAClaimOfNamedMessagesTakesNoOthers(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		if strings.HasSuffix(t.Name(), "sqlite") || strings.HasSuffix(t.Name(), "mysql") {
			return // no feed tells it anything
		}
		other := order(6, "c")
		other.Destination = "elsewhere"
		f.put(t, order(1, "a"), order(2, "a"), order(3, "b"), order(4, "b"), order(5, "c"), other)
		named := func(ns ...int) string {
			c := outbox.Claim{By: "test", Now: begin, Lease: 30 * time.Second, Limit: 10}
			for _, n := range ns {
				c.IDs = append(c.IDs, id(n))
			}
			b, err := f.Claim(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return names(b.Messages)
		}
		for _, tc := range []struct {
			ask  []int
			want string
		}{
			{[]int{5, 6, 77}, "c/1"},    // not of another destination
			{[]int{2}, "a/1"},           // the earlier one first
			{[]int{1, 2}, ""},           // a/1 is claimed, so a/2 waits
			{[]int{3, 4, 5}, "b/1 b/2"}, // c/1 is claimed
		} {
			if got := named(tc.ask...); got != tc.want {
				t.Errorf("asked for %v: claimed %q, want %q", tc.ask, got, tc.want)
			}
		}
	})
}
