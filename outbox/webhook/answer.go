package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/outbox"
)

// verdict is what an answer means for a message.
type verdict int

const (
	delivered verdict = iota
	refused           // the message's fault
	down              // the endpoint's fault
)

// answer is an endpoint's answer, judged.
type answer struct {
	verdict  verdict
	status   int
	patience time.Duration // how long it asks to be left alone; below 0 it does not
	text     string        // the beginning of its body
}

// judge reads an answer. What is not clearly the message's fault is the
// endpoint's.
func judge(resp *http.Response, body []byte, now time.Time) answer {
	a := answer{status: resp.StatusCode, patience: -1, text: strings.ToValidUTF8(string(body[:min(len(body), excerpt)]), "")}
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return a
	case status < 400, status >= 500, ofEndpoint(status):
		a.verdict = down
	default:
		a.verdict = refused
		return a
	}
	if wait, ok := egress.RetryAfter(resp.Header, now); ok {
		a.patience = min(wait, RetryAfterMost)
	} else if a.status == http.StatusTooManyRequests {
		a.patience = 0 // it asks for a pause and leaves the length to us
	}
	return a
}

// ofEndpoint tells whether a 4xx says something about the endpoint and not about
// the message: it is slow or busy, does not know our secret, or is not at this
// address. All messages would meet the same, and none should be set aside for it.
func ofEndpoint(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusGone, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

// ofGateway tells whether a 5xx comes from something in front of an endpoint that is
// down, and so says nothing about a message.
func ofGateway(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// error is the answer for the relay.
func (a answer) error(host string) error {
	err := fmt.Errorf("webhook: %s answered %d %s: %q", host, a.status, http.StatusText(a.status), a.text)
	switch {
	case a.verdict == delivered:
		return nil
	case a.status == http.StatusGone:
		return fmt.Errorf("%w; the endpoint wants no more messages, so remove it or its route", err)
	case a.verdict == refused:
		return outbox.Refuse(err)
	case a.patience >= 0:
		return outbox.Excuse(err)
	case a.status >= 500 && !ofGateway(a.status):
		return outbox.Blame(err)
	}
	return err
}
