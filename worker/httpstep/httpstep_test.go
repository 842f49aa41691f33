package httpstep_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/httpstep"
)

func TestTheRequestIsWhatTheStepSays(t *testing.T) { // W13: the key goes to the outside service
	s := startService(t, nil)
	for _, c := range []struct{ name, request, line, header, body string }{
		{"a GET has neither key nor body", `{"method":"GET","url":"URL/x"}`, "GET /x", "Idempotency-Key: ", ""},
		{"a POST has the key", `{"method":"POST","url":"URL/x"}`, "POST /x", "Idempotency-Key: r/s", ""},
		{"a DELETE has the key", `{"method":"DELETE","url":"URL/x"}`, "DELETE /x", "Idempotency-Key: r/s", ""},
		{"JSON keeps its numbers", `{"method":"PUT","url":"URL/x","body":{"n":9007199254740993,"d":0.10}}`, "PUT /x", "Content-Type: application/json", `{"n":9007199254740993,"d":0.10}`},
		{"a text is JSON too", `{"method":"PUT","url":"URL/x","body":"a"}`, "PUT /x", "Content-Type: application/json", `"a"`},
		{"a text of another type is sent as it is", `{"method":"PUT","url":"URL/x","headers":{"Content-Type":"text/plain"},"body":"a\nb"}`, "PUT /x", "Content-Type: text/plain", "a\nb"},
		{"a form", `{"method":"POST","url":"URL/x","headers":{"content-type":"application/x-www-form-urlencoded"},"body":{"b":"x y","a":[1,true],"c":null}}`, "POST /x", "Content-Type: application/x-www-form-urlencoded", "a=1&a=true&b=x+y"},
		{"no body", `{"method":"PATCH","url":"URL/x","body":null}`, "PATCH /x", "Content-Type: ", ""},
		{"a query", `{"method":"GET","url":"URL/x?z=1","query":{"b":"&=","a":["q",2],"none":null}}`, "GET /x?z=1&a=q&a=2&b=%26%3D", "X: ", ""},
		{"headers", `{"method":"GET","url":"URL","headers":{"X-Team":"shop","X-N":5,"User-Agent":"mine"}}`, "GET /", "X-Team: shop", ""},
		{"an agent", `{"method":"GET","url":"URL"}`, "GET /", "User-Agent: ringi", ""},
		{"no compression", `{"method":"GET","url":"URL"}`, "GET /", "Accept-Encoding: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, f := perform(t.Context(), local(), firstOf("idempotent", strings.ReplaceAll(c.request, "URL", s.URL))); f != nil {
				t.Fatal(f)
			}
			r, body := s.last()
			name, want, _ := strings.Cut(c.header, ": ")
			if got := r.Method + " " + r.URL.String(); got != c.line || r.Header.Get(name) != want || body != c.body {
				t.Errorf("got %s, %s: %s, %q", got, name, r.Header.Get(name), body)
			}
		})
	}
}

