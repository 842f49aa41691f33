package ringi

import "errors"

// A Code says what kind of thing went wrong. The set is closed: clients may
// switch on it, and the HTTP API uses the same words.
type Code string

// The codes, DESIGN section 12.
const (
	CodeInvalid          Code = "invalid"            // the request can never succeed as it is
	CodeUnauthenticated  Code = "unauthenticated"    // no key, or an unknown one
	CodeForbidden        Code = "forbidden"          // the actor may not do this
	CodeNotFound         Code = "not_found"          // no such run, step, definition, incident
	CodeStartKeyConflict Code = "start_key_conflict" // the key belongs to a run with other input
	CodeAlreadyDecided   Code = "already_decided"    // the approval or incident is closed
	CodeVersionChanged   Code = "version_changed"    // the voter saw another subject than the one that stands
	CodePastPivot        Code = "past_pivot"         // an irreversible step may have begun
	CodeStaleLease       Code = "stale_lease"        // the token is not the current one
	CodeFinal            Code = "final"              // the run has ended
	CodeTooLarge         Code = "too_large"          // a payload above its limit
	CodeLimit            Code = "limit"              // a quota is used up
	CodeUnavailable      Code = "unavailable"        // the store cannot be reached; try again
	CodeInternal         Code = "internal"           // a fault of ours; details are in the server's log
)

// An Error is the one error type that crosses package borders: what happened,
// and what to do next. It is a plain value and safe to share.
type Error struct {
	Code    Code
	Message string // what happened, for a person
	Hint    string // what to do next; may be empty
	Err     error  // the cause, for the operator's log; never shown to clients
}

// Error returns the message, and the hint when there is one.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later unchanged.
func (e *Error) Retryable() bool { return e.Code == CodeUnavailable || e.Code == CodeLimit }

// ErrorCode returns the code of err: "" for nil, CodeInternal for an error
// that is not an *Error anywhere in its chain.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

func refuse(code Code, message, hint string) *Error {
	return &Error{Code: code, Message: message, Hint: hint}
}
