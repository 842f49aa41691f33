package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
)

// crossing is a batch that meets another one's rows of every kind: start keys,
// runs, tasks, timers, waits and aggregates, in a random order.
func crossing(random *rand.Rand, runs []store.Write, draw func() int) []store.Write {
	now := time.Unix(1_700_000_000, 0).UTC()
	var writes []store.Write
	for _, i := range random.Perm(len(runs))[:len(runs)/2] {
		w := nextOf(runs[i], draw())
		row := &ringi.TaskRow{Lane: 0, Step: "a", Attempt: 1, Seq: w.Last, InputSeq: w.Last, Queue: "q", ReadyAt: now, GiveUpAt: now, Timeout: time.Minute, Heartbeat: time.Minute}
		w.Tasks = []store.TaskChange{{Row: row, Fresh: true}}
		w.Timers = []store.TimerChange{{ID: "t", Row: &ringi.TimerRow{ID: "t", FireAt: now}}}
		w.Waits = []store.WaitChange{{Step: "w", Row: &ringi.WaitRow{Step: "w", Event: "e", Key: "k", OpenedAt: now}}}
		writes = append(writes, w)
	}
	for range 8 {
		w := startOf(draw(), 10)
		w.Start.StartKey = fmt.Sprint("k", random.IntN(1000))
		writes = append(writes, w)
	}
	random.Shuffle(len(writes), func(a, b int) { writes[a], writes[b] = writes[b], writes[a] })
	for i := range writes {
		for _, aggregate := range random.Perm(5)[:2] {
			writes[i].Messages = append(writes[i].Messages, outbox.Message{
				ID: string(runID(1<<40 + draw())), Tenant: 1, AggregateType: "Order", AggregateID: fmt.Sprint(aggregate), Type: "t", CreatedAt: now,
			})
		}
	}
	return writes
}

// W6, W11, W17: sessions whose batches, claims, heartbeats and sweeps meet in
// every order never wait for each other in a circle.
func TestSessionsNeverDeadlock(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	url := database(t)
	watch := connect(t, url)
	a, b := openStore(t, postgres.Config{URL: url}), openStore(t, postgres.Config{URL: url})
	var mu sync.Mutex
	drawn := 1000
	draw := func() int {
		mu.Lock()
		defer mu.Unlock()
		drawn++
		return drawn
	}
	runs := make([]store.Write, 30)
	for i := range runs {
		runs[i] = startOf(i+1, 10)
	}
	mustCommit(t, a, runs...)
	now := time.Unix(1_700_000_001, 0).UTC()
	ended := make(chan struct{})
	var commits, sweeps sync.WaitGroup
	for n, s := range []*postgres.Store{a, b, a, b} {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		commits.Go(func() {
			for range 30 {
				mu.Lock()
				at := append([]store.Write(nil), runs...)
				mu.Unlock()
				writes := crossing(random, at, draw)
				c, err := s.Commit(context.Background(), writes...)
				for errors.Is(err, store.ErrUnavailable) { // it waits two seconds for a lock, and this machine may be slower
					c, err = s.Commit(context.Background(), writes...)
				}
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				lost := map[int]bool{}
				for _, l := range c.Lost {
					lost[l.Index] = true
				}
				mu.Lock()
				for i, w := range writes {
					for r := range runs {
						if runs[r].Key == w.Key && !lost[i] && w.Last > runs[r].Last {
							runs[r] = w
						}
					}
				}
				mu.Unlock()
			}
		})
		sweeps.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if err := sweepOnce(s, now); err != nil {
					t.Errorf("sweep: %v", err)
					return
				}
			}
		})
	}
	commits.Wait()
	close(ended)
	sweeps.Wait()
	// The counters arrive when the sessions end.
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the counters", func() error {
		if watch.one("select xact_commit > 100 from pg_stat_database where datname = current_database()") != "t" {
			return errors.New("not yet")
		}
		return nil
	})
	if n := watch.one("select deadlocks from pg_stat_database where datname = current_database()"); n != "0" {
		t.Errorf("%s deadlocks, want none", n)
	}
}

