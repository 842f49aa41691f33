package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringiflow/ringi"
)

// problemType is the media type of a Refusal, RFC 9457.
const problemType = "application/problem+json"

// retryAfter is the Retry-After of refusals that may pass, in seconds.
const retryAfter = "1"

// A Refusal is the body of every answer that is not a success: a problem of
// RFC 9457 with our code, hint and retryable. It is what a *ringi.Error looks
// like on the wire.
type Refusal struct {
	Type      string          `json:"type" doc:"always about:blank: the code says what kind it is"`
	Title     string          `json:"title" doc:"the text of the HTTP status"`
	Status    int             `json:"status" doc:"the HTTP status"`
	Code      ringi.Code      `json:"code" doc:"what kind of thing went wrong; one of a closed set"`
	Detail    string          `json:"detail" doc:"what happened, for a person"`
	Hint      string          `json:"hint,omitempty" doc:"what to do next"`
	Retryable bool            `json:"retryable" doc:"whether the same request may succeed later, unchanged"`
	Errors    []FieldError    `json:"errors,omitempty" doc:"with invalid: the places that are wrong"`
	Problems  []ringi.Problem `json:"problems,omitempty" doc:"with a definition that was not accepted: what is wrong in it"`
}

// A FieldError names one place of a request that is wrong.
type FieldError struct {
	Location string `json:"location" doc:"path, query, header or body, then the way to the field"`
	Message  string `json:"message"`
}

// Error returns the detail; a Refusal is an error so that handlers can return it.
func (r *Refusal) Error() string { return r.Detail }

// GetStatus returns the HTTP status that the answer is sent with.
func (r *Refusal) GetStatus() int { return r.Status }

// ContentType turns the JSON type that was negotiated into that of a problem.
func (r *Refusal) ContentType(string) string { return problemType }

// Codes lists every code of a Refusal, in the order of DESIGN section 12.
func Codes() []ringi.Code {
	return []ringi.Code{
		ringi.CodeInvalid, ringi.CodeUnauthenticated, ringi.CodeForbidden, ringi.CodeNotFound,
		ringi.CodeStartKeyConflict, ringi.CodeAlreadyDecided, ringi.CodeVersionChanged, ringi.CodePastPivot,
		ringi.CodeStaleLease, ringi.CodeFinal, ringi.CodeTooLarge, ringi.CodeLimit, ringi.CodeUnavailable, ringi.CodeInternal,
	}
}

// StatusOf returns the HTTP status of a code; 500 for one that is not known.
func StatusOf(code ringi.Code) int {
	switch code {
	case ringi.CodeInvalid:
		return http.StatusBadRequest
	case ringi.CodeUnauthenticated:
		return http.StatusUnauthorized
	case ringi.CodeForbidden:
		return http.StatusForbidden
	case ringi.CodeNotFound:
		return http.StatusNotFound
	case ringi.CodeStartKeyConflict, ringi.CodeAlreadyDecided, ringi.CodeVersionChanged,
		ringi.CodePastPivot, ringi.CodeStaleLease, ringi.CodeFinal:
		return http.StatusConflict
	case ringi.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case ringi.CodeLimit:
		return http.StatusTooManyRequests
	case ringi.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// codeOf is the code that comes nearest to a status that HTTP itself gave.
func codeOf(status int) ringi.Code {
	switch status {
	case http.StatusUnauthorized:
		return ringi.CodeUnauthenticated
	case http.StatusForbidden:
		return ringi.CodeForbidden
	case http.StatusNotFound:
		return ringi.CodeNotFound
	case http.StatusConflict:
		return ringi.CodeFinal
	case http.StatusRequestEntityTooLarge:
		return ringi.CodeTooLarge
	case http.StatusTooManyRequests:
		return ringi.CodeLimit
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ringi.CodeUnavailable
	}
	if status >= http.StatusInternalServerError {
		return ringi.CodeInternal
	}
	return ringi.CodeInvalid
}

// refusal makes the answer to err. What is not an *ringi.Error is a fault of
// ours, about which a stranger learns nothing.
func refusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	var e *ringi.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = &ringi.Error{Code: ringi.CodeUnavailable, Message: "the caller stopped waiting", Hint: "send it again"}
	default:
		e = &ringi.Error{
			Code:    ringi.CodeInternal,
			Message: "the server met a fault of its own",
			Hint:    "the details are in its log",
		}
	}
	status := StatusOf(e.Code)
	return &Refusal{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: e.Code, Detail: e.Message, Hint: e.Hint, Retryable: e.Retryable(),
	}
}

// refuse is a refusal under a status of HTTP's own that no code stands for.
func refuse(status int, detail, hint string) *Refusal {
	return &Refusal{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: codeOf(status), Detail: detail, Hint: hint, Retryable: codeOf(status) == ringi.CodeUnavailable,
	}
}

// write sends the refusal past huma, for what is refused before or beside it.
func (r *Refusal) write(w http.ResponseWriter) {
	body, err := json.Marshal(r)
	if err != nil { // a Refusal holds only text and numbers
		http.Error(w, r.Detail, r.Status)
		return
	}
	r.headers(w.Header())
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(r.Status)
	_, _ = w.Write(append(body, '\n')) // the caller may be gone; there is nobody left to tell
}

// headers sets what goes along with a refusal.
func (r *Refusal) headers(h http.Header) {
	if r.Retryable {
		h.Set("Retry-After", retryAfter)
	}
	if r.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
}

// asRefusal turns the errors that huma makes itself (of validation, size and
// syntax) into Refusals. It is a huma.Transformer.
func asRefusal(_ huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	r := refuse(ourStatus(model.Status), model.Detail, "")
	var places []string
	for _, d := range model.Errors {
		if d == nil {
			continue
		}
		r.Errors = append(r.Errors, FieldError{Location: d.Location, Message: d.Message})
		places = append(places, strings.TrimSpace(d.Location+" "+d.Message))
	}
	if len(places) > 0 {
		r.Detail = strings.Join(places, "; ")
	}
	switch r.Code {
	case ringi.CodeInvalid:
		r.Hint = "compare the request with /openapi.json"
	case ringi.CodeTooLarge:
		r.Hint = fmt.Sprintf("a request holds at most %d bytes; send less at a time", MaxBody)
	}
	return r, nil
}

// ourStatus replaces the statuses of huma that we do not use.
func ourStatus(status int) int {
	if status == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return status
}

// answered lets a handler's error through as a Refusal and shows faults of
// ours to the operator.
func (s *Server) answered(ctx context.Context, route string, err error) error {
	r := refusal(err)
	if r.Code == ringi.CodeInternal {
		s.failed(ctx, route, err)
	}
	if !r.Retryable {
		return r
	}
	h := http.Header{}
	r.headers(h)
	return huma.ErrorWithHeaders(r, h)
}

// failed shows a fault of ours to the operator. That a caller went away is none,
// whatever the layers below make of the end of its context.
func (s *Server) failed(ctx context.Context, route string, err error) {
	gone := ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	if s.config.Failed != nil && !gone {
		s.config.Failed(ctx, route, err)
	}
}
