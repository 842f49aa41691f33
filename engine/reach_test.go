package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A disk that is full can be read. The node is not ready until a write has
// worked, tells of both once, and needs nobody's write to find out.
func TestAStoreThatCanOnlyBeReadIsNotReady(t *testing.T) { // TC-29, TC-31
	bubble(t, func(t *testing.T, w *world) {
		w.eng.Close()
		var full atomic.Bool
		var probes atomic.Int64
		said := &journal{}
		disk := func() error {
			if full.Load() {
				return fmt.Errorf("the disk is full: %w", store.ErrUnavailable)
			}
			return nil
		}
		w.conf.Log = slog.New(slog.NewTextHandler(said, nil))
		w.conf.Probe = func(_ context.Context, bytes int) error {
			if bytes < 10_000 {
				t.Errorf("a probe of %d bytes proves little", bytes)
			}
			probes.Add(1)
			return disk()
		}
		w.restartOn(&tap{Store: w.mem, before: func([]store.Write) error { return disk() }})
		run := w.begin("nap", "", "null")
		full.Store(true)
		if r := w.do(alice, run, ringi.Pause{}); ringi.ErrorCode(r.Err) != ringi.CodeUnavailable {
			t.Fatalf("on a full disk: %+v", r)
		}
		for range 20 {
			<-time.After(time.Second)
			if w.eng.Ready() == nil {
				t.Fatal("ready, and nothing can be written")
			}
			w.view(run)
		}
		full.Store(false)
		<-time.After(2 * time.Second)
		if err := w.eng.Ready(); err != nil {
			t.Errorf("there is room, and it is not ready: %v", err)
		}
		n := probes.Load()
		<-time.After(10 * time.Second)
		if probes.Load() != n || n > 40 {
			t.Errorf("%d probes and then %d more, want about one a second until one works", n, probes.Load()-n)
		}
		if r := w.do(alice, run, ringi.Pause{}); r.Err != nil {
			t.Errorf("afterwards: %v", r.Err)
		}
		for _, line := range []string{"the database is away", "the database is back"} {
			if n := strings.Count(said.String(), line); n != 1 {
				t.Errorf("%q was logged %d times, want once:\n%s", line, n, said.String())
			}
		}
	})
}

// A jam is a store that can be read, and of whose writes those of one kind fail.
type jam struct {
	store.Store
	kind atomic.Value // a string
}

func (j *jam) fails(kind string) error {
	if j.kind.Load() == kind {
		return fmt.Errorf("locked: %w", store.ErrUnavailable)
	}
	return nil
}

func (j *jam) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	if err := j.fails("pulse"); err != nil {
		return store.Committed{}, err
	}
	return j.Store.Commit(ctx, writes...)
}

func (j *jam) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	if err := j.fails("claim"); err != nil {
		return nil, err
	}
	return j.Store.Claim(ctx, c)
}

func (j *jam) Beat(ctx context.Context, b ...store.Beat) ([]store.Beaten, error) {
	if err := j.fails("heartbeat"); err != nil {
		return nil, err
	}
	return j.Store.Beat(ctx, b...)
}

func (j *jam) DueTimers(ctx context.Context, now, until time.Time, limit int) ([]store.DueTimer, error) {
	if err := j.fails("timers"); err != nil {
		return nil, err
	}
	return j.Store.DueTimers(ctx, now, until, limit)
}

// Whichever write it was that failed, no read says that the store is back, and
// the log tells of one outage once.
func TestAnyWriteThatFailsIsTakenBackByAWriteOnly(t *testing.T) { // TC-29, TC-31
	for _, kind := range []string{"pulse", "claim", "heartbeat", "timers"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.eng.Close()
				j, said := &jam{Store: w.mem}, &journal{}
				j.kind.Store("")
				w.conf.Log = slog.New(slog.NewTextHandler(said, nil))
				w.conf.Probe = func(context.Context, int) error {
					if j.kind.Load() != "" {
						return fmt.Errorf("locked: %w", store.ErrUnavailable)
					}
					return nil
				}
				w.restartOn(&tap{Store: j})
				run := w.begin("nap", "", "null")
				j.kind.Store(kind)
				switch kind {
				case "claim":
					_, _ = w.eng.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: "q", Wait: 2 * time.Second})
				case "heartbeat":
					_, _ = w.eng.Heartbeat(t.Context(), ringi.Beat{Run: run, Worker: "w"})
				}
				<-time.After(2 * time.Second)
				for range 20 {
					<-time.After(time.Second)
					if w.view(run); w.eng.Ready() == nil {
						t.Fatal("ready, and a write that failed has not worked again")
					}
				}
				j.kind.Store("")
				<-time.After(2 * time.Second)
				if err := w.eng.Ready(); err != nil {
					t.Errorf("it can be written, and is not ready: %v", err)
				}
				for _, line := range []string{"the database is away", "the database is back"} {
					if n := strings.Count(said.String(), line); n != 1 {
						t.Errorf("%q was logged %d times, want once:\n%s", line, n, said.String())
					}
				}
			})
		})
	}
}

