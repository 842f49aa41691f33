package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
)

var (
	errDown = errors.New("connection refused")
	errBad  = outbox.Refuse(errors.New("schema mismatch"))
)

// fakeSink is a destination whose answers a test chooses.
type fakeSink struct {
	got    []outbox.Message                                // acknowledged, repeats included
	calls  [][]string                                      // ids of each call
	answer func(outbox.Message) error                      // nil: all is taken
	whole  func(context.Context, []outbox.Message) []error // takes precedence
}

func (s *fakeSink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	var ids []string
	for _, m := range msgs {
		ids = append(ids, m.ID)
	}
	s.calls = append(s.calls, ids)
	if s.whole != nil {
		return s.whole(ctx, msgs)
	}
	failed := map[outbox.Key]bool{}
	results := make([]error, len(msgs))
	for i, m := range msgs {
		switch {
		case m.Seq > 0 && failed[m.Key()]:
			results[i] = outbox.ErrHeld
			continue
		case s.answer != nil:
			results[i] = s.answer(m)
		}
		if results[i] == nil {
			s.got = append(s.got, m)
		} else {
			failed[m.Key()] = true
		}
	}
	return results
}

// taken shows what the destination has, in order.
func (s *fakeSink) taken() string {
	var out []string
	for _, m := range s.got {
		out = append(out, fmt.Sprintf("%s/%d", m.AggregateID, m.Seq))
	}
	return strings.Join(out, " ")
}

// world is a relay with a clock that only the test moves.
type world struct {
	fixture
	*fakeSink
	*outbox.Relay
	now     time.Time
	reports []outbox.Report
}

func newWorld(t *testing.T, f fixture, change func(*outbox.RelayConfig)) *world {
	t.Helper()
	w := &world{fixture: f, fakeSink: &fakeSink{}, now: begin}
	w.Relay = w.relay(t, change)
	return w
}

// relay returns another relay in the same world, such as one after a restart.
func (w *world) relay(t *testing.T, change func(*outbox.RelayConfig)) *outbox.Relay {
	t.Helper()
	cfg := outbox.RelayConfig{
		Source: w.Source, Sink: w.fakeSink, Now: func() time.Time { return w.now },
		Observe: func(r outbox.Report) { w.reports = append(w.reports, r) },
	}
	if change != nil {
		change(&cfg)
	}
	r, err := outbox.NewRelay(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drain calls Round until it has nothing to do.
func (w *world) drain(t *testing.T) {
	t.Helper()
	for range 1000 {
		worked, err := w.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !worked {
			return
		}
	}
	t.Fatal("the relay works for ever")
}

// pass moves the clock on in steps and drains at each.
func (w *world) pass(t *testing.T, total, step time.Duration) {
	t.Helper()
	for end := w.now.Add(total); w.now.Before(end); {
		w.now = w.now.Add(step)
		w.drain(t)
	}
}

func (w *world) stats(t *testing.T) outbox.Stats {
	t.Helper()
	st, err := w.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestARelayDeliversEverythingOnce(t *testing.T) { // O5, O8
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Batch = 3 })
		w.put(t, order(1, "a"), order(2, "b"), order(3, "a"), order(4, "a"), order(5, "a"))
		w.drain(t)
		w.put(t, order(6, "b"))
		w.drain(t)
		if got, want := w.taken(), "a/1 a/2 a/3 b/1 a/4 b/2"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if st := w.stats(t); st != (outbox.Stats{}) {
			t.Errorf("left over: %+v", st)
		}
	})
}

