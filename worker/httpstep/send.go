package httpstep

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/workflow"
)

// An answer is what came back of a request, or why nothing did.
type answer struct {
	method, host string
	connected    bool // the request may have been sent
	err          error
	status       int
	header       http.Header
	body         []byte
	tooLarge     bool // body is only its beginning
}

// send makes the call. The body of an answer is read whole, up to MaxAnswer.
func (p *Performer) send(req *http.Request) answer {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := p.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	a := answer{method: req.Method, host: req.URL.Host, connected: connected.Load(), err: err}
	if err != nil {
		return a
	}
	a.status, a.header = resp.StatusCode, resp.Header
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	_ = resp.Body.Close() // the connection goes with it, whatever it says
	if a.tooLarge = len(a.body) > MaxAnswer; a.tooLarge {
		a.body = a.body[:MaxAnswer]
	}
	if err != nil && a.status < http.StatusBadRequest { // else the status has said it all
		a.err = fmt.Errorf("the body of the answer %d did not come whole: %w", a.status, err)
	}
	return a
}

// failure says what a call without an answer means.
func (a answer) failure(ctx context.Context, task ringi.Task) *worker.Failure {
	f := &worker.Failure{Retryable: true, Message: fmt.Sprintf("%s %s: %v", a.method, a.host, a.err)}
	var private *egress.PrivateError
	var certificate *tls.CertificateVerificationError
	switch cause := context.Cause(ctx); {
	case errors.As(a.err, &private):
		f.Code, f.Retryable = workflow.CodeHTTPForbidden, false
		f.Message = fmt.Sprintf("%s %s: %v; an operator allows a network with --http-allow", a.method, a.host, private)
	case errors.Is(cause, worker.ErrTimeout):
		f.Code = worker.CodeTimedOut
	case cause != nil:
		f.Code = worker.CodeInterrupted
	case !a.connected:
		f.Code, f.Retryable = workflow.CodeHTTPUnreachable, !errors.As(a.err, &certificate)
	default:
		f.Code = workflow.CodeHTTPNoAnswer
	}
	if !a.connected {
		f.Applied = notApplied(task, f.Retryable)
	}
	return f
}

// notApplied is what is said of a call that certainly did nothing. A final no of
// an idempotent call would speak for every attempt under its key, and this one
// knows nothing of those before it.
func notApplied(task ringi.Task, retryable bool) ringi.Applied {
	if !retryable && task.Effect == string(workflow.Idempotent) && !first(task) {
		return ringi.AppliedUnknown
	}
	return ringi.AppliedNo
}

// first reports whether nobody can have made the call before: this is the first
// hand-out of the first attempt.
func first(task ringi.Task) bool {
	return task.Attempt == 1 && task.Token == ringi.TokenSeq(task.Token)<<16+1
}
