package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/sqlite"
)

// A disk is a SQLite file whose process dies again and again: what it leaves
// behind, a file and its write-ahead log that nobody has brought in, is opened
// by the next one. It loses nothing of what was answered, so that a world on it
// must go the same way as one on the store in memory, to the byte. One reading
// connection is enough: whoever held it and wanted another would wait for ever.
type disk struct {
	*sqlite.Store
	store.Fleet // a file has one node in production; the worlds have several, which know of each other on both stores
	dir         string
	now         func() time.Time
	lives       int
	commits     int
	short       time.Duration // a planted fault: by how much heartbeats extend a lease less than they should
}

// commitsPerLife is how many commits a process lives for.
const commitsPerLife = 5

func openDisk(dir string, now func() time.Time) (*disk, error) {
	d := &disk{dir: dir, now: now, Fleet: store.NewMemory(store.MemoryConfig{Now: now})}
	var err error
	d.Store, err = sqlite.Open(context.Background(), sqlite.Config{Path: d.path(), Now: now, Readers: 1})
	return d, err
}

func (d *disk) path() string { return filepath.Join(d.dir, fmt.Sprintf("life-%d.db", d.lives)) }

// die opens the files as they lie there, without a word to the store that has
// them open, which would bring its log in.
func (d *disk) die() error {
	was, old := d.path(), d.Store
	d.lives++
	for _, part := range []string{"", "-wal"} {
		raw, err := os.ReadFile(was + part)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.path()+part, raw, 0o600); err != nil {
			return err
		}
	}
	s, err := sqlite.Open(context.Background(), sqlite.Config{Path: d.path(), Now: d.now, Readers: 1})
	if err != nil {
		return err
	}
	d.Store = s
	return old.Close()
}

// Commit implements store.Store.
func (d *disk) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	if len(writes) > 0 {
		if d.commits++; d.commits%commitsPerLife == 0 {
			if err := d.die(); err != nil {
				return store.Committed{}, err
			}
		}
	}
	return d.Store.Commit(ctx, writes...)
}

// Beat implements store.Store.
func (d *disk) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	beats = slices.Clone(beats)
	for i := range beats {
		beats[i].Now = beats[i].Now.Add(-d.short)
	}
	return d.Store.Beat(ctx, beats...)
}

// Outbox implements Driver.
func (d *disk) Outbox() outbox.Source { return diskOutbox{d} }

// A diskOutbox is the outbox of whatever process lives.
type diskOutbox struct{ d *disk }

func (o diskOutbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	return o.d.Store.Outbox().Claim(ctx, c)
}

func (o diskOutbox) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	return o.d.Store.Outbox().Mark(ctx, at, marks)
}

func (o diskOutbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	return o.d.Store.Outbox().Prune(ctx, before, limit)
}

func (o diskOutbox) Stats(ctx context.Context) (outbox.Stats, error) {
	return o.d.Store.Outbox().Stats(ctx)
}

// both plays a seed on the store in memory and on a disk, and returns the first
// line in which what happened differs.
func both(t *testing.T, seed uint64, short time.Duration) (lives int, difference string) {
	t.Helper()
	var faults []fault.Kind
	for _, f := range fault.Kinds() {
		if f != fault.StoreRestored && f != fault.RestoreOverslept { // a file has no backup to come back to
			faults = append(faults, f)
		}
	}
	c := Config{Faults: faults, Steps: 2000}
	memory := newWorld(options{Config: c, Seed: seed, Tell: true})
	memory.play()
	var d *disk
	dir := t.TempDir()
	c.Open = func(now func() time.Time) (Driver, error) {
		var err error
		if d, err = openDisk(dir, now); err == nil {
			d.short = short
		}
		return d, err
	}
	file := newWorld(options{Config: c, Seed: seed, Tell: true})
	file.play()
	for _, w := range []*world{memory, file} {
		if w.violation != nil && short == 0 {
			t.Errorf("seed %d: %s: %s", seed, w.violation.What, w.violation.Message)
		}
	}
	if memory.digest() == file.digest() {
		return d.lives, ""
	}
	for i, line := range memory.tracer.lines {
		if i >= len(file.tracer.lines) || file.tracer.lines[i] != line {
			other := "nothing"
			if i < len(file.tracer.lines) {
				other = fmt.Sprint(file.tracer.lines[i])
			}
			return d.lives, fmt.Sprintf("in memory: %s\non disk:   %s", line, other)
		}
	}
	return d.lives, "only what the story does not tell"
}

// The same programs on the store in memory and on SQLite have the same
// histories, although the process that has the file dies again and again.
func TestMemoryAndSQLiteGoTheSameWay(t *testing.T) { // W31 S5
	deaths := 0
	for seed := range uint64(differentialSeeds) {
		lives, difference := both(t, 9000+seed, 0)
		if deaths += lives; difference != "" {
			t.Errorf("seed %d: the stores go different ways:\n%s", 9000+seed, difference)
		}
	}
	if deaths < differentialSeeds {
		t.Errorf("the process died %d times in %d seeds, want once in each at least", deaths, differentialSeeds)
	}
}

// A driver that gives leases two seconds less than it should is found.
func TestAStoreThatDiffersIsFound(t *testing.T) { // W31
	for seed := uint64(9000); seed < 9010; seed++ {
		if _, difference := both(t, seed, 2*time.Second); difference != "" {
			t.Logf("seed %d: %s", seed, difference)
			return
		}
	}
	t.Error("ten seeds did not find it")
}

var _ Driver = (*disk)(nil)

// differentialSeeds is how many seeds are played on both stores.
const differentialSeeds = 4