func TestAFailingHeadHoldsItsKeyAndNoOther(t *testing.T) { // O-8
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		tries := 0
		w.answer = func(m outbox.Message) error {
			if m.ID == id(1) {
				if tries++; tries < 3 {
					return errBad
				}
			}
			return nil
		}
		w.put(t, order(1, "a"), order(2, "a"), order(3, "b"))
		w.drain(t)
		w.put(t, order(4, "a"), order(5, "b"))
		w.drain(t)
		if got := w.taken(); got != "b/1 b/2" {
			t.Fatalf("got %q while the head of a fails", got)
		}
		w.pass(t, 5*time.Second, 100*time.Millisecond)
		if got, want := w.taken(), "b/1 b/2 a/1 a/2 a/3"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAMessageRefusedTooOftenIsSetAside(t *testing.T) { // O-8, O-22, O-26
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts = 4 })
		tries := 0
		w.answer = func(m outbox.Message) error {
			if m.ID == id(1) {
				tries++
				return errBad
			}
			return nil
		}
		w.put(t, order(1, "a"), order(2, "a"))
		w.pass(t, time.Minute, time.Second)
		if got := w.taken(); got != "a/2" || tries != 4 {
			t.Errorf("got %q after %d tries, want a/2 after 4", got, tries)
		}
		w.pass(t, 48*time.Hour, time.Hour)
		if st := w.stats(t); st.Dead != 1 {
			t.Errorf("the dead message is not to be seen: %+v", st)
		}
	})
}

func TestABlockingPolicyKeepsTheKeyAndShowsIt(t *testing.T) { // O-22
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts, c.AfterLast = 2, outbox.Block })
		w.answer = func(outbox.Message) error { return errBad }
		w.put(t, order(1, "a"), order(2, "a"))
		w.pass(t, time.Hour, 10*time.Second)
		if st := w.stats(t); st.Dead != 0 || st.Pending != 2 || st.Failing != 1 {
			t.Errorf("got %+v", st)
		}
		if n := len(w.calls); n < 45 || n > 90 {
			t.Errorf("%d tries in an hour, want about one a minute", n)
		}
		w.answer = nil
		w.pass(t, 2*time.Minute, 10*time.Second)
		if got := w.taken(); got != "a/1 a/2" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnOutageBurnsNoAttempts(t *testing.T) { // O-25, O7
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts, c.Batch = 2, 4 })
		w.answer = func(outbox.Message) error { return errDown }
		for n := range 12 {
			w.put(t, order(n, fmt.Sprint("k", n%5)))
		}
		w.pass(t, 10*time.Minute, time.Second)
		if st := w.stats(t); st.Pending != 12 || st.Dead != 0 || st.Failing != 0 {
			t.Fatalf("after the outage: %+v", st)
		}
		if n := len(w.calls); n > 30 {
			t.Errorf("%d calls to a destination that is down", n)
		}
		for _, ids := range w.calls[1:] {
			if len(ids) != 1 {
				t.Fatalf("a probe of %d messages", len(ids))
			}
		}
		w.answer = nil
		w.calls = nil
		w.now = w.now.Add(31 * time.Second)
		w.drain(t)
		if len(w.got) != 12 || len(w.calls) > 5 {
			t.Errorf("delivered %d in %d calls, want 12 at full speed after one probe", len(w.got), len(w.calls))
		}
	})
}

func TestAMessageThatLooksLikeAnOutageStopsOnlyItself(t *testing.T) { // O-23
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts = 3 })
		w.answer = func(m outbox.Message) error {
			if m.ID == id(1) {
				return errDown // it breaks every connection that it is sent on
			}
			return nil
		}
		w.put(t, order(1, "bad"))
		w.pass(t, time.Minute, time.Second) // alone it opens the circuit
		for n := range 50 {
			w.put(t, order(10+n, fmt.Sprint("good", n)))
			w.pass(t, 40*time.Second, time.Second)
			if len(w.got) != n+1 {
				t.Fatalf("message %d has not come through", n)
			}
		}
	})
}

func TestAnExcusedMessageSpendsNoAttempt(t *testing.T) { // O-25
	w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.Attempts = 3 })
	w.answer = func(m outbox.Message) error {
		if m.AggregateID == "a" {
			return outbox.Excuse(errDown)
		}
		return nil
	}
	for n := range 20 {
		w.put(t, order(2*n+1, "b"), order(2*n+2, "a"))
		w.pass(t, time.Minute, time.Second)
	}
	if st := w.stats(t); st.Dead != 0 || st.Failing != 0 || st.Pending != 20 {
		t.Errorf("while a part is down: %+v, want 20 pending and none with a spent attempt", st)
	}
	w.answer = nil
	w.pass(t, time.Minute, time.Second)
	if st := w.stats(t); st.Pending != 0 || st.Dead != 0 {
		t.Errorf("afterwards: %+v, want nothing left", st)
	}
}

