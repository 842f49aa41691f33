package outbox

import (
	"context"

	"github.com/ringiflow/ringi/outbox/crash"
)

// writing is marks on their way to the source. Until they are there their claim has
// the messages, so that the batches after it hold none of their keys.
type writing struct {
	marks []Mark
	done  chan struct{} // closed when the rest is known

	applied int
	err     error
}

// settle writes the marks that are owed. If the source fails they are kept, and
// nothing new is claimed until they are written: sending a message twice is
// allowed, but not for want of a second try at the mark.
func (r *Relay) settle(ctx context.Context, rep *Report) error {
	if err := r.settled(rep); err != nil || len(r.unmarked) == 0 {
		return err
	}
	r.write(ctx)
	return r.settled(rep)
}

// settleBehind begins to write the marks that are owed, when those before are written:
// the database does so while the destination takes the next batch.
func (r *Relay) settleBehind(ctx context.Context, rep *Report) error {
	if err := r.settled(rep); err != nil || len(r.unmarked) == 0 {
		return err
	}
	w := &writing{marks: r.unmarked, done: make(chan struct{})}
	r.unmarked, r.writing = nil, w
	at := r.cfg.Now()
	go func() {
		defer close(w.done)
		// Also when ctx ends: what is known about the batch must not be lost.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
		defer cancel()
		w.applied, w.err = r.cfg.Source.Mark(ctx, at, w.marks)
	}()
	return nil
}

// settled waits for the marks that are on their way.
func (r *Relay) settled(rep *Report) error {
	w := r.writing
	if w == nil {
		return nil
	}
	<-w.done
	r.writing = nil
	if w.err != nil {
		r.unmarked = append(w.marks, r.unmarked...)
		return w.err
	}
	crash.At(crash.Marked)
	rep.Lost += len(w.marks) - w.applied
	r.marked(w.marks)
	return nil
}

// write writes the marks that are owed.
func (r *Relay) write(ctx context.Context) {
	w := &writing{marks: r.unmarked, done: make(chan struct{})}
	r.unmarked, r.writing = nil, w
	w.applied, w.err = r.cfg.Source.Mark(ctx, r.cfg.Now(), w.marks)
	close(w.done)
}
