package metric

import (
	"context"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
)

// Store counts what a store was asked to commit and what it took, gives messages
// their destinations, and tells when some were written. It is as safe for
// concurrent use as its functions.
type Store struct {
	store.Store
	Metrics *Metrics

	// Routes choose where messages go. They limit no sizes.
	Routes outbox.Routes

	// Wrote is called after a commit of messages and must not block.
	Wrote func()
}

// Commit implements store.Store, and counts the writes that were applied.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	for i := range writes {
		for j := range writes[i].Messages {
			if err := s.Routes.Apply(&writes[i].Messages[j]); err != nil {
				return store.Committed{}, err // none of our routes limits sizes
			}
		}
	}
	done, err := s.Store.Commit(ctx, writes...)
	if len(writes) == 0 {
		return done, err
	}
	if err != nil {
		s.Metrics.failed.Inc()
		return done, err
	}
	s.Metrics.commits.Inc()
	s.Metrics.batch.Observe(float64(len(writes)))
	lost := map[int]bool{}
	for _, l := range done.Lost {
		lost[l.Index] = true
		s.Metrics.lostWrites.WithLabelValues(string(l.What)).Inc()
	}
	for i := range writes {
		if lost[i] {
			continue
		}
		if writes[i].Start != nil {
			s.Metrics.started.Inc()
		}
		if len(writes[i].Messages) > 0 {
			s.Wrote()
		}
		if status, ends := endOf(&writes[i]); ends {
			s.Metrics.ended.WithLabelValues(string(status)).Inc()
		}
	}
	return done, nil
}

// endOf is the final status that a write gives its run.
func endOf(w *store.Write) (ringi.Status, bool) {
	switch {
	case w.Run != nil:
		return w.Run.Status, w.Run.Status.Final()
	case w.Start != nil:
		return w.Start.Status, w.Start.Status.Final()
	}
	return "", false
}
