package store_test

import (
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		m := store.NewMemory(store.MemoryConfig{})
		return storetest.Harness{Store: m, Records: m, Catalog: m, Events: m, Outbox: m.Outbox(), Inspector: m, Fleet: m}
	})
}

func TestMemoryAnswersWithItsClockAndIncarnation(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 1234567, time.UTC)
	m := store.NewMemory(store.MemoryConfig{Now: func() time.Time { return now }, Incarnation: "a"})
	c, err := m.Commit(t.Context())
	if want := now.Truncate(time.Microsecond); err != nil || !c.Now.Equal(want) || c.Incarnation != "a" {
		t.Errorf("answer %+v, %v, want %v of a", c, err, want)
	}
}

// A token of the next event would be a token that is used twice.
func TestMemoryStopsBeforeTheTokensOfTheNextEvent(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{})
	key := store.Key{Tenant: 1, Run: "0197e000-0000-7000-8000-000000000001"}
	row := ringi.TaskRow{Queue: "q", Seq: 1, InputSeq: 1}
	body := []byte("{}")
	w := store.Write{
		Key: key, Commit: store.CommitID{1}, First: 1, Last: 1, Head: store.Chain(nil, body), Body: body,
		Start: &store.StartRow{Definition: "order"}, Tasks: []store.TaskChange{{Row: &row, Fresh: true}},
	}
	if _, err := m.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for n := 0; ; n++ {
		claimed, err := m.Claim(t.Context(), store.Claim{Queue: "q", Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed) == 0 {
			break
		}
		last = claimed[0].Token
		lapse := store.Lapse{Key: key, Token: last, LeaseEnd: time.Time{}}
		if err := m.Settle(t.Context(), store.Settlement{Lapses: []store.Lapse{lapse}}); err != nil || n > store.HandOuts {
			t.Fatalf("hand-out %d: %v", n, err)
		}
	}
	if last != row.Token(store.HandOuts) || ringi.TokenSeq(last) != row.Seq {
		t.Errorf("the last token is %d of event %d, want %d of event %d", last, ringi.TokenSeq(last), row.Token(store.HandOuts), row.Seq)
	}
}