// A table that somebody has locked, as a migration does, is not a database that
// is away: the node stays ready for some seconds, then says what it waits for,
// and the log is told of it once a minute.
func TestALockOfSomebodyIsWaitedForBeforeTheNodeIsNotReady(t *testing.T) { // TC-29
	bubble(t, func(t *testing.T, w *world) {
		w.eng.Close()
		said := &journal{}
		locks := &locked{Store: w.mem}
		w.conf.Log = slog.New(slog.NewTextHandler(said, nil))
		w.conf.Probe = func(context.Context, int) error { return nil }
		w.conf.Locks = func(context.Context) (string, error) {
			if locks.on.Load() {
				return "timer by session 7 (migration)", nil
			}
			return "", nil
		}
		w.restartOn(&tap{Store: locks})
		lines := func() (begins, ends, others int) {
			begins, ends = strings.Count(said.String(), "holds a lock"), strings.Count(said.String(), "is gone")
			return begins, ends, strings.Count(said.String(), "level=") - begins - ends
		}
		locks.on.Store(true)
		for n := range 9 {
			<-time.After(time.Second)
			if err := w.eng.Ready(); err != nil {
				t.Fatalf("not ready after %d s: %v", n+1, err)
			}
		}
		locks.on.Store(false)
		<-time.After(2 * time.Second)
		if begins, ends, others := lines(); begins != 1 || ends != 1 || others != 0 {
			t.Errorf("of a short lock the log says:\n%s", said.String())
		}
		locks.on.Store(true)
		<-time.After(3 * time.Minute)
		if err := w.eng.Ready(); err == nil || !strings.Contains(err.Error(), "timer by session 7") {
			t.Errorf("after minutes: %v, want what it waits for", err)
		}
		if begins, ends, others := lines(); begins > 4 || ends != 1 || others != 0 {
			t.Errorf("of three minutes the log says:\n%s", said.String())
		}
		locks.on.Store(false)
		<-time.After(2 * time.Second)
		if _, ends, _ := lines(); ends != 2 || w.eng.Ready() != nil {
			t.Errorf("afterwards: %v\n%s", w.eng.Ready(), said.String())
		}
	})
}

// locked is a store whose timers somebody has locked.
type locked struct {
	store.Store
	on atomic.Bool
}

func (l *locked) DueTimers(ctx context.Context, now, until time.Time, limit int) ([]store.DueTimer, error) {
	if l.on.Load() {
		return nil, fmt.Errorf("%w: time-out", store.ErrLocked)
	}
	return l.Store.DueTimers(ctx, now, until, limit)
}

// A database that comes and goes is told about once a minute.
func TestAnOutageIsToldOnceAMinute(t *testing.T) { // TC-29
	bubble(t, func(t *testing.T, w *world) {
		w.eng.Close()
		j, said := &jam{Store: w.mem}, &journal{}
		j.kind.Store("")
		w.conf.Log = slog.New(slog.NewTextHandler(said, nil))
		w.conf.Probe = func(context.Context, int) error { return j.fails("pulse") }
		w.restartOn(&tap{Store: j})
		<-time.After(time.Second)
		j.kind.Store("pulse")
		<-time.After(150 * time.Second)
		j.kind.Store("")
		<-time.After(2 * time.Second)
		for range 10 {
			j.kind.Store("pulse")
			<-time.After(2 * time.Second)
			j.kind.Store("")
			<-time.After(2 * time.Second)
		}
		j.kind.Store("pulse")
		<-time.After(8 * time.Second) // long enough to be told of, soon after the last
		j.kind.Store("")
		<-time.After(2 * time.Second)
		if away, back := strings.Count(said.String(), "the database is away"), strings.Count(said.String(), "the database is back"); away != 5 || back != 3 {
			t.Errorf("told %d times that it is away and %d times that it is back:\n%s", away, back, said.String())
		}
	})
}