// A later message of the excused key must not bring its head to the front again.
// errLate is the answer of a destination that did not answer in time.
var errLate = fmt.Errorf("no answer: %w", context.DeadlineExceeded)

func TestASlowDestinationBurnsNoAttempts(t *testing.T) { // O-25
	w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.Batch, c.Attempts = 64, 5 })
	for i := range 400 {
		w.put(t, order(i+1, fmt.Sprint("k", i)))
	}
	w.whole = func(_ context.Context, msgs []outbox.Message) []error {
		results := make([]error, len(msgs))
		for i := range msgs {
			if i >= 4 {
				results[i] = errLate // it took as many as it could
			}
		}
		return results
	}
	w.pass(t, 10*time.Minute, time.Second)
	if st := w.stats(t); st != (outbox.Stats{}) {
		t.Errorf("left: %+v", st)
	}
}

func TestAMessageThatIsNeverAnsweredIsSetAside(t *testing.T) { // O-22, O-23
	w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.Attempts = 3 })
	silent := map[string]bool{id(2): true, id(3): true}
	w.answer = func(m outbox.Message) error {
		if silent[m.ID] {
			return errLate
		}
		return nil
	}
	for n := range 40 { // others come all the time
		w.put(t, order(n+1, fmt.Sprint("k", n)))
		w.pass(t, time.Second, time.Second)
	}
	if st := w.stats(t); st.Dead != 2 || st.Pending != 0 || len(w.got) != 38 {
		t.Errorf("%d delivered, %+v", len(w.got), st)
	}
}

func TestAProbeTakesAnotherKeyEachTime(t *testing.T) { // O-25, O-28
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		w.answer = func(m outbox.Message) error {
			if m.AggregateID == "a" {
				return outbox.Excuse(errDown)
			}
			return nil
		}
		for n := range 5 {
			w.put(t, order(2*n+1, "a"), order(2*n+2, "b"))
			w.pass(t, 40*time.Second, 2*time.Second)
			if st := w.stats(t); st.Pending != int64(n+1) || len(w.got) != n+1 {
				t.Fatalf("round %d: %+v with %d delivered, want only the excused ones left", n, st, len(w.got))
			}
		}
	})
}

func TestTheSameIdIsSentAtEveryTry(t *testing.T) { // O-14, O-11
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		first := w.put
		first(t, order(1, "a"))
		w.answer = func(outbox.Message) error { return errBad }
		w.pass(t, 20*time.Second, time.Second)
		w.answer = nil
		w.pass(t, time.Minute, time.Second)
		for _, ids := range w.calls {
			if !slices.Equal(ids, []string{id(1)}) {
				t.Errorf("sent %v", ids)
			}
		}
		if len(w.calls) < 3 || len(w.got) != 1 {
			t.Errorf("%d tries, %d delivered", len(w.calls), len(w.got))
		}
	})
}

func TestAHeadWithMoreAttemptsThanThereAreNowKeepsItsKeyInOrder(t *testing.T) { // O-8, O-22
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(cfg *outbox.RelayConfig) { cfg.AfterLast, cfg.Attempts = outbox.Block, 2 })
		w.put(t, order(1, "a"), order(2, "a"))
		bad := func(m outbox.Message) error {
			if m.Seq == 1 {
				return errBad
			}
			return nil
		}
		w.answer = bad
		w.pass(t, 10*time.Minute, 10*time.Second)
		w.Relay = w.relay(t, func(cfg *outbox.RelayConfig) { cfg.AfterLast, cfg.Attempts = outbox.Park, 2 })
		w.pass(t, 10*time.Minute, 10*time.Second)
		list, err := f.Source.(outbox.Desk).List(t.Context(), outbox.Filter{})
		if err != nil || len(list) != 2 || list[0].State != outbox.Parked || list[1].State != outbox.Pending || w.taken() != "" {
			t.Errorf("sent %q, left %+v, %v", w.taken(), list, err)
		}
		if !strings.Contains(list[0].LastError, "schema mismatch") {
			t.Errorf("the destination's answer became %q", list[0].LastError)
		}
	})
}

// stopped is a source whose process dies at a named place.
type stopped struct {
	outbox.Source
	at string
}

var errKilled = errors.New("killed")

