package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/ringiflow/ringi/egress"
	"github.com/ringiflow/ringi/outbox"
)

// Defaults of Config, each with its reason.
const (
	// DefaultTimeout bounds one request. It is below half of a relay's default
	// lease, so that an answer comes before the relay stops waiting.
	DefaultTimeout = 10 * time.Second

	// DefaultMaxBytes is the largest body. Receivers commonly take a mebibyte.
	DefaultMaxBytes = 1 << 20

	// DefaultParallel is how many requests are under way at once: enough to hide
	// the distance, too few to hurt a small receiver.
	DefaultParallel = 8

	// DefaultFailures in a row open the circuit: more than one bad message
	// causes by itself, few enough to spare an endpoint that struggles.
	DefaultFailures = 5

	// DefaultPauseFirst and DefaultPauseMost are how long an open circuit stays
	// open, doubling from the one to the other.
	DefaultPauseFirst = time.Second
	DefaultPauseMost  = time.Minute

	// RetryAfterMost is the longest Retry-After that is followed. An endpoint
	// that asks for days would silence itself by mistake.
	RetryAfterMost = time.Hour

	idleTimeout     = 90 * time.Second // as net/http has it by default
	mostHeaderBytes = 64 << 10         // of an answer; nothing in it is long
)

// Config configures a Sink. URL and Secrets are needed; every other field has a
// default that its zero value stands for.
type Config struct {
	// URL is the endpoint: https, a host, no user and no fragment.
	URL string

	// PlainHTTP allows http, which hides nothing from the network in between.
	PlainHTTP bool

	// Secrets sign every message, each with a signature of its own; the newest
	// first. At least one is needed.
	Secrets []Secret

	// Source is the CloudEvents source; empty means outbox.DefaultEventSource.
	Source string

	// AllowNetworks are private networks that may be reached all the same.
	AllowNetworks []netip.Prefix

	// MaxBytes is the largest body; a larger message is refused without being
	// sent. 0 means DefaultMaxBytes.
	MaxBytes int

	// Timeout bounds one request, from the look-up of the name to the end of the
	// answer; 0 means DefaultTimeout.
	Timeout time.Duration

	// Parallel is how many requests are under way at once, of different keys; 0
	// means DefaultParallel.
	Parallel int

	// Failures in a row open the circuit for PauseFirst, which doubles up to
	// PauseMost while it stays so. 0 means the defaults.
	Failures   int
	PauseFirst time.Duration
	PauseMost  time.Duration

	// RootCAs are who may vouch for the endpoint; nil means the system's.
	RootCAs *x509.CertPool

	// Resolver looks names up; nil means net.DefaultResolver.
	Resolver *net.Resolver

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Sink posts to one endpoint. It implements outbox.Sink; one goroutine at a time
// calls Publish, any number call Rotate.
type Sink struct {
	cfg     Config
	url     *url.URL
	client  *http.Client
	circuit circuit

	mu      sync.Mutex
	secrets []Secret
}

var _ outbox.Sink = (*Sink)(nil)

// New returns a sink. It does not look the endpoint up, which may be down. An
// address that is written in the URL itself is checked at once.
func New(cfg Config) (*Sink, error) {
	u, err := parse(cfg.URL, cfg.PlainHTTP)
	if err != nil {
		return nil, err
	}
	if len(cfg.Secrets) == 0 {
		return nil, fmt.Errorf("webhook: %s has no secret; make one with NewSecret and give it to the receiver", u.Redacted())
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := egress.Permitted(a, cfg.AllowNetworks); err != nil {
			return nil, explained(err)
		}
	}
	fill(&cfg)
	dialer := &net.Dialer{Timeout: cfg.Timeout, Resolver: cfg.Resolver, ControlContext: guard(cfg.AllowNetworks)}
	return &Sink{
		cfg: cfg, url: u, secrets: cfg.Secrets,
		circuit: circuit{failures: cfg.Failures, first: cfg.PauseFirst, most: cfg.PauseMost},
		client: &http.Client{
			// A redirect is an answer, and not a good one.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
				ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: mostHeaderBytes,
				MaxConnsPerHost: cfg.Parallel, MaxIdleConnsPerHost: cfg.Parallel, IdleConnTimeout: idleTimeout,
			},
		},
	}, nil
}

func parse(text string, plain bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("webhook: the URL cannot be read; write https://host/path")
	case u.Scheme != "https" && (u.Scheme != "http" || !plain):
		return nil, fmt.Errorf("webhook: %s: scheme %q; use https, or allow http with PlainHTTP where the network is trusted", u.Redacted(), u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("webhook: %s has no host", u.Redacted())
	case u.User != nil, u.Fragment != "":
		return nil, fmt.Errorf("webhook: %s names a user or a fragment; the signature says who sends, so leave them out", u.Redacted())
	}
	return u, nil
}

func fill(cfg *Config) {
	orDefault(&cfg.MaxBytes, DefaultMaxBytes)
	orDefault(&cfg.Timeout, DefaultTimeout)
	orDefault(&cfg.Parallel, DefaultParallel)
	orDefault(&cfg.Failures, DefaultFailures)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
}

// orDefault takes nothing and less for not set.
func orDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Rotate replaces the secrets from the next request on.
func (s *Sink) Rotate(secrets []Secret) error {
	if len(secrets) == 0 {
		return errors.New("webhook: no secret to rotate to; a message must be signed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = secrets
	return nil
}

func (s *Sink) current() []Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets
}

// MaxBytes is the largest body that the sink sends, the event's envelope included.
func (s *Sink) MaxBytes() int { return s.cfg.MaxBytes }

// Describe says in one line what the destination promises, for people who start
// a relay. It asks nobody and its error is always nil.
func (s *Sink) Describe(context.Context) (string, error) {
	return fmt.Sprintf("webhook: %s://%s%s answers within %s; duplicate window: none of ours, a message sent again has the same webhook-id, by which the receiver drops it; bodies of at most %d bytes",
		s.url.Scheme, s.url.Host, s.url.EscapedPath(), s.cfg.Timeout, s.cfg.MaxBytes), nil
}

// Close ends idle connections. Closing twice is fine.
func (s *Sink) Close() error {
	s.client.CloseIdleConnections()
	return nil
}
