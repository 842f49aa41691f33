package webhook_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox/webhook"
)

func TestASecretIsReadAndNeverShown(t *testing.T) {
	text := webhook.NewSecret()
	s, err := webhook.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(shown, text[8:20]) || !strings.HasPrefix(shown, "whsec_…") {
		t.Errorf("printed as %s", shown)
	}
	if webhook.NewSecret() == text {
		t.Error("two secrets are the same")
	}
	for _, bad := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%%", "whsec_" + strings.Repeat("A", 88)} {
		if _, err := webhook.ParseSecret(bad); err == nil || len(bad) > 8 && strings.Contains(err.Error(), bad[6:]) {
			t.Errorf("secret %q: %v, want an error that does not repeat it", bad, err)
		}
	}
}

// What a receiver refuses: another secret, another body, another id, old times.
func TestVerifyRefusesWhatWasNotSignedJustNow(t *testing.T) {
	e := startEndpoint(t)
	e.sink(t, nil).Publish(t.Context(), orders(1, "a"))
	secrets := []webhook.Secret{secret(t), e.secret}
	for name, tc := range map[string]struct {
		change  func(h http.Header)
		secrets []webhook.Secret
		body    string
		later   time.Duration
		ok      bool
	}{
		"as it came":     {ok: true},
		"a bit later":    {later: webhook.Tolerance, ok: true},
		"a bit earlier":  {later: -webhook.Tolerance, ok: true},
		"too late":       {later: webhook.Tolerance + time.Second},
		"too early":      {later: -webhook.Tolerance - time.Second},
		"other secret":   {secrets: secrets[:1]},
		"other body":     {body: "{}"},
		"other id":       {change: func(h http.Header) { h.Set("webhook-id", "x") }},
		"other time":     {change: func(h http.Header) { h.Set("webhook-timestamp", fmt.Sprint(begin.Unix()+1)) }},
		"no time":        {change: func(h http.Header) { h.Del("webhook-timestamp") }},
		"no id":          {change: func(h http.Header) { h.Del("webhook-id") }},
		"no signature":   {change: func(h http.Header) { h.Del("webhook-signature") }},
		"other version":  {change: func(h http.Header) { h.Set("webhook-signature", "v1a"+h.Get("webhook-signature")[2:]) }},
		"among others":   {change: func(h http.Header) { h.Set("webhook-signature", "v1a,xx "+h.Get("webhook-signature")) }, ok: true},
		"cut signatures": {change: func(h http.Header) { h.Set("webhook-signature", h.Get("webhook-signature")[:10]) }},
	} {
		header, body := e.last.Clone(), e.body
		if tc.change != nil {
			tc.change(header)
		}
		if tc.body != "" {
			body = []byte(tc.body)
		}
		if tc.secrets == nil {
			tc.secrets = secrets
		}
		id, err := webhook.Verify(tc.secrets, header, body, begin.Add(tc.later))
		if ok := err == nil && id == order("a", 1).ID; ok != tc.ok {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
