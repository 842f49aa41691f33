package order_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ringiflow/ringi/examples/order"
)

// S-1
func TestNoConnectionIsProofOfNoEffect(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	w := &world{Activities: &order.Activities{Stock: nobody, Payment: nobody, Shipping: nobody, Mail: nobody}}
	for _, op := range []string{"reserve", "release", "charge", "refund", "book", "cancel", "label", "send"} {
		if got, want := w.play(t, op), "unreachable retryable no"; got != want {
			t.Errorf("%s: %q, want %q", op, got, want)
		}
	}
	if got := w.find(t, "k"); got != order.AppliedUnknown {
		t.Errorf("find: %q, want %q", got, order.AppliedUnknown)
	}
}

// W14: a connection that breaks after it served other calls must not make the
// HTTP client send the charge again by itself.
func TestChargeIsNotRepeatedOnAReusedConnection(t *testing.T) {
	w := startWorld(t, t.TempDir(), lineWith(order.Fault{Kind: order.ChargeAnswerLostAfter}))
	w.Client = &http.Client{Transport: &http.Transport{}}
	if got := w.find(t, "k"); got != order.AppliedNo { // leaves an idle connection behind
		t.Fatalf("find answered %q", got)
	}
	if got := w.play(t, "charge"); got != lost {
		t.Errorf("charge answered %q, want %q", got, lost)
	}
	w.wantRows(t, order.Payment, "find k  0", "charge k o1 1")
}

func TestAnswersAreJudgedByWhatTheyProve(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"success", 200, `{"charge_id":"charge-7"}`, "charge-7"},
		{"success that nobody can read", 200, `<html>`, "answer_lost retryable unknown"},
		{"refusal with a code", 409, `{"code":"card_declined","message":"no"}`, "card_declined final no"},
		{"refusal without one", 404, `no such page`, "refused final no"},
		{"not looked at", 503, `{"code":"x","message":"later"}`, "unavailable retryable no"},
		{"broken over it", 500, `{"code":"internal","message":"oh"}`, "internal retryable unknown"},
		{"a gateway's opinion", 502, ``, "internal retryable unknown"},
		{"neither success nor refusal", 204, ``, "answer_lost retryable unknown"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		w := &world{Activities: &order.Activities{Payment: server.URL}}
		if got := w.play(t, "charge"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		server.Close()
	}
}

func TestFindReportsWhatIsWrongWithItself(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	if _, err := w.Find(t.Context(), "probe", order.FindIn{}); failure(t, err) != "bad_request final no" {
		t.Errorf("find without a key: %v", err)
	}
}