func (s *stopped) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	b, err := s.Source.Claim(ctx, c)
	if s.at == "after claim" && len(b.Messages) > 0 {
		return outbox.Batch{}, errKilled
	}
	return b, err
}

func (s *stopped) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	if s.at == "before mark" {
		return 0, errKilled
	}
	n, err := s.Source.Mark(ctx, at, marks)
	if s.at == "after mark" {
		return 0, errKilled
	}
	return n, err
}

func TestACrashRepeatsMessagesAndLosesNone(t *testing.T) { // O7, O-11
	for place, repeats := range map[string]int{"after claim": 0, "before mark": 3, "after mark": 0} {
		t.Run(place, func(t *testing.T) {
			eachSource(t, func(t *testing.T, f fixture) {
				w := newWorld(t, f, nil)
				dying := w.relay(t, func(c *outbox.RelayConfig) { c.Source = &stopped{f.Source, place} })
				w.put(t, order(1, "a"), order(2, "a"), order(3, "b"))
				if _, err := dying.Round(t.Context()); !errors.Is(err, errKilled) {
					t.Fatalf("got %v", err)
				}
				w.drain(t) // a new process; the old one's claims still hold
				w.pass(t, time.Minute, time.Second)
				count := map[string]int{}
				for _, m := range w.got {
					count[m.ID]++
				}
				if len(count) != 3 || len(w.got) != 3+repeats {
					t.Errorf("delivered %v, want all three and %d repeats", count, repeats)
				}
				if st := w.stats(t); st != (outbox.Stats{}) {
					t.Errorf("left over: %+v", st)
				}
			})
		})
	}
}

func TestAMarkThatFailedIsWrittenBeforeAnythingElse(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		src := &stopped{f.Source, "before mark"}
		w.Relay = w.relay(t, func(c *outbox.RelayConfig) { c.Source = src })
		w.put(t, order(1, "a"))
		for range 3 { // the database is away
			if _, err := w.Round(t.Context()); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
		}
		src.at = ""
		w.pass(t, 2*time.Minute, 10*time.Second)
		if len(w.calls) != 1 {
			t.Errorf("sent %d times, want once", len(w.calls))
		}
	})
}

func TestARelayThatSleptPastItsLeaseMarksNothing(t *testing.T) { // O-16
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		w.put(t, order(1, "a"))
		zombie := w.relay(t, func(c *outbox.RelayConfig) {
			c.Sink = &fakeSink{whole: func(_ context.Context, msgs []outbox.Message) []error {
				w.now = w.now.Add(time.Minute) // frozen while publishing
				w.answer = func(outbox.Message) error { return errBad }
				w.drain(t) // meanwhile the other relay has it and fails
				return []error{nil}
			}}
		})
		if _, err := zombie.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last := w.reports[len(w.reports)-1]; last.Lost != 1 {
			t.Errorf("got %+v, want one lost mark", last)
		}
		if st := w.stats(t); st.Pending != 1 || st.Failing != 1 {
			t.Errorf("the late mark changed the row: %+v", st)
		}
	})
}

func TestAMessageThatKillsTheProcessDiesAlone(t *testing.T) { // O-17
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts = 3 })
		kills := 0
		w.whole = func(_ context.Context, msgs []outbox.Message) []error {
			for _, m := range msgs {
				if m.ID == id(5) {
					kills++
					panic("out of memory")
				}
			}
			w.got = append(w.got, msgs...)
			return make([]error, len(msgs))
		}
		for n := range 10 {
			w.put(t, order(n, fmt.Sprint(n)))
		}
		for range 600 {
			if _, err := w.Round(t.Context()); err != nil {
				// A new process, which knows nothing.
				w.Relay = w.relay(t, func(c *outbox.RelayConfig) { c.Attempts = 3 })
			}
			w.now = w.now.Add(time.Second)
		}
		if !slices.ContainsFunc(w.reports, func(r outbox.Report) bool { return r.Dead == 1 && r.Refused != nil }) {
			t.Error("nobody hears why it was set aside")
		}
		if st := w.stats(t); st.Dead != 1 || len(w.got) != 9 || kills != 3 {
			t.Errorf("%d kills, %d delivered, %+v, want 3, 9 and one dead", kills, len(w.got), st)
		}
	})
}