func TestARequestThatCannotBeSentIsDefinite(t *testing.T) {
	s := startService(t, nil)
	for _, request := range []string{
		`{"method":"GET","url":5}`,
		`{"method":"GET","url":"URL","unknown":1}`,
		`{"method":"GE T","url":"URL"}`,
		`{"method":"CONNECT","url":"URL"}`,
		`{"method":"GET","url":"URL","headers":{"A B":"c"}}`,
		`{"method":"GET","url":"URL","headers":{"":"c"}}`,
		`{"method":"GET","url":"/x"}`,
		`{"method":"GET","url":"ftp://a.example"}`,
		`{"method":"GET","url":"https:///x"}`,
		`{"method":"GET","url":"https://a:b@a.example"}`,
		`{"method":"GET","url":"URL/#x"}`,
		`{"method":"GET","url":"URL/a b"}`,
		`{"method":"GET","url":"URL/a\nHost: b"}`,
		`{"method":"GET","url":"URL\\@b.example"}`,
		`{"method":"GET","url":"URL/orders/../admin"}`,
		`{"method":"GET","url":"URL/orders/%2e%2E/admin"}`,
		`{"method":"GET","url":"URL/orders/..%2fadmin"}`,
		`{"method":"GET","url":"URL/` + strings.Repeat("a", 8<<10) + `"}`,
		`{"method":"GET","url":"URL","query":{"a":{"b":1}}}`,
		`{"method":"GET","url":"URL","headers":{"A":null}}`,
		`{"method":"GET","url":"URL","headers":{"A":"b\r\nC: d"}}`,
		`{"method":"GET","url":"URL","headers":{"A":"` + strings.Repeat("b", 9<<10) + `"}}`,
		`{"method":"PUT","url":"URL","headers":{"Content-Type":"text/plain"},"body":{"a":1}}`,
		`{"method":"PUT","url":"URL","headers":{"Content-Type":";;"},"body":"a"}`,
		`{"method":"POST","url":"URL","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":{"a":{"b":1}}}`,
	} {
		_, f := perform(t.Context(), local(), firstOf("at_most_once", strings.ReplaceAll(request, "URL", s.URL)))
		if got, want := shown(f), `http_bad_request retryable=false applied="no" after=0s`; got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	task := firstOf("idempotent", `{"method":"PUT","url":"`+s.URL+`"}`)
	task.Key = "a\r\nX: y"
	if _, f := perform(t.Context(), local(), task); f == nil || f.Code != "http_bad_request" {
		t.Errorf("a key with a line break: %s", shown(f))
	}
	if s.requests() > 0 {
		t.Error("something was sent all the same")
	}
}

func TestAnAnswerBecomesAnOutput(t *testing.T) {
	big := strings.Repeat("a", httpstep.MaxAnswer-2)
	for _, c := range []struct{ name, kind, text, want string }{
		{"JSON", "application/json; charset=utf-8", `{"n": 9007199254740993}`, `{"n":9007199254740993}`},
		{"JSON of another name", "application/problem+json", `[1]`, `[1]`},
		{"JSON of no name", "", `{"a":1}`, `{"a":1}`},
		{"text", "text/plain", `{"a":1}`, `"{\"a\":1}"`},
		{"text of no name", "", `hello`, `"hello"`},
		{"nothing", "application/json", ``, `null`},
		{"JSON that is none", "application/json", `{"a":`, `"{\"a\":"`},
		{"two values", "application/json", `1 2`, `"1 2"`},
		{"text that is not UTF-8", "text/plain", "a\xffb\x00c", `"a` + "\uFFFD" + `b` + "\uFFFD" + `c"`},
		{"JSON that is not UTF-8", "application/json", "\"\xff\"", `"\"` + "\uFFFD" + `\""`},
		{"as much as is taken", "application/json", `"` + big + `"`, `"` + big + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startService(t, body(c.kind, c.text))
			got, f := perform(t.Context(), local(), firstOf("pure", `{"method":"GET","url":"`+s.URL+`"}`))
			if f != nil || got != c.want {
				t.Errorf("got %.80s %v, want %.80s", got, f, c.want)
			}
		})
	}
	s := startService(t, body("application/json", `"`+big+`a"`))
	if _, f := perform(t.Context(), local(), firstOf("idempotent", `{"method":"PUT","url":"`+s.URL+`"}`)); shown(f) != `output_too_large retryable=false applied="unknown" after=0s` {
		t.Errorf("too much: %s", shown(f))
	}
	s = startService(t, status(404))
	if out, f := perform(t.Context(), local(), firstOf("idempotent", `{"method":"DELETE","url":"`+s.URL+`","expect":[200,404]}`)); f != nil || out != `"says 404"` {
		t.Errorf("an expected 404: %s %v", out, f)
	}
	if out, f := perform(t.Context(), local(), firstOf("pure", `{"method":"HEAD","url":"`+s.URL+`","expect":[404]}`)); f != nil || out != `null` {
		t.Errorf("a HEAD: %s %v", out, f)
	}
}

