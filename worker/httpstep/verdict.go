package httpstep

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/workflow"
)

// A verdict is made of an answer, for a task and what its step expects.
type verdict struct {
	answer
	task   ringi.Task
	expect []int
	now    time.Time
}

// called is the output of a step or an undo, or its failure.
func (v verdict) called() (json.RawMessage, error) {
	if v.expected() {
		return v.output()
	}
	return nil, v.unexpected()
}

// probed says whether the call that is asked about had its effect.
func (v verdict) probed() (json.RawMessage, error) {
	switch {
	case v.expected():
	case v.status == http.StatusNotFound, v.status == http.StatusGone:
		return json.RawMessage(`{"applied":"no"}`), nil
	default:
		return nil, v.unexpected()
	}
	output, err := v.output()
	if err != nil {
		return nil, err
	}
	var own struct {
		Applied ringi.Applied `json:"applied"`
	}
	if json.Unmarshal(output, &own) == nil && slices.Contains([]ringi.Applied{ringi.AppliedYes, ringi.AppliedNo, ringi.AppliedUnknown}, own.Applied) {
		return output, nil
	}
	return slices.Concat([]byte(`{"applied":"yes","output":`), output, []byte(`}`)), nil
}

func (v verdict) expected() bool {
	if v.expect == nil {
		return v.status >= 200 && v.status < 300
	}
	return slices.Contains(v.expect, v.status)
}

// output is the body as a value: JSON as it is, nothing as null, all else as
// text. What claims to be JSON and is not is text too: the call had its effect,
// and a schema for the output finds it.
func (v verdict) output() (json.RawMessage, error) {
	if v.tooLarge {
		return nil, &worker.Failure{
			Code: worker.CodeTooLarge, Applied: ringi.AppliedUnknown,
			Message: fmt.Sprintf("%s %s answered %d with more than %d bytes", v.method, v.host, v.status, MaxAnswer),
		}
	}
	if len(v.body) == 0 {
		return json.RawMessage("null"), nil
	}
	kind, _, err := mime.ParseMediaType(v.header.Get("Content-Type"))
	mayBeJSON := isJSON(kind) || err != nil && v.header.Get("Content-Type") == ""
	if mayBeJSON && utf8.Valid(v.body) && json.Valid(v.body) {
		return v.body, nil
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(v.body), "\uFFFD"), "\x00", "\uFFFD")
	return json.Marshal(text)
}

// unexpected is the failure that a status stands for.
func (v verdict) unexpected() *worker.Failure {
	f := &worker.Failure{Code: fmt.Sprintf("http_%d", v.status), Retryable: v.mayPass(), Applied: v.applied()}
	f.Message = fmt.Sprintf("%s %s answered %d %s", v.method, v.host, v.status, http.StatusText(v.status))
	if to := v.header.Get("Location"); to != "" && v.status >= 300 && v.status < 400 {
		f.Message += ", which leads to " + to[:min(len(to), excerpt)] + " and is not followed"
	}
	if len(v.body) > 0 {
		f.Message += ": " + strings.ToValidUTF8(string(v.body[:min(len(v.body), excerpt)]), "")
	}
	if wait, ok := egress.RetryAfter(v.header, v.now); ok && f.Retryable {
		f.RetryAfter = wait
	}
	return f
}

// mayPass reports whether the same request may be answered otherwise later.
func (v verdict) mayPass() bool {
	switch v.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusConflict:
		return v.task.Effect == string(workflow.Idempotent)
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return v.status >= http.StatusInternalServerError
}

// applied says what an unexpected status tells about the effect; "" leaves it to
// the contract.
func (v verdict) applied() ringi.Applied {
	switch v.status {
	case http.StatusTooEarly, http.StatusTooManyRequests:
		return ringi.AppliedNo // said before anything is done
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		return ringi.AppliedNo // said by who has looked at request and key
	}
	switch {
	case v.status < http.StatusBadRequest:
		return ringi.AppliedUnknown // a redirect to what was made, or a success that nobody expected
	case v.mayPass():
		return ""
	}
	return notApplied(v.task, false)
}
