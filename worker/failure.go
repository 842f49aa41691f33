package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/shift"
)

// Codes that the worker itself gives to failures.
const (
	CodeError       = shift.CodeError       // an error that is not a *Failure
	CodePanic       = shift.CodePanic       // the function panicked
	CodeTimedOut    = shift.CodeTimedOut    // the function ended because its time was up
	CodeInterrupted = shift.CodeInterrupted // the function ended because its context did, for another reason
	CodeBadInput    = shift.CodeBadInput    // the input does not fit the function
	CodeBadOutput   = shift.CodeBadOutput   // the output cannot be encoded
	CodeTooLarge    = shift.CodeTooLarge    // the output is above what the server takes
	CodeNoHandler   = shift.CodeNoHandler   // the task names an activity that is not registered
)

// Why the context of a function ended, as context.Cause tells it.
//
// constant: the errors of package shift, under the names that functions see.
var (
	ErrTimeout   = shift.ErrTimeout
	ErrLeaseLost = shift.ErrLeaseLost
	ErrCancelled = shift.ErrCancelled
	ErrStopping  = shift.ErrStopping
)

// A Failure says how an attempt failed. It is an error for functions to return.
type Failure struct {
	Code      string        // what retry.stop_on and catch.on name; at most 256 bytes
	Message   string        // for a person; cut at 4,000 bytes
	Retryable bool          // whether another attempt may succeed
	Applied   ringi.Applied // whether the call may have had its effect; "": as the effect contract says
	// RetryAfter is how long the service asked to be left alone: the next
	// attempt is not made before. 0 leaves it to the step's backoff; more than
	// ringi.MaxRetryAfter counts as that.
	RetryAfter time.Duration
}

// Error returns code and message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return f.Code
	}
	return f.Code + ": " + f.Message
}

// Fail is a definite no of the outside service: the call had no effect, and
// making it again will not help.
func Fail(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Applied: ringi.AppliedNo}
}

// failureOf is what is reported of an error. ctx is the function's. The error may
// be a nil pointer in an interface, and is reported all the same: fmt.Sprint
// lives through methods that panic.
func failureOf(ctx context.Context, err error) ringi.Failure {
	f := &Failure{}
	if !errors.As(err, &f) || f == nil {
		return shift.Unexplained(fmt.Sprintf("%v", err), context.Cause(ctx))
	}
	told := shift.Failure(f.Code, f.Message, f.Retryable, f.Applied)
	told.RetryAfterMS = max(f.RetryAfter, 0).Milliseconds()
	return told
}

// panicked is the failure of a function that did not return.
func panicked(p any) *Failure {
	return &Failure{Code: CodePanic, Message: fmt.Sprint(p), Retryable: true, Applied: ringi.AppliedUnknown}
}
