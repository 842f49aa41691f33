package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

const (
	// walPages is the size of the write-ahead log, in pages of 4 KiB, at which it
	// is copied into the database: large enough to be rare and for most pages to
	// have changed more than once, small enough for recovery to take no time.
	walPages = 4000
	// walMost is the size at which a commit does that itself: when the disk cannot
	// keep up, or copying beside the writer failed.
	walMost = 4 * walPages
	// walRest is how many pages may be left to copy while the writer waits: as many
	// as take a few milliseconds.
	walRest = 200
	// walPasses is how often the rest is copied beside the writer before it waits.
	walPasses = 4
)

// A checkpointer copies the write-ahead log into the database while the writer
// goes on writing, and lets it wait only for the last few pages, so that the log
// is used from its beginning again. Left to the commits, each commit that comes
// to the size takes as long as copying all of it: tens of milliseconds, for which
// everybody waits.
type checkpointer struct {
	s     *Store
	db    *sql.DB // one connection
	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
	grown int // pages since it was woken last; belongs to whoever has the writer
}

func (s *Store) startCheckpoints(ctx context.Context, c Config) error {
	db, err := openPool(s.path, c.BusyTimeout, 1, false)
	if err != nil {
		return err
	}
	if err := db.PingContext(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	life, stop := context.WithCancel(context.Background())
	p := &checkpointer{s: s, db: db, wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	s.checkpoints = p
	go p.run(life)
	return nil
}

// grew is told by whoever has the writer how many pages were added to the log.
func (p *checkpointer) grew(pages int) {
	p.grown += pages
	if p.grown < walPages {
		return
	}
	p.grown = 0
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *checkpointer) run(ctx context.Context) {
	defer close(p.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			// What fails now is tried again when the log has grown as much again, and
			// in the end by a commit.
			_ = p.round(ctx)
		}
	}
}

// round copies the log, the last of it while nobody writes.
func (p *checkpointer) round(ctx context.Context) error {
	if err := p.s.inPlace(); err != nil {
		return err
	}
	for range walPasses {
		rest, err := p.copy(ctx)
		if err != nil {
			return err
		}
		if rest <= walRest {
			break
		}
	}
	sc, err := p.s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer sc.Close()
	_, err = p.copy(ctx)
	return err
}

// copy copies what is in the log and that no reader still needs in the database
// as it was. It returns how many pages are left, some of which came meanwhile.
func (p *checkpointer) copy(ctx context.Context) (rest int, err error) {
	var busy, pages, copied int
	err = p.db.QueryRowContext(ctx, `pragma wal_checkpoint(passive)`).Scan(&busy, &pages, &copied)
	return pages - copied, err
}

// close ends it. Its connection must be closed before that of the writer, which
// removes the log.
func (p *checkpointer) close() error {
	p.stop()
	<-p.ended
	return p.db.Close()
}
