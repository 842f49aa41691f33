package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
)

// load begins runs and measures how long each took. Its fields from mu on are
// guarded by it until run has returned.
type load struct {
	cfg   *W3Config
	nodes w3Nodes
	turn  atomic.Int64 // whose turn it is to begin a run
	input json.RawMessage

	mu      sync.Mutex
	early   map[ringi.RunID]time.Time      // ended before their start was answered
	waiting map[ringi.RunID]chan time.Time // answered and not ended
	ends    int
	delays  []time.Duration // of the runs that count, in order of length at the end
	from    mark
	to      mark
	some    chan struct{} // closed when one run counts
	full    chan struct{} // closed when enough runs count
	open    int           // begun and not ended, in the open loop
}

// A mark is how things stand at a moment.
type mark struct {
	at    time.Time
	cpu   time.Duration
	ends  int
	wrote written
}

func newLoad(cfg *W3Config) *load {
	return &load{
		cfg: cfg, early: map[ringi.RunID]time.Time{}, waiting: map[ringi.RunID]chan time.Time{},
		some: make(chan struct{}), full: make(chan struct{}),
		input: json.RawMessage(fmt.Sprintf(`{"order":"o-1","note":%q}`, strings.Repeat("x", w3Input+cfg.Payload))),
	}
}

// ended is told of each run that completed.
func (l *load) ended(run ringi.RunID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends++
	if c, ok := l.waiting[run]; ok {
		delete(l.waiting, run)
		c <- at
		return
	}
	l.early[run] = at
}

// one starts a run and returns when it ended.
func (l *load) one(ctx context.Context) (time.Time, error) {
	node := l.nodes[int(l.turn.Add(1))%len(l.nodes)]
	r := node.engine.Do(ctx, ringi.Command{
		Actor: ringi.Actor{ID: "bench", Kind: ringi.Machine}, Do: ringi.Start{Definition: "w3", Input: l.input},
	})[0]
	if r.Err != nil {
		return time.Time{}, fmt.Errorf("bench: start: %w", r.Err)
	}
	l.mu.Lock()
	if at, ok := l.early[r.Run]; ok {
		delete(l.early, r.Run)
		l.mu.Unlock()
		return at, nil
	}
	c := make(chan time.Time, 1)
	l.waiting[r.Run] = c
	l.mu.Unlock()
	select {
	case at := <-c:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// counted notes a run that was sent, or due, at a time. It counts once the
// measurement has begun and while it lasts: in the closed loop by its end, in
// the open loop by its beginning, so that the slow ones are not left out.
func (l *load) counted(due, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := end
	if l.cfg.Rate > 0 {
		at = due
	}
	if l.from.at.IsZero() || at.Before(l.from.at) || !l.to.at.IsZero() && at.After(l.to.at) {
		return
	}
	if l.cfg.Runs > 0 && len(l.delays) >= l.cfg.Runs {
		return
	}
	if l.delays = append(l.delays, end.Sub(due)); len(l.delays) == 1 {
		close(l.some)
	}
	if len(l.delays) == l.cfg.Runs {
		close(l.full)
	}
}

func (l *load) mark(m *mark) error {
	cpu, err := l.nodes.cpu()
	wrote := l.nodes.wrote()
	l.mu.Lock()
	defer l.mu.Unlock()
	*m = mark{at: l.cfg.Now(), cpu: CPU() + cpu, ends: l.ends, wrote: wrote}
	return err
}

// run measures: it warms up, counts until the bounds, and lets what was begun
// end, so that the replay finds nothing half done.
func (l *load) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stop := make(chan struct{})
	var loops sync.WaitGroup
	if l.cfg.Rate > 0 {
		loops.Go(func() { l.begin(ctx, stop, fail, &loops) })
	} else {
		for range l.cfg.Inflight {
			loops.Go(func() { l.closed(ctx, stop, fail) })
		}
	}
	err := l.window(ctx)
	close(stop)
	loops.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && len(l.delays) == 0 {
		err = errors.New("bench: no run ended while it was measured: measure for longer")
	}
	slices.Sort(l.delays)
	return err
}

// window waits while the load is warmed up and measured.
func (l *load) window(ctx context.Context) error {
	timer := time.NewTimer(l.cfg.Warm)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil
	}
	end, err := l.cfg.profile()
	if err == nil {
		err = l.mark(&l.from)
	}
	if err != nil {
		return err
	}
	var over <-chan time.Time
	if l.cfg.For > 0 {
		timer.Reset(l.cfg.For)
		over = timer.C
	}
	select {
	case <-over:
		if l.cfg.Rate == 0 { // a window in which nothing ends lasts until something has
			select {
			case <-l.some:
			case <-ctx.Done():
			}
		}
	case <-l.full:
	case <-ctx.Done():
	}
	return errors.Join(l.mark(&l.to), end())
}

// closed is one of the loops in which the end of a run begins the next.
func (l *load) closed(ctx context.Context, stop <-chan struct{}, fail context.CancelCauseFunc) {
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		begun := l.cfg.Now()
		end, err := l.one(ctx)
		if err != nil {
			fail(err)
			return
		}
		l.counted(begun, end)
	}
}

// mostOpen is for how long runs may be begun of which none ends: at a rate above
// what the engine can do they only become more.
const mostOpen = 30 * time.Second

// under counts a run that is begun, or has ended, and reports whether there are
// no more of them than the rate explains.
func (l *load) under(change int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += change
	return float64(l.open) <= l.cfg.Rate*mostOpen.Seconds()
}

// begin begins runs at a rate whatever becomes of those before. A run that could
// not be sent in time is measured from when it was due.
func (l *load) begin(ctx context.Context, stop <-chan struct{}, fail context.CancelCauseFunc, loops *sync.WaitGroup) {
	begun := l.cfg.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := begun.Add(time.Duration(float64(n) / l.cfg.Rate * float64(time.Second)))
		if wait := due.Sub(l.cfg.Now()); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		if !l.under(1) {
			fail(fmt.Errorf("bench: as many runs are open as begin within %v: the rate is above what it can do", mostOpen))
			return
		}
		loops.Go(func() {
			end, err := l.one(ctx)
			l.under(-1)
			if err != nil {
				fail(fmt.Errorf("%w: is the rate above what it can do?", err))
				return
			}
			l.counted(due, end)
		})
	}
}
