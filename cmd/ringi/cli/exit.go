package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ringiflow/ringi"
)

// The exit codes. Scripts rely on them.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNotFound     = 3
	ExitNotAllowed   = 4   // no key, an unknown one, or one that may not do this
	ExitNotCompleted = 5   // the awaited run ended, and not as completed
	ExitProblems     = 6   // a definition has problems
	ExitConflict     = 7   // the world has moved on: decided already, final, another subject
	ExitWaited       = 8   // the awaited run did not end in time
	ExitUnreachable  = 10  // no answer, or none that is durable, from the server
	ExitInterrupted  = 130 // by a signal, as shells say it
)

// ExitCodesText is the help topic exit-codes.
const ExitCodesText = `Every command exits with one of these codes:

  0    it worked
  1    it failed
  2    it was called in a way that cannot work
  3    not found, or an abbreviated id that fits more than one
  4    not signed in, or not allowed
  5    the awaited run ended, but not as completed
  6    a definition has problems
  7    conflict: already decided, ended, or changed meanwhile
  8    waited too long
  10   the server cannot be reached, or cannot answer durably now
  130  interrupted
`

// An Ending is an error with an exit code of its own.
type Ending struct {
	Code    int
	Message string // "" says nothing: the data on standard output says it all
	Hint    string // what to do next
	Err     error  // the cause, which the message already tells
}

// Error returns the message, and the hint when there is one.
func (e *Ending) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Ending) Unwrap() error { return e.Err }

// Usage is the error of a call that cannot work however often it is repeated.
func Usage(hint, format string, args ...any) error {
	return &Ending{Code: ExitUsage, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// ErrInterrupted is the cause with which a signal ends a command.
var ErrInterrupted = errors.New("interrupted")

// exitCode returns the code that err stands for.
func exitCode(err error) int {
	var e *Ending
	var r *ringi.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &r):
		return exitCodeOf(r.Code)
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, fs.ErrNotExist):
		return ExitNotFound
	}
	return ExitFailed
}

func exitCodeOf(code ringi.Code) int {
	switch code {
	case ringi.CodeUnauthenticated, ringi.CodeForbidden:
		return ExitNotAllowed
	case ringi.CodeNotFound:
		return ExitNotFound
	case ringi.CodeStartKeyConflict, ringi.CodeAlreadyDecided, ringi.CodeVersionChanged,
		ringi.CodePastPivot, ringi.CodeStaleLease, ringi.CodeFinal:
		return ExitConflict
	case ringi.CodeUnavailable:
		return ExitUnreachable
	}
	return ExitFailed
}

func endingOf(err error) *Ending {
	var e *Ending
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// RefusalOf returns the refusal of a server in err, or nil.
func RefusalOf(err error) *ringi.Error {
	var r *ringi.Error
	if errors.As(err, &r) {
		return r
	}
	return nil
}
