package outbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

var errOwn = outbox.Blame(errors.New("answered 500"))

// bad answers for messages of one aggregate with an error, and takes all others.
func bad(aggregate string, err error) func(outbox.Message) error {
	return func(m outbox.Message) error {
		if m.AggregateID == aggregate {
			return err
		}
		return nil
	}
}

func (w *world) entry(t *testing.T, id string) outbox.Entry {
	t.Helper()
	list, err := w.Source.(outbox.Desk).List(t.Context(), outbox.Filter{IDs: []string{id}})
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %+v, %v", id, list, err)
	}
	return list[0]
}

func TestTheOnlyMessageThatADestinationAnswersWithAnErrorIsSetAsideInTheEnd(t *testing.T) { // O-22
	for policy, want := range map[outbox.Policy]outbox.State{outbox.DeadLetter: outbox.Dead, outbox.Park: outbox.Parked} {
		w := newWorld(t, inMemory(), func(c *outbox.RelayConfig) { c.AfterLast = policy })
		w.answer = bad("poison", errOwn)
		m := order(1, "poison")
		w.put(t, m)
		w.pass(t, 50*time.Minute, 10*time.Second)
		if e := w.entry(t, m.ID); e.State != outbox.Pending || e.Attempts != 0 {
			t.Errorf("an outage may last as long: %s after %d attempts", e.State, e.Attempts)
		}
		w.pass(t, 30*time.Minute, 10*time.Second)
		e := w.entry(t, m.ID)
		if e.State != want || e.Attempts != outbox.DefaultAttempts || !strings.Contains(e.LastError, "500") {
			t.Errorf("%s after %d attempts: %s", e.State, e.Attempts, e.LastError)
		}
	}
}

func TestADestinationThatAnswersNothingBurnsNoAttemptHoweverLong(t *testing.T) { // O-25
	for _, messages := range []int{1, 5} {
		w := newWorld(t, inMemory(), nil)
		w.answer = func(outbox.Message) error { return errDown }
		if messages > 1 { // that answers errors to all is down as well
			w.answer = func(outbox.Message) error { return errOwn }
		}
		for n := range messages {
			w.put(t, order(n, fmt.Sprint("k", n)))
		}
		w.pass(t, 3*24*time.Hour, 25*time.Second)
		if st := w.stats(t); st.Pending != int64(messages) || st.Failing != 0 {
			t.Errorf("%d messages: %+v", messages, st)
		}
		w.answer = nil
		w.pass(t, time.Minute, time.Second)
		if got := len(w.got); got != messages {
			t.Errorf("%d of %d delivered afterwards", got, messages)
		}
	}
}

func TestAMessageThatFailsBesideOthersThatGoThroughIsSetAsideAlthoughItIsAlwaysAlone(t *testing.T) { // O-22
	for name, err := range map[string]error{"answered": errOwn, "breaks the connection": errDown} {
		w := newWorld(t, inMemory(), nil)
		w.answer = bad("poison", err)
		m := order(0, "poison")
		w.put(t, m)
		w.drain(t)
		for n := range 200 { // others come now and then
			w.pass(t, 15*time.Second, 5*time.Second)
			if w.entry(t, m.ID).State == outbox.Dead {
				break
			}
			w.put(t, order(n+1, "good"))
		}
		if e := w.entry(t, m.ID); e.State != outbox.Dead || e.Attempts != outbox.DefaultAttempts {
			t.Errorf("%s: %s after %d attempts", name, e.State, e.Attempts)
		}
	}
}

func TestAMessageThatFailedFirstBesideOthersIsDoubtedForLess(t *testing.T) { // O-22
	w := newWorld(t, inMemory(), nil)
	w.answer = bad("poison", errOwn)
	m := order(1, "poison")
	w.put(t, order(0, "good"), m)
	w.pass(t, 20*time.Minute, 5*time.Second)
	if e := w.entry(t, m.ID); e.State != outbox.Dead {
		t.Errorf("%s after %d attempts", e.State, e.Attempts)
	}
}

func TestABrokenConnectionChargesOnlyTheFirstThatGotNoAnswer(t *testing.T) { // O-25
	w := newWorld(t, inMemory(), nil)
	for n := range 6 {
		w.put(t, order(n, fmt.Sprint("k", n)))
	}
	broken := false
	w.answer = func(m outbox.Message) error {
		if broken = broken || m.AggregateID == "k2"; broken {
			return errDown
		}
		return nil
	}
	if _, err := w.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		e := w.entry(t, order(n, "").ID)
		want := map[bool]int{true: 1}[n <= 2]
		if e.Attempts != want {
			t.Errorf("message %d has spent %d attempts, want %d", n, e.Attempts, want)
		}
	}
}

func TestARelayLooksAtOnceWhenAnotherGotThrough(t *testing.T) {
	w := newWorld(t, inMemory(), nil)
	fleet := w.Source.(outbox.Fleet)
	with := func(c *outbox.RelayConfig) { c.Fleet = fleet }
	first, second := w.relay(t, with), w.relay(t, with)
	round := func(r *outbox.Relay) {
		t.Helper()
		for range 3 {
			if _, err := r.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 { // until each has its half
		round(first)
		round(second)
		w.now = w.now.Add(10 * time.Second)
	}
	for n := range 200 {
		w.put(t, order(n, fmt.Sprint("k", n)))
	}
	w.answer = func(outbox.Message) error { return errDown }
	for range 10 { // both look twice a minute now
		round(first)
		round(second)
		w.now = w.now.Add(31 * time.Second)
	}
	round(first)
	w.now = w.now.Add(16 * time.Second)
	round(second) // and looks again in half a minute
	w.now = w.now.Add(15 * time.Second)
	w.answer = nil
	round(first)
	got := len(w.got)
	if got == 0 {
		t.Fatal("the first did not look")
	}
	w.now = w.now.Add(1500 * time.Millisecond)
	round(second)
	if len(w.got) == got {
		t.Error("the second waits for its own circuit")
	}
	round(first)
	round(second)
	if left := w.stats(t); left.Pending+left.Claimed != 0 {
		t.Errorf("%+v are left", left)
	}
}
