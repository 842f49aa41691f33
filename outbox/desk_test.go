package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// bench is a source with its desk.
type bench struct {
	fixture
	outbox.Desk
}

// eachDesk runs a test on every desk.
func eachDesk(t *testing.T, test func(t *testing.T, b bench)) {
	eachSource(t, func(t *testing.T, f fixture) { test(t, bench{f, f.Source.(outbox.Desk)}) })
}

// did checks how many messages a call changed.
func did(t *testing.T, n int, err error, want int) {
	t.Helper()
	if n != want || err != nil {
		t.Errorf("changed %d, %v, want %d", n, err, want)
	}
}

// shown shows entries by aggregate, number and state.
func shown(list []outbox.Entry) string {
	var s []string
	for _, e := range list {
		s = append(s, fmt.Sprintf("%s/%d %s", e.AggregateID, e.Seq, e.State))
	}
	return strings.Join(s, ", ")
}

func (b bench) list(t *testing.T, f outbox.Filter) []outbox.Entry {
	t.Helper()
	list, err := b.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestADeskShowsEveryMessageAsItStands(t *testing.T) { // O-26
	eachDesk(t, func(t *testing.T, b bench) {
		other := order(3, "b")
		other.Tenant, other.Destination, other.Type = 2, "mail", "order.paid"
		b.put(t, order(1, "a"), order(2, "a"), other)
		got := b.claim(t, begin, 1)[0]
		b.mark(t, begin, got, outbox.MarkDead, begin)
		e := b.list(t, outbox.Filter{States: []outbox.State{outbox.Dead}})
		if len(e) != 1 || !same(e[0].Message, got.Message) || e[0].Attempts != 1 || e[0].LastError != "because" || e[0].ClaimedBy != "" || !e[0].DeliveredAt.IsZero() {
			t.Errorf("got %+v", e)
		}
		for _, tc := range []struct {
			f    outbox.Filter
			want string
		}{
			{outbox.Filter{}, "a/1 dead, a/2 pending, b/1 pending"},
			{outbox.Filter{Tenants: []int64{2, 9}}, "b/1 pending"},
			{outbox.Filter{Destinations: []string{"mail"}}, "b/1 pending"},
			{outbox.Filter{Type: "order.placed", Limit: 1}, "a/1 dead"},
			{outbox.Filter{AggregateType: "Order", AggregateID: "a", After: id(1)}, "a/2 pending"},
			{outbox.Filter{IDs: []string{id(3), "no id"}}, "b/1 pending"},
			{outbox.Filter{IDs: []string{}}, ""},
		} {
			if got := shown(b.list(t, tc.f)); got != tc.want {
				t.Errorf("%+v: got %q, want %q", tc.f, got, tc.want)
			}
		}
	})
}

func TestADeadMessageIsSentAgain(t *testing.T) { // O-26
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "b"), order(3, "c"), order(4, "a"))
		for _, m := range b.claim(t, begin, 3) {
			b.mark(t, begin, m, outbox.MarkDead, begin)
		}
		n, err := b.Retry(t.Context(), begin, outbox.Filter{IDs: []string{id(2)}}) // singly
		did(t, n, err, 1)
		n, err = b.Retry(t.Context(), begin, outbox.Filter{IDs: []string{id(2)}}) // it waits already
		did(t, n, err, 0)
		n, err = b.Retry(t.Context(), begin, outbox.Filter{Limit: 1}) // and in bulk, in pieces
		did(t, n, err, 1)
		n, err = b.Retry(t.Context(), begin, outbox.Filter{})
		did(t, n, err, 1)
		got := b.claim(t, begin, 10)
		if len(got) != 4 || got[0].Attempt != 1 || got[0].Epoch == 0 {
			t.Errorf("claimed %s", names(got))
		}
		at := slices.IndexFunc(got, func(m outbox.ClaimedMessage) bool { return m.ID == id(1) })
		if later := slices.IndexFunc(got, func(m outbox.ClaimedMessage) bool { return m.ID == id(4) }); later < at {
			t.Errorf("claimed %s", names(got))
		}
		if _, err := b.Retry(t.Context(), begin, outbox.Filter{States: []outbox.State{outbox.Claimed}}); err == nil {
			t.Error("what a relay has was taken from it")
		}
	})
}

