package inbox

import (
	"context"
	"errors"
	"fmt"
)

// refusal marks an error that no further try can mend.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// Refuse says that a message can never be handled as it is, for the reason err: it is
// set aside at once. Refuse(nil) is nil.
func Refuse(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// excuse marks an error that is none of the message's.
type excuse struct{ err error }

func (e *excuse) Error() string { return e.err.Error() }
func (e *excuse) Unwrap() error { return e.err }

// Excuse says that the failure err is an outage and not the message's: it is tried
// again and again, and nothing is counted. Excuse(nil) is nil.
func Excuse(err error) error {
	if err == nil {
		return nil
	}
	return &excuse{err}
}

const forgetFailures = `delete from inbox_poison where consumer = $1 and message = $2 and poisoned_at is null`

// Guard handles one delivery whose work is not in the consumer's database: it is done
// by a server that has committed when work returns nil, and that knows a repeat by the
// message's id, which therefore is the server's to keep. What Guard adds is the care
// for messages that fail: their failures are counted, and one that failed too often,
// or that Refuse is said of, is set aside whole, as Receive does it. An error made by
// Excuse counts nothing, however often it comes.
//
// A message that was set aside stays so: a repeat of it is not handled.
func (c *Consumer) Guard(ctx context.Context, d Delivery, work func(ctx context.Context) error) (Outcome, error) {
	if err := checkName("message id", d.ID); err != nil {
		return Failed, err
	}
	failures, poisoned, err := c.past(ctx, d.ID)
	switch {
	case err != nil:
		return Failed, err
	case poisoned:
		return Poisoned, nil
	}
	err = work(ctx)
	var refused *refusal
	var excused *excuse
	switch {
	case err == nil && failures > 0:
		if _, err := c.cfg.DB.ExecContext(ctx, c.sql.forgetFailures, c.cfg.Name, d.ID); err != nil {
			return Failed, fmt.Errorf("inbox: forget the failures of message %s: %w", d.ID, err)
		}
		return Handled, nil
	case err == nil:
		return Handled, nil
	case ctx.Err() != nil, errors.As(err, &excused):
		return Failed, err // a shutdown or an outage is not the message's fault
	}
	return c.record(ctx, d, err, errors.As(err, &refused) || c.cfg.Attempts > 0 && failures+1 >= c.cfg.Attempts)
}
