package outbox_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// many returns so many messages, each of a key of its own.
func many(n int) []outbox.Message {
	msgs := make([]outbox.Message, n)
	for i := range msgs {
		msgs[i] = written(i, fmt.Sprint("k", i))
	}
	return msgs
}

func (f fixture) stats(t *testing.T) outbox.Stats {
	t.Helper()
	st, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestTheNextBatchIsClaimedWhileOneIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{}
		f.put(t, many(6)...)
		var claimed []int64
		sink.whole = func(_ context.Context, msgs []outbox.Message) []error {
			elapse(time.Millisecond)
			claimed = append(claimed, f.stats(t).Claimed)
			return make([]error, len(msgs))
		}
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Batch: 2})
		elapse(time.Second)
		stop()
		if !slices.Equal(claimed, []int64{4, 4, 2}) || f.stats(t) != (outbox.Stats{}) {
			t.Errorf("%v claimed while publishing, then %+v", claimed, f.stats(t))
		}
	})
}

func TestMessagesOfOneKeyAreNeverClaimedAheadNorSetBack(t *testing.T) { // O8
	synctest.Test(t, func(t *testing.T) {
		f, sink, want := inMemory(), &fakeSink{}, ""
		for n := range 40 {
			f.put(t, written(n, "a"))
			want += fmt.Sprintf(" a/%d", n+1)
		}
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Batch: 2})
		elapse(time.Millisecond)
		stop()
		if got := sink.taken(); " "+got != want {
			t.Errorf("got %q", got)
		}
	})
}

func TestWhatWasClaimedAheadOfAnOutageIsGivenBack(t *testing.T) { // O-25
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{answer: func(outbox.Message) error { return errDown }}
		f.put(t, many(6)...)
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Batch: 2})
		elapse(time.Millisecond)
		if st := f.stats(t); len(sink.calls) != 1 || st.Pending != 6 || st.Failing != 0 {
			t.Errorf("%d calls, %+v", len(sink.calls), st)
		}
		stop()
	})
}

func TestARelayThatStopsGivesBackWhatItClaimedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{}
		f.put(t, many(6)...)
		sink.whole = func(ctx context.Context, msgs []outbox.Message) []error {
			<-ctx.Done()
			return make([]error, len(msgs))
		}
		var released int
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Batch: 2, Observe: func(r outbox.Report) { released += r.Released }})
		elapse(time.Millisecond)
		stop()
		if st := f.stats(t); st.Pending != 4 || st.Claimed != 0 || st.Failing != 0 || released != 2 {
			t.Errorf("%+v, %d released", st, released)
		}
	})
}

func TestABatchThatWaitedTooLongIsGivenBackAndClaimedAnew(t *testing.T) { // O-16
	synctest.Test(t, func(t *testing.T) {
		f, sink := inMemory(), &fakeSink{}
		f.put(t, many(6)...)
		sink.whole = func(_ context.Context, msgs []outbox.Message) []error {
			elapse(10 * time.Second)
			return make([]error, len(msgs))
		}
		var released, lost int
		stop := begun(t, outbox.RelayConfig{Source: f, Sink: sink, Batch: 2, Observe: func(r outbox.Report) {
			released, lost = released+r.Released, lost+r.Lost
		}})
		elapse(time.Minute)
		stop()
		if f.stats(t) != (outbox.Stats{}) || len(sink.calls) != 3 || released == 0 || lost != 0 {
			t.Errorf("%d calls, %d released, %d lost, then %+v", len(sink.calls), released, lost, f.stats(t))
		}
	})
}

func TestAClaimAheadLeavesSuspectsAndWhatWaitsForItsHead(t *testing.T) { // O8, O-17
	eachSource(t, func(t *testing.T, f fixture) {
		ahead := func(now time.Time) []outbox.ClaimedMessage {
			t.Helper()
			b, err := f.Claim(t.Context(), outbox.Claim{By: "test", Now: now, Lease: 30 * time.Second, Limit: 10, Ahead: true})
			if err != nil {
				t.Fatal(err)
			}
			return b.Messages
		}
		f.put(t, order(1, "a"), order(2, "a"))
		first := f.claim(t, begin, 1)
		wantNames(t, first, "a/1")
		wantNames(t, ahead(begin), "")
		if !f.mark(t, begin, first[0], outbox.MarkDelivered, begin) {
			t.Fatal("the mark was lost")
		}
		wantNames(t, f.claim(t, begin, 10), "a/2") // at once
		late := begin.Add(time.Minute)
		f.put(t, order(3, "b"))
		wantNames(t, ahead(late), "b/1")
		wantNames(t, f.claim(t, late, 10), "a/2")
	})
}