func TestAParkedMessageHoldsItsKeyUntilAPersonActs(t *testing.T) { // O-22
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "a"), order(3, "b"), order(4, "b"))
		for _, m := range b.claim(t, begin, 4) {
			if m.Seq == 1 {
				b.mark(t, begin, m, outbox.MarkParked, begin)
			} else {
				b.mark(t, begin, m, outbox.MarkReleased, begin)
			}
		}
		b.put(t, order(5, "a"), order(6, "c"))
		at := begin.AddDate(5, 0, 0)
		wantNames(t, b.claim(t, at, 10), "c/1")
		if len(b.claim(t, at.Add(time.Second), 10)) != 0 {
			t.Fatal("a parked key went on by itself")
		}
		want := []outbox.Depth{{Tenant: 1, Pending: 3, Claimed: 1, Parked: 2, Oldest: begin}}
		if got, err := b.Backlog(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if st, err := b.Stats(t.Context()); err != nil || st.Parked != 2 || st.Pending != 3 {
			t.Errorf("got %+v, %v", st, err)
		}
		n, err := b.Retry(t.Context(), at, outbox.Filter{AggregateID: "a"})
		did(t, n, err, 1)
		wantNames(t, b.claim(t, at, 10), "a/1 a/2 a/3") // in order, with what came meanwhile
		n, err = b.Purge(t.Context(), at, outbox.Filter{States: []outbox.State{outbox.Parked}})
		did(t, n, err, 1)
		wantNames(t, b.claim(t, at, 10), "b/2")
	})
}

func TestADeliveredMessageIsSentAgainUnderItsId(t *testing.T) { // O-14, O-20, O-37
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "a"), order(3, "a"))
		for i, m := range b.claim(t, begin, 2) {
			b.mark(t, begin.Add(time.Duration(i)*24*time.Hour), m, outbox.MarkDelivered, begin)
		}
		at := begin.Add(outbox.ResendWithin + time.Hour)
		if _, err := b.Resend(t.Context(), at, outbox.Filter{}); !errors.Is(err, outbox.ErrResendOld) {
			t.Errorf("a delivery of eight days ago: %v", err)
		}
		n, err := b.Resend(t.Context(), at, outbox.Filter{IDs: []string{id(2)}})
		did(t, n, err, 1)
		n, err = b.Resend(t.Context(), at, outbox.Filter{Old: true})
		did(t, n, err, 1)
		got := b.claim(t, at, 10)
		wantNames(t, got, "a/1 a/2 a/3")
		if got[0].ID != id(1) || got[0].Attempt != 1 {
			t.Errorf("got %+v", got[0])
		}
		if n, err := b.Prune(t.Context(), at.AddDate(1, 0, 0), 10); n != 0 || err != nil {
			t.Errorf("pruned %d, %v of what is under way", n, err)
		}
	})
}

func TestADeskDeletesWhatIsOver(t *testing.T) {
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "b"), order(3, "c"))
		got := b.claim(t, begin, 2)
		b.mark(t, begin, got[0], outbox.MarkDead, begin)
		b.mark(t, begin, got[1], outbox.MarkDelivered, begin)
		n, err := b.Purge(t.Context(), begin, outbox.Filter{})
		did(t, n, err, 1)
		n, err = b.Purge(t.Context(), begin, outbox.Filter{States: []outbox.State{outbox.Delivered}})
		did(t, n, err, 1)
		if got := shown(b.list(t, outbox.Filter{})); got != "c/1 pending" {
			t.Errorf("left: %s", got)
		}
		if _, err := b.Purge(t.Context(), begin, outbox.Filter{States: []outbox.State{outbox.Pending}}); err == nil {
			t.Error("what waits to be delivered may be deleted")
		}
	})
}

