package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// ranks is a source with its fleet.
type ranks struct {
	fixture
	outbox.Fleet
}

// eachFleet runs a test on every fleet.
func eachFleet(t *testing.T, test func(t *testing.T, r ranks)) {
	t.Run("memory", func(t *testing.T) {
		f := inMemory()
		test(t, ranks{f, f.Source.(outbox.Fleet)})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgresURL(t)
		db := openPostgres(t, url)
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		src := postgres.Source(pool)
		test(t, ranks{fixture{Source: src, insert: insertPostgres(db)}, src})
	})
	t.Run("mysql", func(t *testing.T) {
		db, _ := dialectMySQL.empty(t)
		f := dialectMySQL.fixture(db)
		test(t, ranks{f, f.Source.(outbox.Fleet)})
	})
}

// hold renews what a relay has, for half a minute.
func (r ranks) hold(t *testing.T, by string, at time.Time) []outbox.Partition {
	t.Helper()
	h, err := r.Hold(t.Context(), outbox.Hold{By: by, Now: at, Lease: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h.Partitions
}

// take claims from partitions.
func (r ranks) take(t *testing.T, parts []outbox.Partition, at time.Time) []outbox.ClaimedMessage {
	t.Helper()
	b, err := r.Claim(t.Context(), outbox.Claim{By: "test", Partitions: parts, Now: at, Lease: 30 * time.Second, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return b.Messages
}

func TestRelaysShareThePartitionsFairly(t *testing.T) {
	eachFleet(t, func(t *testing.T, r ranks) {
		if n := len(r.hold(t, "a", begin)); n != outbox.Partitions {
			t.Errorf("alone a relay has %d", n)
		}
		if n := len(r.hold(t, "b", begin)); n != 0 {
			t.Errorf("%d were taken from a living relay", n)
		}
		var a, b, c []outbox.Partition
		for range 3 { // each gives up and takes at its own pace
			a, b, c = r.hold(t, "a", begin), r.hold(t, "b", begin), r.hold(t, "c", begin)
		}
		seen := map[int]bool{}
		for _, list := range [][]outbox.Partition{a, b, c} {
			if n := len(list); n < 20 || n > 22 {
				t.Errorf("a third is %d partitions", n)
			}
			for _, p := range list {
				if seen[p.Number] || p.Number < 0 || p.Number >= outbox.Partitions {
					t.Errorf("partition %d has two owners", p.Number)
				}
				seen[p.Number] = true
			}
		}
		if len(seen) != outbox.Partitions {
			t.Errorf("%d partitions have an owner", len(seen))
		}
		if got := r.hold(t, "a", begin.Add(20*time.Second)); !slices.Equal(got, a) {
			t.Error("what is renewed does not change")
		}
	})
}

func TestAPartitionIsFreeWhenItsLeaseEndsOrItsOwnerLeaves(t *testing.T) { // O-16
	eachFleet(t, func(t *testing.T, r ranks) {
		first := r.hold(t, "a", begin)
		if n := len(r.hold(t, "b", begin.Add(29*time.Second))); n != 0 {
			t.Errorf("%d were taken before the end", n)
		}
		at := begin.Add(30 * time.Second)
		second := r.hold(t, "b", at)
		if len(second) != outbox.Partitions {
			t.Fatalf("%d were taken at the end", len(second))
		}
		for i := range second {
			if second[i].Epoch != first[i].Epoch+1 {
				t.Errorf("epoch %d after %d", second[i].Epoch, first[i].Epoch)
			}
		}
		if n := len(r.hold(t, "a", at)); n != 0 {
			t.Errorf("who slept came back to %d", n)
		}
		if err := r.Leave(t.Context(), outbox.Hold{By: "b"}); err != nil {
			t.Fatal(err)
		}
		if third := r.hold(t, "a", at); len(third) != outbox.Partitions || third[0].Epoch != second[0].Epoch+1 {
			t.Errorf("after the other left it has %d", len(third))
		}
	})
}

func TestARelayClaimsFromItsPartitionsOnly(t *testing.T) {
	eachFleet(t, func(t *testing.T, r ranks) {
		for n := range 60 {
			r.put(t, order(n, fmt.Sprint("k", n%30)))
		}
		r.hold(t, "a", begin)
		r.hold(t, "b", begin)
		a := r.hold(t, "a", begin)
		b := r.hold(t, "b", begin)
		mine, others := r.take(t, a, begin), r.take(t, b, begin)
		if len(mine) == 0 || len(others) == 0 || len(mine)+len(others) != 60 {
			t.Errorf("claimed %d and %d", len(mine), len(others))
		}
		keys := map[outbox.Key]bool{}
		for _, m := range mine {
			keys[m.Key()] = true
		}
		for _, m := range others {
			if keys[m.Key()] {
				t.Errorf("%v is in both", m.Key())
			}
		}
	})
}

func TestARelayThatLostItsPartitionsCanClaimAndMarkNothing(t *testing.T) { // O-16
	eachFleet(t, func(t *testing.T, r ranks) {
		r.put(t, order(1, "a"), order(2, "b"))
		parts := r.hold(t, "sleeper", begin)
		got := r.take(t, parts, begin)
		r.put(t, order(3, "c"))
		at := begin.Add(30 * time.Second)
		next := r.hold(t, "other", at) // took over, and has not claimed anything yet
		mark := func(m outbox.ClaimedMessage, o outbox.Outcome) int {
			n, err := r.Mark(t.Context(), at, []outbox.Mark{{ID: m.ID, Epoch: m.Epoch, Fence: m.Fence, Outcome: o, NextAt: at}})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, o := range []outbox.Outcome{outbox.MarkDelivered, outbox.MarkFailed, outbox.MarkDead, outbox.MarkParked, outbox.MarkReleased} {
			if n := mark(got[0], o); n != 0 || got[0].Fence == 0 {
				t.Errorf("outcome %d of the sleeper applied", o)
			}
		}
		if late := r.take(t, parts, at); len(late) != 0 {
			t.Errorf("the sleeper claimed %s", names(late))
		}
		var all []outbox.ClaimedMessage
		for range 3 { // what the sleeper had comes alone, one by one
			all = append(all, r.take(t, next, at)...)
		}
		if len(all) != 3 {
			t.Fatalf("the other has %s", names(all))
		}
		for _, m := range all {
			if n := mark(m, outbox.MarkDelivered); n != 1 {
				t.Errorf("the mark of %s did not apply", m.ID)
			}
		}
	})
}

func TestAFleetWantsANameAndALease(t *testing.T) {
	eachFleet(t, func(t *testing.T, r ranks) {
		for _, h := range []outbox.Hold{{By: "", Now: begin, Lease: 1}, {By: "a", Now: begin}} {
			if _, err := r.Hold(t.Context(), h); err == nil {
				t.Errorf("%+v is accepted", h)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, hold := r.Hold(ended, outbox.Hold{By: "a", Now: begin, Lease: 1})
		if leave := r.Leave(ended, outbox.Hold{By: "a"}); !errors.Is(hold, context.Canceled) || !errors.Is(leave, context.Canceled) {
			t.Errorf("after the end: %v, %v", hold, leave)
		}
	})
}

// log is what the destination of several relays got, in order.
type log struct {
	mu    sync.Mutex
	got   []outbox.Message
	count map[string]int // by relay
}

// sink is one relay's way there.
func (l *log) sink(name string) outbox.Sink { return toLog{l, name} }

type toLog struct {
	l    *log
	name string
}

// Publish implements outbox.Sink.
func (s toLog) Publish(_ context.Context, msgs []outbox.Message) []error {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.got = append(s.l.got, msgs...)
	s.l.count[s.name] += len(msgs)
	return make([]error, len(msgs))
}

func (l *log) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got)
}

// check expects n messages, each once, each key in order.
func (l *log) check(t *testing.T, n int) {
	t.Helper()
	seen, last := map[string]bool{}, map[outbox.Key]int64{}
	for _, m := range l.got {
		if seen[m.ID] {
			t.Errorf("%s was published twice", m.ID)
		}
		if m.Seq != last[m.Key()]+1 {
			t.Errorf("%v: number %d came after %d", m.Key(), m.Seq, last[m.Key()])
		}
		seen[m.ID], last[m.Key()] = true, m.Seq
	}
	if len(seen) != n {
		t.Errorf("%d of %d messages came", len(seen), n)
	}
}

// until polls a condition with a deadline.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited a minute until %s", what)
		case <-tick.C:
		}
	}
}

// TestThreeRelaysDeliverEachMessageOnceAndInOrder lets three relays, each with a
// pool of its own, share a table while four writers fill it.
func TestThreeRelaysDeliverEachMessageOnceAndInOrder(t *testing.T) { // O8, O-16
	eachServer(t, threeRelays)
}

func threeRelays(t *testing.T, d dialect) {
	db, url := d.empty(t)
	insert := d.inserter(db)
	dest := &log{count: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	shares := map[string]int{}
	var mu sync.Mutex
	for _, name := range []string{"r1", "r2", "r3"} {
		its, err := sql.Open(d.driver(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { its.Close() })
		src := d.source(its)
		r, err := outbox.NewRelay(outbox.RelayConfig{
			Source: src, Fleet: src.(outbox.Fleet), Sink: dest.sink(name), Name: name, Batch: 20, Lease: 3 * time.Second,
			Observe: func(r outbox.Report) {
				mu.Lock()
				defer mu.Unlock()
				shares[name] = r.Partitions
				if r.Err != nil && ctx.Err() == nil {
					t.Error(r.Err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	// Everybody waits until all three have their share, so that each publishes.
	thirds := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return min(shares["r1"], shares["r2"], shares["r3"]) >= 20
	}
	const each = 300
	sent := 0
	until(t, "each relay has a third", func() bool {
		for n := range 60 { // reports come only from rounds with work
			if err := insert(written(100_000+sent, fmt.Sprint("k", n))); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		return thirds()
	})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range each {
				m := written(w*each+n, fmt.Sprint("k", n%60))
				m.Tenant = int64(1 + n%3)
				if err := insert(m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	until(t, "everything is delivered", func() bool { return dest.len() >= 4*each+sent })
	cancel()
	running.Wait()
	dest.check(t, 4*each+sent)
	for _, name := range []string{"r1", "r2", "r3"} {
		if dest.count[name] == 0 {
			t.Errorf("%s published nothing: %v", name, dest.count)
		}
	}
}

func TestTheFleetsClockIsTheDatabases(t *testing.T) {
	eachServer(t, func(t *testing.T, d dialect) {
		db, _ := d.empty(t)
		h, err := d.source(db).(outbox.Fleet).Hold(t.Context(), outbox.Hold{By: "a", Lease: time.Minute})
		if off := time.Since(h.Now); err != nil || off.Abs() > time.Hour || h.Relays != 1 || len(h.Partitions) != outbox.Partitions {
			t.Errorf("got %+v, %v", h, err)
		}
	})
}

func TestSQLiteRelaysNeedNoFleet(t *testing.T) { // O8
	db := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"), "synchronous(off)", "busy_timeout(10000)")
	insert := insertInto(db)
	dest := &log{count: map[string]int{}}
	for n := range 60 {
		if err := insert(order(n, fmt.Sprint("k", n%7))); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, name := range []string{"r1", "r2"} {
		r, err := outbox.NewRelay(outbox.RelayConfig{Source: sqlite.New(db), Sink: dest.sink(name), Name: name, Batch: 3})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "everything is delivered", func() bool { return dest.len() >= 60 })
	cancel()
	running.Wait()
	dest.check(t, 60)
}
