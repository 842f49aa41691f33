package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ringiflow/ringi"
)

// The exit codes. Scripts rely on them.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitNotAllowed   = 4   // no key, an unknown one, or one that may not do this
	exitNotCompleted = 5   // the awaited run ended, and not as completed
	exitProblems     = 6   // a definition has problems
	exitConflict     = 7   // the world has moved on: decided already, final, another subject
	exitWaited       = 8   // the awaited run did not end in time
	exitUnreachable  = 10  // no answer, or none that is durable, from the server
	exitInterrupted  = 130 // by a signal, as shells say it
)

// exitCodesText is the help topic exit-codes.
const exitCodesText = `Every command exits with one of these codes:

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

// An ending is an error with an exit code of its own.
type ending struct {
	code    int
	message string // "" says nothing: the data on standard output says it all
	hint    string // what to do next
	err     error  // the cause, which the message already tells
}

// Error returns the message, and the hint when there is one.
func (e *ending) Error() string {
	if e.hint == "" {
		return e.message
	}
	return e.message + " (" + e.hint + ")"
}

// Unwrap returns the cause.
func (e *ending) Unwrap() error { return e.err }

// usage is the error of a call that cannot work however often it is repeated.
func usage(hint, format string, args ...any) error {
	return &ending{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
}

// errInterrupted is the cause with which a signal ends a command.
var errInterrupted = errors.New("interrupted")

// exitCode returns the code that err stands for.
func exitCode(err error) int {
	var e *ending
	var r *ringi.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &r):
		return exitCodeOf(r.Code)
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailed
}

func exitCodeOf(code ringi.Code) int {
	switch code {
	case ringi.CodeUnauthenticated, ringi.CodeForbidden:
		return exitNotAllowed
	case ringi.CodeNotFound:
		return exitNotFound
	case ringi.CodeStartKeyConflict, ringi.CodeAlreadyDecided, ringi.CodeVersionChanged,
		ringi.CodePastPivot, ringi.CodeStaleLease, ringi.CodeFinal:
		return exitConflict
	case ringi.CodeUnavailable:
		return exitUnreachable
	}
	return exitFailed
}

func endingOf(err error) *ending {
	var e *ending
	if errors.As(err, &e) {
		return e
	}
	return nil
}

func refusalOf(err error) *ringi.Error {
	var r *ringi.Error
	if errors.As(err, &r) {
		return r
	}
	return nil
}