func TestWhatADeskDidAndWhyIsWrittenDown(t *testing.T) { // O-26
	eachDesk(t, func(t *testing.T, b bench) {
		b.put(t, order(1, "a"), order(2, "b"))
		for _, m := range b.claim(t, begin, 2) {
			b.mark(t, begin, m, outbox.MarkDead, begin)
		}
		at := begin.Add(time.Hour)
		both := []outbox.State{outbox.Dead}
		long := strings.Repeat("ä", outbox.MaxReason)
		for _, do := range []func() (int, error){
			func() (int, error) { return b.Resend(t.Context(), at, outbox.Filter{Reason: "nothing is delivered"}) }, // changes nothing
			func() (int, error) {
				return b.Retry(t.Context(), at, outbox.Filter{IDs: []string{id(1)}, States: both, Reason: "mended\x00"})
			},
			func() (int, error) { return b.Purge(t.Context(), at.Add(time.Second), outbox.Filter{Reason: long}) },
		} {
			if _, err := do(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Changes(t.Context(), 0)
		if err != nil || len(got) != 2 {
			t.Fatalf("%d changes, %v", len(got), err)
		}
		if c := got[0]; c.Verb != "purge" || !strings.HasPrefix(long, c.Reason) || len(c.Reason) != outbox.MaxReason || !slices.Equal(c.Messages, []string{id(2)}) || !c.At.Equal(at.Add(time.Second)) {
			t.Errorf("the latest is %+v", c)
		}
		if c := got[1]; c.Verb != "retry" || c.Reason != "mended" || !slices.Equal(c.Messages, []string{id(1)}) || !c.At.Equal(at) {
			t.Errorf("the first is %+v", c)
		}
		if got, err = b.Changes(t.Context(), 1); err != nil || len(got) != 1 || got[0].Verb != "purge" {
			t.Errorf("one change: %+v, %v", got, err)
		}
	})
}

func TestTheBacklogIsCountedPerDestinationAndTenant(t *testing.T) {
	eachDesk(t, func(t *testing.T, b bench) {
		msgs := []outbox.Message{order(1, "a"), order(2, "b"), order(3, "c"), order(4, "d")}
		msgs[1].Tenant, msgs[2].Destination, msgs[3].Destination = 2, "mail", "mail"
		msgs[3].CreatedAt = begin.Add(time.Second)
		b.put(t, msgs...)
		m := b.claim(t, begin, 1)[0]
		b.mark(t, begin, m, outbox.MarkFailed, begin)
		want := []outbox.Depth{
			{Tenant: 1, Pending: 1, Oldest: begin},
			{Tenant: 2, Pending: 1, Oldest: begin},
			{Destination: "mail", Tenant: 1, Pending: 2, Oldest: begin},
		}
		want[m.Tenant-1].Failing = 1
		if got, err := b.Backlog(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestADestinationThatIsDownHoldsUpNoOther(t *testing.T) { // O-25, O8
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, nil)
		mail := &fakeSink{answer: func(outbox.Message) error { return errDown }}
		post := w.relay(t, func(c *outbox.RelayConfig) { c.Sink, c.Destination = mail, "mail" })
		for n := range 6 { // one aggregate, alternating
			m := order(n, "a")
			if n%2 == 0 {
				m.Destination = "mail"
			}
			w.put(t, m)
		}
		for range 20 {
			if _, err := post.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.drain(t)
			w.now = w.now.Add(5 * time.Second)
		}
		if got := w.taken(); got != "a/2 a/4 a/6" {
			t.Errorf("the destination that is up has %q", got)
		}
		mail.answer = nil
		w.now = w.now.Add(time.Minute)
		for range 5 {
			if _, err := post.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := mail.taken(); got != "a/1 a/3 a/5" {
			t.Errorf("the other has %q", got)
		}
	})
}

func TestAParkingPolicyStopsTheKeyAndSaysSo(t *testing.T) { // O-22
	eachSource(t, func(t *testing.T, f fixture) {
		w := newWorld(t, f, func(c *outbox.RelayConfig) { c.Attempts, c.AfterLast = 3, outbox.Park })
		w.answer = func(m outbox.Message) error {
			if m.ID == id(1) {
				return errBad
			}
			return nil
		}
		w.put(t, order(1, "a"), order(2, "a"), order(3, "b"))
		w.pass(t, time.Hour, 10*time.Second)
		parked := 0
		for _, r := range w.reports {
			parked += r.Parked
		}
		if st := w.stats(t); w.taken() != "b/1" || parked != 1 || st.Parked != 1 || st.Pending != 1 || len(w.calls) > 4 {
			t.Errorf("delivered %q, parked %d, %+v, %d calls", w.taken(), parked, st, len(w.calls))
		}
	})
}
