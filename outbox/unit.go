package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/outbox/crash"
)

// rollbackTime bounds a rollback. It runs also when the context has ended, since
// a transaction left open would hold its locks.
const rollbackTime = 5 * time.Second

// ErrNested says that Do or Join was called from inside the work of the same unit.
// A second transaction there would commit the messages of the first, whose change
// may still be rolled back. Use the transaction that the work was given, and Add
// for its messages; a change that shall stand by itself has a unit of its own.
var ErrNested = errors.New("outbox: a unit of work was begun inside its own work; use the transaction that the work was given, or a unit of its own for a change that shall stand by itself")

// UnitOfWork collects messages and commits them together with the change that
// they announce, both or neither, in a transaction of type T.
//
// It is made for one task and used from one goroutine. Messages that were added
// before Do stay until a commit has written them, so that the task can be tried
// again; those that the work itself adds belong to that try and go with it.
type UnitOfWork[T any] struct {
	// Database holds the change and the outbox.
	Database Database[T]

	// Stamp completes the messages when they are added.
	Stamp Stamp

	// Wake, if set, is called after a commit that wrote messages, to tell a relay
	// in this process. It must not block; see Waker.
	Wake func()

	pending []Message
	working bool // the work of Do or Join is under way
}

// Add keeps messages for the next commit. Each is completed and checked now, its
// id and the trace of ctx fixed; after an error none of them is kept.
func (u *UnitOfWork[T]) Add(ctx context.Context, msgs ...Message) error {
	stamped := make([]Message, len(msgs))
	for i, m := range msgs {
		if err := u.Stamp.Apply(ctx, &m); err != nil {
			return err
		}
		stamped[i] = m
	}
	u.pending = append(u.pending, stamped...)
	return nil
}

// Pending returns how many messages wait for a commit.
func (u *UnitOfWork[T]) Pending() int { return len(u.pending) }

// Forget drops the messages that wait. Who uses Join calls it after the commit.
func (u *UnitOfWork[T]) Forget() { u.pending = nil }

// Do begins a transaction, does the work in it, writes the messages and commits.
// After any error, and while a panic goes through it, it rolls both back: change
// and messages. The error is the work's own, or says what failed; it is ErrNested
// inside the unit's own work.
//
// If the commit itself fails, it may have happened all the same. The messages
// that were added before Do are kept then; when Do is called again and they stand
// already, it fails with ErrDuplicate and the second change is rolled back.
func (u *UnitOfWork[T]) Do(ctx context.Context, work func(ctx context.Context, tx T) error) error {
	if u.working {
		return ErrNested
	}
	tx, err := u.Database.Begin(ctx)
	if err != nil {
		return err
	}
	before := len(u.pending)
	committed := false
	defer func() {
		if committed {
			return
		}
		u.keep(before)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		// Its error adds nothing: a transaction that cannot be rolled back ends
		// with its connection.
		_ = u.Database.Rollback(ending, tx)
	}()
	if err := u.write(ctx, tx, work); err != nil {
		return err
	}
	crash.At(crash.BeforeCommit)
	if err := u.Database.Commit(ctx, tx); err != nil {
		return fmt.Errorf("outbox: commit of the change and %d messages: %w", len(u.pending), err)
	}
	crash.At(crash.Committed)
	committed = true
	wrote := len(u.pending) > 0
	u.pending = nil
	if wrote && u.Wake != nil {
		crash.At(crash.BeforeWake)
		u.Wake()
	}
	return nil
}

// Join does the work and writes the messages in a transaction that the caller
// has begun and will commit or roll back; work may be nil. After an error, or a
// panic, the caller rolls back. The messages are kept, because only the caller
// learns of the commit: after it he calls Forget, and after a rollback he may
// call Join again. A transaction is joined once: a second Join in it would write
// the kept messages a second time, which is ErrDuplicate.
func (u *UnitOfWork[T]) Join(ctx context.Context, tx T, work func(ctx context.Context, tx T) error) error {
	if u.working {
		return ErrNested
	}
	before := len(u.pending)
	done := false
	defer func() {
		if !done {
			u.keep(before)
		}
	}()
	if err := u.write(ctx, tx, work); err != nil {
		return err
	}
	done = true
	return nil
}

// keep drops what was added behind the first n messages. The work may have
// forgotten some of those.
func (u *UnitOfWork[T]) keep(n int) { u.pending = u.pending[:min(n, len(u.pending))] }

func (u *UnitOfWork[T]) write(ctx context.Context, tx T, work func(ctx context.Context, tx T) error) error {
	if err := u.run(ctx, tx, work); err != nil {
		return err
	}
	if len(u.pending) == 0 {
		return nil
	}
	return u.Database.WriteMessages(ctx, tx, u.pending...)
}

// run does the work, if there is any.
func (u *UnitOfWork[T]) run(ctx context.Context, tx T, work func(ctx context.Context, tx T) error) error {
	if work == nil {
		return nil
	}
	u.working = true
	defer func() { u.working = false }()
	return work(ctx, tx)
}

// Waker returns a hint for UnitOfWork.Wake and the channel for RelayConfig.Wake.
// A hint that nobody has taken yet is not given twice.
func Waker() (wake func(), hints <-chan struct{}) {
	c := make(chan struct{}, 1)
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}, c
}
