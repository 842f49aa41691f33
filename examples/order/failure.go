package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// What is known about the effect of a call that failed, and what a probe answers.
const (
	AppliedYes     = "yes"     // only of a probe: the call had its effect
	AppliedNo      = "no"      // certainly no effect
	AppliedUnknown = "unknown" // nobody can tell from here
)

// Codes of failures that come from the way to a service and not from the
// service; its own codes are those of its refusals, such as out_of_stock.
const (
	codeUnreachable = "unreachable" // no connection: the call was never sent
	codeUnavailable = "unavailable" // 503: the service did not look at the call
	codeAnswerLost  = "answer_lost" // sent, and no whole answer came back
	codeBadRequest  = "bad_request" // the service did not understand the call
	codeRefused     = "refused"     // a refusal that names no code of its own
	codeInternal    = "internal"    // the service broke down over the call
)

// maxAnswer is the largest answer that is read, in bytes; the largest sent has
// a few hundred.
const maxAnswer = 256 << 10

// A Failure is how a call ended that did not succeed. Every error of an
// activity in this package is a *Failure.
type Failure struct {
	Code      string // what went wrong, for stop_on and catch
	Message   string // the same for people
	Retryable bool   // whether the same call may succeed later
	Applied   string // AppliedNo or AppliedUnknown: what is known about its effect
}

// Error returns code and message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// call posts in to url and decodes the answer into out, which may be nil. What
// it reports about the effect of a failed call is what can be proved: a
// connection that was never made or a refusal is a no, anything that went wrong
// after sending is unknown. Services answer 503 only for what they did not look
// at, which is part of what they promise.
func call(ctx context.Context, client *http.Client, url string, in request, out any) error {
	if client == nil {
		client = http.DefaultClient
	}
	body, err := json.Marshal(in)
	if err != nil {
		return &Failure{Code: codeBadRequest, Message: fmt.Sprintf("write the call to %s: %v", url, err), Applied: AppliedNo}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return &Failure{Code: codeBadRequest, Message: fmt.Sprintf("the address of the service is wrong: %v", err), Applied: AppliedNo}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return noAnswer(url, err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer has been read by then, or is lost anyway
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return noAnswer(url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return failureOf(url, resp.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Failure{Code: codeAnswerLost, Message: fmt.Sprintf("%s answered what cannot be read: %v", url, err), Retryable: true, Applied: AppliedUnknown}
	}
	return nil
}

// noAnswer judges a call to which no answer came.
func noAnswer(url string, err error) *Failure {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &Failure{Code: codeUnreachable, Message: fmt.Sprintf("no connection to %s: %v", url, err), Retryable: true, Applied: AppliedNo}
	}
	return &Failure{Code: codeAnswerLost, Message: fmt.Sprintf("no answer from %s: %v", url, err), Retryable: true, Applied: AppliedUnknown}
}

// failureOf judges an answer that is not a success.
func failureOf(url string, status int, body []byte) *Failure {
	var said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &said) // an answer without code and message is judged by its status alone
	f := &Failure{Code: said.Code, Message: said.Message, Applied: AppliedNo}
	switch {
	case status == http.StatusServiceUnavailable:
		f.Code, f.Retryable = codeUnavailable, true
	case status >= http.StatusInternalServerError:
		f.Code, f.Retryable, f.Applied = codeInternal, true, AppliedUnknown
	case status >= http.StatusBadRequest && f.Code == "":
		f.Code = codeRefused
	case status < http.StatusBadRequest:
		f.Code, f.Retryable, f.Applied = codeAnswerLost, true, AppliedUnknown
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("%s answered %d", url, status)
	}
	return f
}