// sweepOnce claims, beats and settles, as a node does between its commits.
func sweepOnce(s *postgres.Store, now time.Time) error {
	ctx := context.Background()
	claimed, err := s.Claim(ctx, store.Claim{Queue: "q", Worker: "w", Max: 20, Now: now, Handover: time.Second})
	if err != nil {
		return err
	}
	var beats []store.Beat
	for _, c := range claimed {
		beats = append(beats, store.Beat{Key: c.Key, Step: c.Row.Step, Token: c.Token, Now: now})
	}
	if _, err := s.Beat(ctx, beats...); err != nil {
		return err
	}
	due, err := s.DueTasks(ctx, now.Add(time.Hour), 100)
	if err != nil {
		return err
	}
	var settle store.Settlement
	for i, d := range due {
		if i%2 == 0 {
			settle.Lapses = append(settle.Lapses, store.Lapse{Key: d.Key, Lane: d.Row.Lane, Token: d.Token, LeaseEnd: d.LeaseEnd, ReadyAt: now})
		} else {
			settle.Checks = append(settle.Checks, store.Check{Key: d.Key, Lane: d.Row.Lane, Token: d.Token, At: now})
		}
	}
	if settle.Drops, err = s.DueTimers(ctx, now, now, 20); err != nil {
		return err
	}
	return s.Settle(ctx, settle)
}

// frozenEnv names the database for the process that is stopped.
const frozenEnv = "RINGI_TEST_FROZEN_DB"

// TestHelperProcess is not a test: with the variable set it is the process
// that commits until it is killed.
func TestHelperProcess(t *testing.T) {
	url := os.Getenv(frozenEnv)
	if url == "" {
		return
	}
	s := openStore(t, postgres.Config{URL: url, Writers: 1})
	for n := 0; ; n += 64 {
		var writes []store.Write
		for i := range 64 {
			w := startOf(1<<30+n+i, 500)
			w.Start.StartKey = strconv.Itoa(n + i)
			w.Messages = []outbox.Message{{
				ID: string(runID(1<<41 + n + i)), Tenant: 1, AggregateType: "Order", AggregateID: "o", Type: "t", CreatedAt: time.Unix(9, 0),
			}}
			writes = append(writes, w)
		}
		mustCommit(t, s, writes...)
		fmt.Println("done", n)
	}
}

// W31: a node that is stopped at any moment leaves no transaction open, so that
// no other node waits for it.
func TestANodeThatIsStoppedHoldsUpNobody(t *testing.T) {
	url := database(t)
	s := openStore(t, postgres.Config{URL: url})
	watch := connect(t, url)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), frozenEnv+"="+url+"&application_name=frozen")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it says that it was killed
	}()
	go func() {
		buf := make([]byte, 1<<16)
		for {
			if _, err := out.Read(buf); err != nil {
				return
			}
		}
	}()
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	commits := func() string { return watch.one("select count(*) from log") }
	for n := range 20 {
		before := commits()
		eventually(t, "a commit of the other node", func() error {
			if commits() == before {
				return errors.New("none yet")
			}
			return nil
		})
		signal(syscall.SIGSTOP)
		eventually(t, "the stopped node's transactions to end", func() error {
			open := watch.one("select coalesce(string_agg(state || ' ' || coalesce(wait_event, ''), ', '), '') from pg_stat_activity where application_name = 'frozen' and xact_start is not null")
			if strings.Contains(open, "idle in transaction") {
				t.Errorf("stopped in the middle of a transaction: %s", open)
			}
			if open != "" {
				return errors.New(open)
			}
			return nil
		})
		w := startOf(n+1, 10)
		w.Messages = []outbox.Message{{
			ID: string(runID(1<<42 + n)), Tenant: 1, AggregateType: "Order", AggregateID: "o", Type: "t", CreatedAt: time.Unix(9, 0),
		}}
		mustCommit(t, s, w)
		signal(syscall.SIGCONT)
	}
}
