package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
)

// A sight is what a node's sweeps and claims of a moment find, of run 1.
type sight struct{ claimed, timer, check bool }

// seeing looks at everything once, as a node does all the time.
func seeing(t *testing.T, s *postgres.Store, now time.Time) (found sight) {
	t.Helper()
	ctx, key := t.Context(), store.Key{Tenant: ringi.DefaultTenant, Run: runID(1)}
	timers, err := s.DueTimers(ctx, now, now.Add(time.Minute), 100)
	for _, x := range timers {
		found.timer = found.timer || x.Key == key
	}
	tasks, more := s.DueTasks(ctx, now, 100)
	for _, x := range tasks {
		found.check = found.check || x.Key == key
	}
	claimed, most := s.Claim(ctx, store.Claim{Tenant: 1, Queue: "q", Worker: "other", Max: 100, Now: now, Handover: time.Minute})
	for _, x := range claimed {
		found.claimed = found.claimed || x.Key == key
	}
	if err := errors.Join(err, more, most); err != nil {
		t.Fatal(err)
	}
	return found
}

// ownTime opens a store whose times are the database's, as in a node.
func ownTime(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A frozenWrite is what a node does when it wakes, and what was done before.
type frozenWrite struct {
	before []do
	frozen do
	want   sight // of another node
}

type do = func(context.Context, *postgres.Store) error

// frozenWrites are all kinds of writes that place rows, of one run, with times
// of long ago.
func frozenWrites(now, old time.Time) map[string]frozenWrite {
	key := store.Key{Tenant: ringi.DefaultTenant, Run: runID(1)}
	task := func(w store.Write, change func(*ringi.TaskRow)) store.Write {
		row := &ringi.TaskRow{Step: "a", Attempt: 1, Seq: w.Last, InputSeq: 1, Queue: "q", ReadyAt: old, Timeout: time.Hour, Heartbeat: time.Second}
		change(row)
		w.Tasks = []store.TaskChange{{Fresh: true, Row: row}}
		return w
	}
	ready := task(startOf(1, 10), func(*ringi.TaskRow) {})
	asleep := task(startOf(1, 10), func(r *ringi.TaskRow) { r.Held = true })
	asleep.Tasks[0].Row.GiveUpAt = now.Add(time.Hour)
	timed := startOf(1, 10)
	timed.Timers = []store.TimerChange{{ID: "t", Row: &ringi.TimerRow{ID: "t", FireAt: old}}}
	commit := func(w store.Write) func(context.Context, *postgres.Store) error {
		return func(ctx context.Context, s *postgres.Store) error {
			c, err := s.Commit(ctx, w)
			if err == nil && len(c.Lost) > 0 {
				err = fmt.Errorf("lost %+v", c.Lost)
			}
			return err
		}
	}
	claimUntil := func(end time.Time) func(context.Context, *postgres.Store) error {
		return func(ctx context.Context, s *postgres.Store) error {
			at := time.Now().UTC().Truncate(time.Microsecond)
			list, err := s.Claim(ctx, store.Claim{Tenant: 1, Queue: "q", Worker: "w", Max: 10, Now: at, Handover: end.Sub(at)})
			if err == nil && len(list) != 1 {
				err = fmt.Errorf("%d tasks claimed, want 1", len(list))
			}
			return err
		}
	}
	claim := claimUntil(old)
	token := ready.Tasks[0].Row.Token(1)
	retried := nextOf(startOf(1, 10), 2)
	retried.Tasks = []store.TaskChange{{Row: ready.Tasks[0].Row}}
	late := nextOf(startOf(1, 10), 4)
	late.Tasks = []store.TaskChange{{Row: &ringi.TaskRow{}}}
	*late.Tasks[0].Row = *asleep.Tasks[0].Row
	late.Tasks[0].Row.GiveUpAt = old
	confirmed := nextOf(startOf(1, 10), 3)
	confirmed.Needs = []ringi.Need{{Lane: 0, How: ringi.NeedToken, Token: token}}
	confirmed.Tasks = []store.TaskChange{{Row: ready.Tasks[0].Row, Begun: old.Add(time.Second)}}
	handed := nextOf(startOf(1, 10), 5)
	handed.Needs = confirmed.Needs
	handed = task(handed, func(r *ringi.TaskRow) { r.Held, r.GiveUpAt = true, old })
	return map[string]frozenWrite{
		"a new task":                {frozen: commit(ready), want: sight{claimed: true}},
		"a task that is kept":       {before: []do{commit(asleep)}, frozen: commit(retried), want: sight{claimed: true}},
		"a task to give up":         {frozen: commit(task(startOf(1, 10), func(r *ringi.TaskRow) { r.Held, r.GiveUpAt = true, old })), want: sight{check: true}},
		"a kept one to give up":     {before: []do{commit(asleep)}, frozen: commit(late), want: sight{check: true}},
		"an attempt behind another": {before: []do{commit(ready), claimUntil(now.Add(time.Hour))}, frozen: commit(handed), want: sight{check: true}},
		"a heartbeat": {before: []do{commit(ready), claimUntil(now.Add(time.Hour))}, want: sight{check: true}, frozen: func(ctx context.Context, s *postgres.Store) error {
			list, err := s.Beat(ctx, store.Beat{Key: key, Step: "a", Token: token, Now: old})
			if err == nil && !list[0].OK {
				err = errors.New("the heartbeat is stale")
			}
			return err
		}},
		"a task that began": {before: []do{commit(ready), claim}, frozen: commit(confirmed), want: sight{check: true}},
		"a timer":           {frozen: commit(timed), want: sight{timer: true}},
		"a timer that it claims": {before: []do{commit(timed)}, want: sight{timer: true}, frozen: func(ctx context.Context, s *postgres.Store) error {
			list, err := s.DueTimers(ctx, time.Now().UTC(), old, 10)
			if err == nil && len(list) != 1 {
				err = fmt.Errorf("%d timers claimed, want 1", len(list))
			}
			return err
		}},
		"a hand-out": {before: []do{commit(ready)}, frozen: claim, want: sight{check: true}},
		"a lapse": {before: []do{commit(ready), claim}, want: sight{claimed: true}, frozen: func(ctx context.Context, s *postgres.Store) error {
			return s.Settle(ctx, store.Settlement{Lapses: []store.Lapse{{Key: key, Token: token, LeaseEnd: old, ReadyAt: old}}})
		}},
		"a later look": {before: []do{commit(asleep)}, want: sight{check: true}, frozen: func(ctx context.Context, s *postgres.Store) error {
			return s.Settle(ctx, store.Settlement{Checks: []store.Check{{Key: key, Token: asleep.Tasks[0].Row.Token(0), At: old}}})
		}},
	}
}

// W6, W17: a node is frozen for a minute when what it decided on is ready to be
// sent. Another has looked at everything meanwhile, and begins to look where
// nothing was due. What then arrives, with times of a minute ago, it finds when
// it looks next, and not only when it looks at everything again.
func TestWhatAFrozenNodeWritesIsFoundAtOnce(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	old := now.Add(-time.Minute)
	url := emptyTables(t)
	beside := connect(t, url)
	for name, test := range frozenWrites(now, old) {
		t.Run(name, func(t *testing.T) {
			beside.empty()
			a, b := ownTime(t, url), ownTime(t, url)
			if _, err := a.Expire(t.Context(), old, 1); err != nil { // the latest time that it knows
				t.Fatal(err)
			}
			for range 2 { // a new connection, such as the first look makes, begins anew
				if got := seeing(t, b, time.Now().UTC()); got != (sight{}) {
					t.Fatalf("found %+v in an empty database", got)
				}
			}
			for _, step := range append(test.before, test.frozen) {
				if err := step(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			if got := seeing(t, b, time.Now().UTC()); got != test.want {
				t.Errorf("found %+v, want %+v", got, test.want)
			}
		})
	}
}

// W17, W31: a transaction that hangs for half a minute in the middle or at its
// end, as when the database's machine or disk stands still, comes with rows of
// before. Who looked meanwhile has not begun to look behind them.
func TestWhatAStalledTransactionWritesIsFoundAtOnce(t *testing.T) {
	url := database(t)
	s, stalled := ownTime(t, url), connect(t, url)
	stalled.exec(`begin; insert into timer (tenant, run, id, generation, fire_at, due_at)
		values (1, '` + string(runID(1)) + `', 't', 1, clock_timestamp(), clock_timestamp())`)
	now := time.Now().UTC()
	for _, after := range []time.Duration{35, 45, 55} {
		if got := seeing(t, s, now.Add(after*time.Second)); got != (sight{}) {
			t.Fatalf("found %+v before the commit", got)
		}
	}
	stalled.exec(`commit`)
	if got := seeing(t, s, now.Add(time.Minute)); !got.timer {
		t.Error("the timer is not found")
	}
}
