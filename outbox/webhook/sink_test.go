package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/webhook"
)

// O8, O-14: one event per request, whole, signed, in the order of its key, keys
// side by side.
func TestMessagesArriveSignedAndInOrder(t *testing.T) {
	e := startEndpoint(t)
	msgs := orders(10, "a", "b", "c")
	msgs[29].Headers = map[string]string{"traceparent": "00-ab-cd-01", "tracestate": "bad\nvalue"}
	s := e.sink(t, func(c *webhook.Config) { c.Source, c.Parallel = "//shop", 2 })
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	e.check(t)
	wantInOrder(t, e, 10, "a", "b", "c")
	if e.most > 2 {
		t.Errorf("%d requests at once, want at most 2", e.most)
	}
	if errs := s.Publish(t.Context(), msgs[29:]); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if got, want := string(e.body), string(outbox.AppendCloudEvent(nil, "//shop", &msgs[29])); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"content-type": "application/cloudevents+json", "webhook-id": msgs[29].ID,
		"webhook-timestamp": fmt.Sprint(begin.Unix()), "traceparent": "00-ab-cd-01", "tracestate": "",
	} {
		if got := e.last.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

// What each answer means.
func TestAnAnswerIsJudgedByItsStatus(t *testing.T) {
	const (
		delivered = iota
		refused
		excused
		failed
		blamed
	)
	for _, tc := range []struct {
		answer func(http.ResponseWriter, string)
		want   int
	}{
		{status(200), delivered},
		{status(202), delivered},
		{status(204), delivered},
		{status(400), refused},
		{status(409), refused},
		{status(413), refused},
		{status(422), refused},
		{status(401), failed}, // O-25: a secret that does not fit, or a route that is gone, is everybody's
		{status(403), failed},
		{status(404), failed},
		{status(405), failed},
		{status(410), failed},
		{status(429), excused},
		{status(429, "Retry-After", "7"), excused},
		{status(503, "Retry-After", "7"), excused},
		{status(408), failed},
		{status(425), failed},
		{status(500), blamed}, // O-22: it may be the message
		{status(507), blamed},
		{status(502), failed},
		{status(503), failed},
		{status(503, "Retry-After", "soon"), failed},
		{status(304), failed},
		{status(301, "Location", "/elsewhere"), failed},
		{status(307, "Location", "/elsewhere"), failed},
		{status(308, "Location", "https://127.0.0.1:1/"), failed},
	} {
		e := startEndpoint(t)
		e.answers(tc.answer)
		got := e.sink(t, nil).Publish(t.Context(), orders(2, "a"))
		kind := failed
		switch {
		case got[0] == nil:
			kind = delivered
		case outbox.Refused(got[0]):
			kind = refused
		case outbox.Excused(got[0]):
			kind = excused
		case outbox.Blamed(got[0]):
			kind = blamed
		}
		if kind != tc.want {
			t.Errorf("%v is judged %d, want %d", got[0], kind, tc.want)
		}
		if tc.want != delivered && (!errors.Is(got[1], outbox.ErrHeld) || e.requests() != 1) {
			t.Errorf("after %v: %v and %d requests, want the next message held and one request", got[0], got[1], e.requests())
		}
	}
}

// A secret in the URL and the endpoint's text: the first is not shown, the
// second is, cut short.
func TestAnErrorShowsTheAnswerAndHidesTheURL(t *testing.T) {
	e := startEndpoint(t)
	e.answers(func(w http.ResponseWriter, _ string) {
		w.WriteHeader(422)
		fmt.Fprint(w, "no such order ", strings.Repeat("x", 1000))
	})
	s := e.sink(t, nil)
	err := s.Publish(t.Context(), orders(1, "a"))[0]
	if !strings.Contains(err.Error(), "no such order") || len(err.Error()) > 400 {
		t.Errorf("%v (%d bytes)", err, len(err.Error()))
	}
	e.Close()
	err = s.Publish(t.Context(), orders(1, "a"))[0]
	if err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("without an endpoint: %v, want an error without the URL's token", err)
	}
	if text, _ := s.Describe(t.Context()); strings.Contains(text, "t0ken") || !strings.Contains(text, "duplicate window") {
		t.Errorf("description %q", text)
	}
}

// O-23: what is too large is refused here and stops only its own aggregate.
func TestAnOversizeMessageHarmsOnlyItsOwnAggregate(t *testing.T) {
	e := startEndpoint(t)
	msgs := orders(2, "a", "b")
	msgs[0].Payload = []byte(`"` + strings.Repeat("x", 2000) + `"`)
	got := e.sink(t, func(c *webhook.Config) { c.MaxBytes = 1000 }).Publish(t.Context(), msgs)
	if !outbox.Refused(got[0]) || !errors.Is(got[2], outbox.ErrHeld) || got[1] != nil || got[3] != nil {
		t.Errorf("answers %v", got)
	}
	wantInOrder(t, e, 2, "b")
}