// Every status is named, and says no more about the effect than who speaks can
// know: not even a definite no speaks for attempts that went before it, unless
// it comes from who has looked at the key.
func TestAStatusBecomesAFailure(t *testing.T) { // W14
	for _, c := range []struct {
		status int
		effect string
		first  string // as the first hand-out of the first attempt
		later  string // as the second
	}{
		{200, "idempotent", "none", "none"},
		{204, "idempotent", "none", "none"},
		{301, "at_most_once", `retryable=false applied="unknown"`, `retryable=false applied="unknown"`},
		{303, "idempotent", `retryable=false applied="unknown"`, `retryable=false applied="unknown"`},
		{400, "idempotent", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{401, "idempotent", `retryable=false applied="no"`, `retryable=false applied="unknown"`},
		{401, "probeable", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{402, "idempotent", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{403, "idempotent", `retryable=false applied="no"`, `retryable=false applied="unknown"`},
		{404, "idempotent", `retryable=false applied="no"`, `retryable=false applied="unknown"`},
		{404, "pure", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{404, "at_most_once", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{408, "idempotent", `retryable=true applied=""`, `retryable=true applied=""`},
		{409, "idempotent", `retryable=true applied=""`, `retryable=true applied=""`},
		{409, "at_most_once", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{412, "idempotent", `retryable=false applied="no"`, `retryable=false applied="unknown"`},
		{422, "idempotent", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{425, "probeable", `retryable=true applied="no"`, `retryable=true applied="no"`},
		{429, "at_most_once", `retryable=true applied="no"`, `retryable=true applied="no"`},
		{500, "at_most_once", `retryable=true applied=""`, `retryable=true applied=""`},
		{501, "idempotent", `retryable=false applied="no"`, `retryable=false applied="unknown"`},
		{502, "idempotent", `retryable=true applied=""`, `retryable=true applied=""`},
		{503, "probeable", `retryable=true applied=""`, `retryable=true applied=""`},
		{504, "pure", `retryable=true applied=""`, `retryable=true applied=""`},
		{505, "probeable", `retryable=false applied="no"`, `retryable=false applied="no"`},
		{599, "pure", `retryable=true applied=""`, `retryable=true applied=""`},
	} {
		s := startService(t, status(c.status))
		request := `{"method":"POST","url":"` + s.URL + `","expect":[200,204]}`
		for n, want := range map[int64]string{1: c.first, 2: c.later} {
			_, f := perform(t.Context(), local(), attempt(c.effect, 1, n, request))
			if want != "none" {
				want = fmt.Sprintf("http_%d %s after=0s", c.status, want)
			}
			if got := shown(f); got != want {
				t.Errorf("%d %s, hand-out %d: got %s, want %s", c.status, c.effect, n, got, want)
			}
			if f != nil && (!strings.Contains(f.Message, fmt.Sprint("answered ", c.status)) || !strings.Contains(f.Message, fmt.Sprint("says ", c.status))) {
				t.Errorf("the message does not say what came: %s", f.Message)
			}
		}
	}
}

func TestRetryAfterIsHandedOn(t *testing.T) {
	for _, c := range []struct {
		status int
		after  string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute},
		{503, "Sun, 01 Mar 2026 09:00:30 GMT", 30 * time.Second},
		{503, "soon", 0},
		{404, "120", 0},
	} {
		s := startService(t, status(c.status, "Retry-After", c.after))
		_, f := perform(t.Context(), local(), firstOf("pure", `{"method":"GET","url":"`+s.URL+`"}`))
		if f == nil || f.RetryAfter != c.want {
			t.Errorf("%d with %s: %s, want %s", c.status, c.after, shown(f), c.want)
		}
	}
}

func TestAnAnswerThatDoesNotComeIsNoAnswer(t *testing.T) { // W14
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		{"a connection that breaks behind the request", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, `http_no_answer retryable=true applied="" after=0s`},
		{"a connection that breaks inside the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}, `http_no_answer retryable=true applied="" after=0s`},
		{"a connection that breaks inside a refusal", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, `http_422 retryable=false applied="no" after=0s`},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, `timed_out retryable=true applied="" after=0s`},
		{"a header without end", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("a", 1<<10))
			}
		}, `http_no_answer retryable=true applied="" after=0s`},
		{"an answer without end", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, `output_too_large retryable=false applied="unknown" after=0s`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startService(t, c.answer)
			ctx, stop := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, worker.ErrTimeout)
			defer stop()
			if _, f := perform(ctx, local(), firstOf("idempotent", `{"method":"PUT","url":"`+s.URL+`"}`)); shown(f) != c.want {
				t.Errorf("got %s, want %s: %v", shown(f), c.want, f)
			}
			if s.requests() != 1 {
				t.Errorf("the request was sent %d times in one attempt", s.requests())
			}
		})
	}
}

