package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// starts is an engine that remembers what it was asked to start.
type starts struct {
	got  []outbox.RunStart
	fail error
}

func (s *starts) start(_ context.Context, r outbox.RunStart) error {
	s.got = append(s.got, r)
	return s.fail
}

func TestARunStartTravelsInTheTransactionOfTheChange(t *testing.T) { // O10
	s := dialectSQLite.unit(t)
	m, err := outbox.StartRun(outbox.RunStart{Definition: "order", Version: 2, Input: json.RawMessage(`{"n":9007199254740993}`), Tenant: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), s.reserve("a")); err != nil {
		t.Fatal(err)
	}
	engine := &starts{}
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: sqlite.New(s.db), Sink: &outbox.Runs{Start: engine.start}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relay.Round(t.Context()); err != nil || len(engine.got) != 1 {
		t.Fatalf("%d starts, %v", len(engine.got), err)
	}
	if r := engine.got[0]; r.Definition != "order" || r.Version != 2 || string(r.Input) != `{"n":9007199254740993}` || r.Tenant != 3 || r.ID != id(1) || r.Key != id(1) {
		t.Errorf("got %+v", r)
	}
}

func TestTheStartKeyIsTheStartsOwnElseTheDefinitionsElseTheMessages(t *testing.T) {
	engine := &starts{}
	sink := &outbox.Runs{Start: engine.start, HasKey: func(_ context.Context, r outbox.RunStart) (bool, error) {
		if r.Definition == "away" {
			return false, errDown
		}
		return r.Definition == "keyed", nil
	}}
	for n, tc := range []struct {
		start outbox.RunStart
		want  string
	}{
		{outbox.RunStart{Definition: "keyed", Key: "k"}, "k"},
		{outbox.RunStart{Definition: "keyed"}, ""},
		{outbox.RunStart{Definition: "plain"}, id(2)},
	} {
		m, err := outbox.StartRun(tc.start)
		if err != nil {
			t.Fatal(err)
		}
		m.ID = id(n)
		if !taken(sink.Publish(t.Context(), []outbox.Message{m})) || engine.got[n].Key != tc.want {
			t.Errorf("%+v: key %q, want %q", tc.start, engine.got[n].Key, tc.want)
		}
	}
	m, err := outbox.StartRun(outbox.RunStart{Definition: "away"})
	if err != nil {
		t.Fatal(err)
	}
	if got := sink.Publish(t.Context(), []outbox.Message{m}); !errors.Is(got[0], errDown) || outbox.Refused(got[0]) {
		t.Errorf("the engine is away: %v", got[0])
	}
}

func TestWhatStartsNoRunIsRefused(t *testing.T) {
	for _, s := range []outbox.RunStart{{}, {Definition: "a", Input: json.RawMessage(`{`)}} {
		if _, err := outbox.StartRun(s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	sink := &outbox.Runs{Start: (&starts{}).start}
	other := order(1, "a")
	broken := order(2, "a")
	broken.Type, broken.Payload = outbox.RunStartType, []byte("{")
	for _, m := range []outbox.Message{other, broken} {
		if got := sink.Publish(t.Context(), []outbox.Message{m}); !outbox.Refused(got[0]) {
			t.Errorf("%s: %v", m.ID, got[0])
		}
	}
}

func TestEventsGoToRunsInTheOrderOfTheirKey(t *testing.T) { // O-8
	var mu sync.Mutex
	sent := map[string][]string{}
	sink := &outbox.Runs{Start: (&starts{}).start, Send: func(_ context.Context, m *outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if m.AggregateID == "b" && m.Seq == 2 {
			return errDown
		}
		sent[m.AggregateID] = append(sent[m.AggregateID], m.ID)
		return nil
	}}
	var msgs []outbox.Message
	for n := range 60 {
		m := order(n, []string{"a", "b", "c"}[n%3])
		m.Seq = int64(n/3 + 1)
		msgs = append(msgs, m)
	}
	results := sink.Publish(t.Context(), msgs)
	for n, err := range results {
		want := error(nil)
		switch {
		case n%3 == 1 && n/3 == 1:
			want = errDown
		case n%3 == 1 && n/3 > 1:
			want = outbox.ErrHeld
		}
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("message %d: %v, want %v", n, err, want)
		}
	}
	for key, want := range map[string]int{"a": 20, "b": 1, "c": 20} {
		if !slices.IsSorted(sent[key]) || len(sent[key]) != want {
			t.Errorf("%s: %d in the order %v", key, len(sent[key]), sent[key])
		}
	}
}
