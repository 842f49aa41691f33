package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// floorBatches are the sizes of a transaction at which the floor is measured,
// in runs, beside the engine's own.
// constant: only read
var floorBatches = []int{16, 64, 256, 1024}

// floorWriters is how many connections write the floor of PostgreSQL: one waits
// for the disk while another works. SQLite has one writer.
const floorWriters = 2

// A w3Floor is what the same rows cost without an engine.
type w3Floor struct {
	best, same float64         // runs per second
	batch      int             // of the best
	single     []time.Duration // of runs alone, in order of length
}

// measureFloor writes the sampled runs again and again, each time under run ids
// of its own, into the tables of a database of its own.
func measureFloor(ctx context.Context, cfg *W3Config, runs []sample, mean float64) (_ w3Floor, err error) {
	if len(runs) == 0 {
		return w3Floor{}, errors.New("bench: no run was seen from its first row to its last, so that there is nothing to write again; measure for longer")
	}
	p, err := newPlace(ctx, cfg.Database)
	if err != nil {
		return w3Floor{}, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	db, err := p.open(ctx)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		return w3Floor{}, err
	}
	var f w3Floor
	own := max(1, int(math.Round(mean)))
	sizes := append(slices.Clone(floorBatches), own)
	slices.Sort(sizes)
	writers := 1
	if p.kind == kindPostgres {
		writers = floorWriters
	}
	for _, size := range slices.Compact(sizes) {
		bare, err := measureBare(ctx, cfg, p, runs, size, writers)
		if err != nil {
			return f, err
		}
		cfg.Told(fmt.Sprintf("floor: %.0f runs a second in transactions of %d", bare.perSecond(), size))
		if size == own {
			f.same = bare.perSecond()
		}
		if bare.perSecond() > f.best {
			f.best, f.batch = bare.perSecond(), size
		}
	}
	alone, err := measureBare(ctx, cfg, p, runs, 1, 1)
	f.single = alone.times
	return f, err
}

// bareTimes is how long batches of runs took.
type bareTimes struct {
	runs  int
	took  time.Duration
	times []time.Duration // of each batch, in order of length
}

func (b bareTimes) perSecond() float64 { return float64(b.runs) / b.took.Seconds() }

// measureBare writes batches of runs for as long as was asked for.
func measureBare(ctx context.Context, cfg *W3Config, p *place, runs []sample, size, writers int) (bareTimes, error) {
	var out bareTimes
	var mu sync.Mutex
	var failed error
	var writing sync.WaitGroup
	begun := cfg.Now()
	for n := range writers {
		writing.Go(func() {
			times, err := writeBare(ctx, cfg, p, runs, size, n)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			out.times = append(out.times, times...)
		})
	}
	writing.Wait()
	out.took = cfg.Now().Sub(begun)
	out.runs = len(out.times) * size
	slices.Sort(out.times)
	if failed != nil {
		return out, fmt.Errorf("bench: write the rows of the floor: %w", failed)
	}
	return out, nil
}

func writeBare(ctx context.Context, cfg *W3Config, p *place, runs []sample, size, first int) (times []time.Duration, err error) {
	w, err := p.openBare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	next := first
	for end := cfg.Now().Add(cfg.FloorFor); len(times) == 0 || cfg.Now().Before(end); {
		if err := ctx.Err(); err != nil {
			return times, err
		}
		stages := freshBatch(runs, next, size, cfg.Now())
		next += size
		begun := cfg.Now()
		for _, batch := range stages {
			if err := w.write(batch); err != nil {
				return times, err
			}
		}
		times = append(times, cfg.Now().Sub(begun))
	}
	return times, nil
}

// freshBatch is the transitions of size runs, the first of all, then the second
// of all, and so on: the rows of sampled runs under ids of their own.
func freshBatch(runs []sample, next, size int, at time.Time) (stages [][][]bareRow) {
	for n := range size {
		id := freshRun(at, rand.Uint64(), rand.Uint64())
		for stage, rows := range runs[(next+n)%len(runs)] {
			if stage == len(stages) {
				stages = append(stages, make([][]bareRow, 0, size))
			}
			fresh := make([]bareRow, len(rows))
			for i, r := range rows {
				values := slices.Clone(r.values)
				values[1] = id
				fresh[i] = bareRow{r.kind, values}
			}
			stages[stage] = append(stages[stage], fresh)
		}
	}
	return stages
}
