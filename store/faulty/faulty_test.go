package faulty_test

import (
	"errors"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/faulty"
	"github.com/ringiflow/ringi/store/storetest"
)

// A store that never fails passes the suite of drivers like what it wraps.
func TestWithoutFaultsItIsTheStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		m := store.NewMemory(store.MemoryConfig{})
		f := faulty.New(faulty.Config{Store: m, Records: m, Catalog: m, Events: m})
		return storetest.Harness{Store: f, Records: f, Catalog: f, Events: f, Outbox: m.Outbox(), Inspector: m}
	})
}

func startOf(run ringi.RunID) store.Write {
	body := []byte(`{"format":1,"events":[]}`)
	return store.Write{
		Key: store.Key{Tenant: 1, Run: run}, Commit: store.CommitID{1}, First: 1, Last: 1,
		Head: store.Chain(nil, body), Body: body,
		Start: &store.StartRow{Definition: "order", Version: 1, RunRow: ringi.RunRow{Status: ringi.Running}},
	}
}

func TestCommitFailsAsTheScriptSays(t *testing.T) {
	const run = ringi.RunID("0197e000-0000-7000-8000-000000000001")
	key := store.Key{Tenant: 1, Run: run}
	for _, c := range []struct {
		name  string
		fault faulty.Fault
		want  error
		done  bool // right after
		late  bool // after Land
	}{
		{"none", faulty.None, nil, true, true},
		{"unavailable", faulty.Unavailable, store.ErrUnavailable, false, false},
		{"before", faulty.Before, store.ErrDoubt, false, false},
		{"after", faulty.After, store.ErrDoubt, true, true},
		{"late", faulty.Late, store.ErrDoubt, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := store.NewMemory(store.MemoryConfig{})
			f := faulty.New(faulty.Config{Store: m, Records: m, Plan: faulty.Script(faulty.Commit, c.fault)})
			if _, err := f.Commit(t.Context(), startOf(run)); !errors.Is(err, c.want) {
				t.Errorf("answer %v, want %v", err, c.want)
			}
			stands := func() bool {
				_, err := m.Run(t.Context(), key)
				return err == nil
			}
			if got := stands(); got != c.done {
				t.Errorf("done %v, want %v", got, c.done)
			}
			if err := f.Land(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := stands(); got != c.late {
				t.Errorf("done after landing %v, want %v", got, c.late)
			}
		})
	}
}

func TestAnOutageFailsEveryCallUntilItEnds(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{})
	f := faulty.New(faulty.Config{Store: m, Records: m, Catalog: m, Events: m})
	f.Down(true)
	_, commit := f.Commit(t.Context())
	_, claim := f.Claim(t.Context(), store.Claim{Max: 1})
	_, _, runs := f.Runs(t.Context(), ringi.RunQuery{})
	for name, err := range map[string]error{"Commit": commit, "Claim": claim, "Runs": runs} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	f.Down(false)
	if _, err := f.Commit(t.Context()); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

func TestALostPollAnswerLeavesTheTaskLeased(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{})
	f := faulty.New(faulty.Config{Store: m, Plan: faulty.Script(faulty.Claim, faulty.After)})
	w := startOf("0197e000-0000-7000-8000-000000000002")
	row := ringi.TaskRow{Step: "a", Queue: "q", Seq: 1, InputSeq: 1}
	w.Tasks = []store.TaskChange{{Row: &row, Fresh: true}}
	if _, err := f.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	claim := store.Claim{Queue: "q", Max: 1}
	if _, err := f.Claim(t.Context(), claim); !errors.Is(err, store.ErrDoubt) {
		t.Errorf("answer %v, want ErrDoubt", err)
	}
	if got, err := f.Claim(t.Context(), claim); err != nil || len(got) != 0 {
		t.Errorf("handed out again: %+v, %v", got, err)
	}
}

func TestRestoredIsAnotherIncarnation(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{})
	f := faulty.New(faulty.Config{Store: m})
	f.Restored("b")
	if c, err := f.Commit(t.Context()); err != nil || c.Incarnation != "b" {
		t.Errorf("answer %+v, %v, want incarnation b", c, err)
	}
}
