package httpstep

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/workflow"
)

// Defaults and limits.
const (
	// DefaultSlots is how many calls a node makes at once. Each may hold
	// MaxAnswer and a connection, and waits most of its time.
	DefaultSlots = 100
	// MaxAnswer is the largest body of an answer, in bytes: what a run can keep
	// of one step.
	MaxAnswer = ringi.MaxPayload
	// maxAnswerHeader is the largest header of an answer, in bytes.
	maxAnswerHeader = 64 << 10
	// maxRequestHeader is the largest value of one header of a request, in bytes:
	// what servers commonly take.
	maxRequestHeader = 8 << 10
	// maxURL is the longest url with its query, in bytes: what proxies let through.
	maxURL = 8 << 10
	// excerpt is how much of a bad answer goes into the failure, in bytes.
	excerpt = 500
	// connectTimeout bounds the making of one connection, so that an address that
	// is silent leaves time for the next of the same name.
	connectTimeout = 10 * time.Second
)

// Config says how http steps are performed. The zero value works.
type Config struct {
	// AllowNetworks are the private and special networks that may be dialled all
	// the same. Nil is none.
	AllowNetworks []netip.Prefix

	// Slots is how many calls are made at once; 0 is DefaultSlots. Those to one host
	// (name and port) take a quarter of them, if Performer.Later is asked.
	Slots int

	// Resolver looks up names; nil is the system's.
	Resolver *net.Resolver

	// RootCAs are whose certificates are trusted; nil is the system's.
	RootCAs *x509.CertPool

	// UserAgent is the header of that name; "" is "ringi".
	UserAgent string

	// Now tells the time, for a Retry-After that is a date and for what waits for
	// its host; nil is time.Now.
	Now func() time.Time
}

// A Performer makes the calls of http steps. It may be used by any number of
// goroutines at once.
type Performer struct {
	config    Config
	transport *http.Transport
	share     *share
}

// New makes a performer. It dials nothing.
func New(config Config) *Performer {
	if config.Slots <= 0 {
		config.Slots = DefaultSlots
	}
	if config.UserAgent == "" {
		config.UserAgent = "ringi"
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: config.Resolver, ControlContext: egress.Guard(config.AllowNetworks)}
	return &Performer{config: config, share: newShare(config.Slots), transport: &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}}
}

// Queue is what a worker serves to perform http steps.
func (p *Performer) Queue() worker.Queue {
	return worker.Queue{
		Name: workflow.HTTPQueue, Slots: p.config.Slots,
		Activities: []worker.Activity{worker.Func(workflow.HTTPActivity, p.Perform)},
	}
}

// Perform makes one attempt at the request, for the task of its context, and
// returns the output of the step. Its errors are *worker.Failure.
func (p *Performer) Perform(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	task := worker.Task(ctx)
	r, err := readRequest(input)
	var req *http.Request
	if err == nil {
		req, err = r.build(ctx, task, p.config.UserAgent)
	}
	if err != nil {
		return nil, &worker.Failure{Code: workflow.CodeHTTPBadRequest, Message: err.Error(), Applied: notApplied(task, false)}
	}
	end := p.share.begin(hostOf(req.URL), idOf(task), p.config.Now)
	a := p.send(req)
	end()
	if a.err != nil {
		return nil, a.failure(ctx, task)
	}
	v := verdict{answer: a, task: task, expect: r.Expect, now: p.config.Now()}
	if task.Direction == ringi.Probe {
		return v.probed()
	}
	return v.called()
}
