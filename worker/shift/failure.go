package shift

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi"
)

// Codes that the worker itself gives to failures.
const (
	CodeError       = "error"            // an error that says nothing of itself
	CodePanic       = "panic"            // the function panicked
	CodeTimedOut    = "timed_out"        // the function ended because its time was up
	CodeInterrupted = "interrupted"      // the function ended because its context did, for another reason
	CodeBadInput    = "bad_input"        // the input does not fit the function
	CodeBadOutput   = "bad_output_value" // the output cannot be encoded
	CodeTooLarge    = "output_too_large" // the output is above what the server takes
	CodeNoHandler   = "no_handler"       // the task names an activity that is not registered
)

// Why the context of a call ended.
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

// Failure is a failure as the server takes it: a code of at most 256 bytes, never
// empty, a message cut at 4,000 bytes, both UTF-8 without NUL, and nothing for
// applied that is not in the protocol. All else would be refused, and the failure
// never heard.
func Failure(code, message string, retryable bool, applied ringi.Applied) ringi.Failure {
	if code = sendable(code, maxCode); code == "" {
		code = CodeError
	}
	if applied != "" && applied != ringi.AppliedNo {
		applied = ringi.AppliedUnknown
	}
	return ringi.Failure{Code: code, Message: sendable(message, maxMessage), Retryable: retryable, Applied: applied}
}

// Unexplained is the failure of a call that ended with an error which says
// nothing of itself but a message. cause is why its context had ended, nil if it
// had not.
func Unexplained(message string, cause error) ringi.Failure {
	code := CodeError
	switch {
	case errors.Is(cause, ErrTimeout):
		code = CodeTimedOut
	case cause != nil:
		code, message = CodeInterrupted, fmt.Sprintf("%v: %s", cause, message)
	}
	return Failure(code, message, true, "")
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
