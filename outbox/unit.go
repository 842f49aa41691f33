package outbox

import (
	"context"
	"fmt"
	"time"
)

// rollbackTime bounds a rollback. It runs also when the context has ended, since
// a transaction left open would hold its locks.
const rollbackTime = 5 * time.Second

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
// and messages. The error is the work's own, or says what failed.
//
// If the commit itself fails, it may have happened all the same. The messages
// that were added before Do are kept then; when Do is called again and they stand
// already, it fails with ErrDuplicate and the second change is rolled back.
func (u *UnitOfWork[T]) Do(ctx context.Context, work func(ctx context.Context, tx T) error) error {
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
		u.pending = u.pending[:before]
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		// Its error adds nothing: a transaction that cannot be rolled back ends
		// with its connection.
		_ = u.Database.Rollback(ending, tx)
	}()
	if err := u.write(ctx, tx, work); err != nil {
		return err
	}
	crash(CrashBeforeCommit)
	if err := u.Database.Commit(ctx, tx); err != nil {
		return fmt.Errorf("outbox: commit of the change and %d messages: %w", len(u.pending), err)
	}
	crash(CrashCommitted)
	committed = true
	wrote := len(u.pending) > 0
	u.pending = nil
	if wrote && u.Wake != nil {
		crash(CrashBeforeWake)
		u.Wake()
	}
	return nil
}

// Join does the work and writes the messages in a transaction that the caller
// has begun and will commit or roll back; work may be nil. After an error, or a
// panic, the caller rolls back. The messages are kept, because only the caller
// learns of the commit: after it he calls Forget, and after a rollback he may
// call Join again.
func (u *UnitOfWork[T]) Join(ctx context.Context, tx T, work func(ctx context.Context, tx T) error) error {
	before := len(u.pending)
	done := false
	defer func() {
		if !done {
			u.pending = u.pending[:before]
		}
	}()
	if err := u.write(ctx, tx, work); err != nil {
		return err
	}
	done = true
	return nil
}

func (u *UnitOfWork[T]) write(ctx context.Context, tx T, work func(ctx context.Context, tx T) error) error {
	if work != nil {
		if err := work(ctx, tx); err != nil {
			return err
		}
	}
	if len(u.pending) == 0 {
		return nil
	}
	return u.Database.WriteMessages(ctx, tx, u.pending...)
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