func TestWhatWasNeverConnectedWasNotApplied(t *testing.T) { // W14
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for _, c := range []struct{ name, url, want, later string }{
		{"nobody listens", "http://" + closed.Addr().String(), `http_unreachable retryable=true applied="no" after=0s`, `http_unreachable retryable=true applied="no" after=0s`},
		{"no such name", "http://nobody.invalid", `http_unreachable retryable=true applied="no" after=0s`, `http_unreachable retryable=true applied="no" after=0s`},
		{"a stranger's certificate", secure.URL, `http_unreachable retryable=false applied="no" after=0s`, `http_unreachable retryable=false applied="unknown" after=0s`},
		{"a private address", "http://10.0.0.1", `http_private_address retryable=false applied="no" after=0s`, `http_private_address retryable=false applied="unknown" after=0s`},
	} {
		request := `{"method":"PUT","url":"` + c.url + `"}`
		if _, f := perform(t.Context(), local(), firstOf("idempotent", request)); shown(f) != c.want {
			t.Errorf("%s: got %s, want %s: %v", c.name, shown(f), c.want, f)
		}
		if _, f := perform(t.Context(), local(), attempt("idempotent", 2, 1, request)); shown(f) != c.later {
			t.Errorf("%s, later: got %s, want %s: %v", c.name, shown(f), c.later, f)
		}
	}
	trusting := local()
	trusting.RootCAs = x509.NewCertPool()
	trusting.RootCAs.AddCert(secure.Certificate())
	if _, f := perform(t.Context(), trusting, firstOf("pure", `{"method":"GET","url":"`+secure.URL+`"}`)); f == nil || f.Code != "http_404" {
		t.Errorf("a certificate that is trusted: %v", f)
	}
}

func TestAProbeIsAnsweredByStatus(t *testing.T) { // W14
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		want   string // output, or the code of the failure
	}{
		{"found", body("application/json", `{"id":"ch_1"}`), `{"applied":"yes","output":{"id":"ch_1"}}`},
		{"found, with nothing to say", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, `{"applied":"yes","output":null}`},
		{"not found", status(404), `{"applied":"no"}`},
		{"gone", status(410), `{"applied":"no"}`},
		{"its own word", body("application/json", `{"applied":"unknown"}`), `{"applied":"unknown"}`},
		{"a word that is none", body("application/json", `{"applied":"maybe"}`), `{"applied":"yes","output":{"applied":"maybe"}}`},
		{"not allowed", status(403), "http_403"},
		{"broken", status(500), "http_500"},
		{"elsewhere", status(302, "Location", "/x"), "http_302"},
	} {
		s := startService(t, c.answer)
		task := firstOf("pure", `{"method":"GET","url":"`+s.URL+`"}`)
		task.Direction = ringi.Probe
		got, f := perform(t.Context(), local(), task)
		if f != nil {
			got = f.Code
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