func TestASinkThatBreaksItsContractIsNotBelieved(t *testing.T) {
	for name, whole := range map[string]func(context.Context, []outbox.Message) []error{
		"too few answers":    func(context.Context, []outbox.Message) []error { return nil },
		"held behind nobody": func(context.Context, []outbox.Message) []error { return []error{outbox.ErrHeld} },
	} {
		w := newWorld(t, inMemory(), nil)
		w.whole = whole
		w.put(t, order(1, "a"))
		if _, err := w.Round(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if st := w.stats(t); st.Claimed != 1 {
			t.Errorf("%s: %+v, want the message left to its lease", name, st)
		}
	}
}

// memory returns the reference source.
func inMemory() fixture {
	m := new(memory.Outbox)
	return fixture{Source: m, insert: m.Insert}
}

func TestAShutdownWhilePublishingKeepsWhatIsKnown(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		ctx, cancel := context.WithCancel(t.Context())
		w.whole = func(ctx context.Context, msgs []outbox.Message) []error {
			cancel()
			return []error{nil, ctx.Err()}
		}
		w.put(t, order(1, "a"), order(2, "b"))
		if _, err := w.Round(ctx); err != nil {
			t.Fatal(err)
		}
		if st := w.stats(t); st.Pending != 1 || st.Claimed != 0 || st.Failing != 0 {
			t.Errorf("got %+v, want one given back without an attempt", st)
		}
		w.whole = nil
		if w.drain(t); w.taken() != "b/1" {
			t.Errorf("got %q; no circuit should be open", w.taken())
		}
	})
}

func TestPublishingEndsBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.Lease = time.Minute })
		w.whole = func(ctx context.Context, msgs []outbox.Message) []error {
			<-ctx.Done() // a destination that never answers
			return []error{ctx.Err()}
		}
		w.put(t, order(1, "a"))
		start := time.Now()
		w.drain(t)
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("publishing was given %s of a lease of a minute", took)
		}
		if st := w.stats(t); st.Pending != 1 || st.Failing != 0 {
			t.Errorf("got %+v, want the message given back", st)
		}
	})
}

func TestDeliveredRowsAreKeptThenGo(t *testing.T) { // O-5, O-19: message and state are one row
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.PruneChunk = 2; c.Retention = time.Hour })
		for n := range 5 {
			w.put(t, order(n, "a"))
		}
		w.drain(t)
		pruned := func() (total int) {
			for _, r := range w.reports {
				if r.Pruned > 2 {
					t.Errorf("a chunk of %d", r.Pruned)
				}
				total += r.Pruned
			}
			return total
		}
		w.pass(t, time.Hour, time.Minute)
		if n := pruned(); n != 0 {
			t.Errorf("%d went before their time", n)
		}
		w.pass(t, 2*time.Minute, time.Minute)
		if n := pruned(); n != 5 {
			t.Errorf("%d went, want 5", n)
		}
	})
}

func TestAReportSaysWhatARoundDid(t *testing.T) {
	w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.Attempts = 1 })
	w.answer = func(m outbox.Message) error {
		if m.AggregateID == "bad" {
			return errBad
		}
		return nil
	}
	w.put(t, order(1, "bad"), order(2, "bad"), order(3, "good"))
	if _, err := w.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []outbox.Report{{At: begin, Claimed: 3, Delivered: 1, Dead: 1, Released: 1, Refused: errBad}}
	if !slices.Equal(w.reports, want) {
		t.Errorf("got %+v, want %+v", w.reports, want)
	}
	w.answer = func(outbox.Message) error { return errDown }
	w.drain(t)
	if r := w.reports[len(w.reports)-1]; !errors.Is(r.Down, errDown) || !r.Until.Equal(begin.Add(time.Second)) {
		t.Errorf("got %+v, want down for a second", r)
	}
}

func TestARelayRefusesAConfigThatCannotWork(t *testing.T) {
	for name, cfg := range map[string]outbox.RelayConfig{
		"no sink":        {Source: new(memory.Outbox)},
		"no source":      {Sink: &fakeSink{}},
		"unknown policy": {Source: new(memory.Outbox), Sink: &fakeSink{}, AfterLast: 9},
	} {
		if _, err := outbox.NewRelay(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