// O-25: after failures in a row the endpoint is left alone; then one request
// goes out to see, and then everything.
func TestTheCircuitLeavesAFailingEndpointAlone(t *testing.T) {
	e := startEndpoint(t)
	e.answers(status(500))
	s := e.sink(t, func(c *webhook.Config) { c.Parallel, c.Failures = 1, 3 })
	msgs := orders(1, "a", "b", "c", "d", "e", "f")
	got := s.Publish(t.Context(), msgs)
	if e.requests() != 3 {
		t.Errorf("%d requests, want 3", e.requests())
	}
	for i, err := range got {
		if err == nil || outbox.Refused(err) || outbox.Excused(err) != (i >= 3) {
			t.Errorf("message %d: %v, want the sent ones failed and the others excused", i, err)
		}
	}
	e.pass(webhook.DefaultPauseFirst - time.Millisecond)
	s.Publish(t.Context(), msgs)
	if e.requests() != 3 {
		t.Errorf("%d requests while the circuit is open, want 3", e.requests())
	}
	e.pass(time.Millisecond)
	s.Publish(t.Context(), msgs)
	if e.requests() != 4 {
		t.Errorf("%d requests after the pause, want one more to see", e.requests())
	}
	e.pass(webhook.DefaultPauseFirst)
	s.Publish(t.Context(), msgs)
	if e.requests() != 4 {
		t.Errorf("%d requests, want none: the second pause is twice as long", e.requests())
	}
	e.pass(webhook.DefaultPauseFirst)
	e.answers(nil)
	for i, err := range s.Publish(t.Context(), msgs) {
		if err != nil {
			t.Errorf("message %d after the recovery: %v", i, err)
		}
	}
	e.answers(status(500))
	s.Publish(t.Context(), msgs[:1])
	if got := s.Publish(t.Context(), msgs[:1]); outbox.Excused(got[0]) {
		t.Errorf("one failure after the recovery: %v, want the count to begin anew", got[0])
	}
}

// Retry-After is a hint: followed, but not for days.
func TestRetryAfterIsFollowedWithinReason(t *testing.T) {
	for header, pause := range map[string]time.Duration{
		"30": 30 * time.Second, begin.Add(2 * time.Minute).Format(http.TimeFormat): 2 * time.Minute,
		"0": webhook.DefaultPauseFirst, "99999999": webhook.RetryAfterMost, "": webhook.DefaultPauseFirst,
	} {
		e := startEndpoint(t)
		e.answers(status(429, "Retry-After", header))
		s := e.sink(t, nil)
		s.Publish(t.Context(), orders(1, "a"))
		e.answers(nil)
		e.pass(pause - time.Second)
		if got := s.Publish(t.Context(), orders(1, "a")); pause > time.Second && got[0] == nil {
			t.Errorf("Retry-After %q: sent before %s", header, pause)
		}
		e.pass(time.Second)
		if got := s.Publish(t.Context(), orders(1, "a")); got[0] != nil {
			t.Errorf("Retry-After %q: after %s: %v", header, pause, got[0])
		}
	}
}

// An endpoint that takes its time costs the time-out and no more, and a stop
// ends at once without blaming anybody.
func TestASlowEndpointIsNotWaitedForForEver(t *testing.T) {
	e := startEndpoint(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	e.answers(func(http.ResponseWriter, string) { <-release })
	s := e.sink(t, func(c *webhook.Config) { c.Timeout = 50 * time.Millisecond })
	got := s.Publish(t.Context(), orders(2, "a"))
	if !errors.Is(got[0], context.DeadlineExceeded) || outbox.Refused(got[0]) || !errors.Is(got[1], outbox.ErrHeld) {
		t.Errorf("answers %v, want a time-out and one held", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range e.sink(t, nil).Publish(ctx, orders(1, "a", "b")) {
		if !outbox.Excused(err) {
			t.Errorf("after a stop: %v, want an excuse", err)
		}
	}
}

// Secrets rotate without a moment in which a receiver of either kind fails.
func TestSecretsRotateWithoutAGap(t *testing.T) {
	e := startEndpoint(t)
	first, second := e.secret, secret(t)
	s := e.sink(t, nil)
	send := func(step string) {
		t.Helper()
		if got := s.Publish(t.Context(), orders(1, "a")); got[0] != nil {
			t.Errorf("%s: %v", step, got[0])
		}
		e.check(t)
	}
	send("the old one")
	if err := s.Rotate([]webhook.Secret{second, first}); err != nil {
		t.Fatal(err)
	}
	send("both, the receiver knows the old one")
	if n := len(strings.Fields(e.last.Get("webhook-signature"))); n != 2 {
		t.Errorf("%d signatures, want 2", n)
	}
	e.secret = second
	send("both, the receiver knows the new one")
	if err := s.Rotate([]webhook.Secret{second}); err != nil {
		t.Fatal(err)
	}
	send("the new one")
	if err := s.Rotate(nil); err == nil {
		t.Error("rotated to no secret at all")
	}
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	good := secret(t)
	for name, tc := range map[string]struct {
		cfg  webhook.Config
		want string
	}{
		"no secret":  {webhook.Config{URL: "https://example.com/"}, "NewSecret"},
		"plain http": {webhook.Config{URL: "http://example.com/"}, "PlainHTTP"},
		"other":      {webhook.Config{URL: "ftp://example.com/", PlainHTTP: true}, "use https"},
		"no host":    {webhook.Config{URL: "https:///x"}, "no host"},
		"user":       {webhook.Config{URL: "https://u:pass@example.com/"}, "leave them out"},
		"not a URL":  {webhook.Config{URL: "https://[::1"}, "cannot be read"},
		"private":    {webhook.Config{URL: "https://10.0.0.7/"}, "AllowNetworks"},
		"private 6":  {webhook.Config{URL: "https://[::ffff:10.0.0.7]/"}, "AllowNetworks"},
	} {
		if name != "no secret" {
			tc.cfg.Secrets = []webhook.Secret{good}
		}
		_, err := webhook.New(tc.cfg)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %v, want it to say %q", name, err, tc.want)
		}
	}
	ok := webhook.Config{URL: "http://10.0.0.7/", PlainHTTP: true, Secrets: []webhook.Secret{good}, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if s, err := webhook.New(ok); err != nil || s.MaxBytes() != webhook.DefaultMaxBytes {
		t.Errorf("an allowed private endpoint: %v", err)
	}
}
