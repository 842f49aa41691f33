package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

// Codes that the worker itself gives to failures.
const (
	CodeError       = "error"            // an error that is not a *Failure
	CodePanic       = "panic"            // the function panicked
	CodeTimedOut    = "timed_out"        // the function ended because its time was up
	CodeInterrupted = "interrupted"      // the function ended because its context did, for another reason
	CodeBadInput    = "bad_input"        // the input does not fit the function
	CodeBadOutput   = "bad_output_value" // the output cannot be encoded
	CodeTooLarge    = "output_too_large" // the output is above what the server takes
	CodeNoHandler   = "no_handler"       // the task names an activity that is not registered
)

// Why the context of a function ended, as context.Cause tells it.
var (
	ErrTimeout   = errors.New("worker: the attempt's time is up")
	ErrLeaseLost = errors.New("worker: the attempt is no longer ours")
	ErrCancelled = errors.New("worker: the run is being undone or has ended")
	ErrStopping  = errors.New("worker: the process is stopping")
)

// Limits of what is sent about a failure, in bytes; the server refuses more.
const (
	maxCode    = 256
	maxMessage = 4000
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
		f = &Failure{Code: CodeError, Message: fmt.Sprintf("%v", err), Retryable: true}
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, ErrTimeout):
			f.Code = CodeTimedOut
		case cause != nil:
			f.Code, f.Message = CodeInterrupted, fmt.Sprintf("%v: %v", cause, err)
		}
	}
	code := sendable(f.Code, maxCode)
	if code == "" {
		code = CodeError
	}
	applied := f.Applied
	if applied != "" && applied != ringi.AppliedNo {
		applied = ringi.AppliedUnknown // all else would be refused, and the failure never heard
	}
	return ringi.Failure{
		Code: code, Message: sendable(f.Message, maxMessage), Retryable: f.Retryable, Applied: applied,
		RetryAfterMS: max(f.RetryAfter, 0).Milliseconds(),
	}
}

// panicked is the failure of a function that did not return.
func panicked(p any) *Failure {
	return &Failure{Code: CodePanic, Message: fmt.Sprint(p), Retryable: true, Applied: ringi.AppliedUnknown}
}

// sendable is text as the server takes it: UTF-8 without NUL, and no more than
// so many bytes.
func sendable(text string, most int) string {
	text = strings.ReplaceAll(text, "\x00", "")
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}
