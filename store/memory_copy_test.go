package store_test

import (
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func TestACopyOfMemoryGoesItsOwnWay(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{Incarnation: "a"})
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
	c := m.Copy("b")
	for _, s := range []*store.Memory{m, c} {
		if got, err := s.Claim(t.Context(), store.Claim{Queue: "q", Max: 1, Now: time.Unix(1, 0)}); err != nil || len(got) != 1 {
			t.Errorf("claimed %d tasks, %v, want one in each", len(got), err)
		}
	}
	next := store.Write{Key: key, Commit: store.CommitID{2}, First: 2, Last: 2, Prev: w.Head, Head: store.Chain(w.Head, body), Body: body}
	done, err := c.Commit(t.Context(), next)
	if err != nil || len(done.Lost) > 0 || done.Incarnation != "b" {
		t.Errorf("commit on the copy: %+v, %v", done, err)
	}
	if rows, err := m.Log(t.Context(), key, 0, 1<<20); err != nil || len(rows) != 1 {
		t.Errorf("the original has %d rows, %v, want 1", len(rows), err)
	}
}
