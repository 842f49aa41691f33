package httpstep

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
)

// Whatever the input of a task is: it is refused, or the request goes to a web
// server under the path that was written, and says nothing that was not.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"method":"GET","url":"https://a.example/x?y=z","query":{"q":["a",1,true,null]},"headers":{"A":"b"},"expect":[200]}`,
		`{"method":"POST","url":"http://a.example","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":{"a":1}}`,
		`{"method":"PUT","url":"https://a.example/%2e%2e/","body":"x"}`,
		`{"method":"GET","url":"https://a.example\\@b.example","headers":{"A\r\nB":"c"}}`,
		`{"method":"GET","url":"https://a:b@c.example/#d"}`,
		`{"method":"GET","url":"https://１２７.0.0.1/"}`,
		`{}`, `null`, `[]`, `5`, ``,
	} {
		f.Add([]byte(seed), "run/step")
	}
	f.Fuzz(func(t *testing.T, raw []byte, key string) {
		if !json.Valid(raw) {
			return
		}
		r, err := readRequest(raw)
		if err != nil {
			return
		}
		req, err := r.build(t.Context(), ringi.Task{Key: key}, "ringi")
		if err != nil {
			return
		}
		u := req.URL
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Opaque != "" || u.Fragment != "" || len(u.String()) > maxURL {
			t.Errorf("%s is sent", u)
		}
		if climbs(u.Path) || strings.ContainsAny(u.Host, "\\@/ \r\n") {
			t.Errorf("%q leads elsewhere", u.String())
		}
		for name, values := range req.Header {
			for _, v := range values {
				if strings.ContainsAny(v, "\r\n\x00") {
					t.Errorf("the header %s is %q", name, v)
				}
			}
		}
		if got := req.Header.Get("Idempotency-Key"); req.Method != http.MethodGet && req.Method != http.MethodHead && got != key {
			t.Errorf("%s has the key %q, want %q", req.Method, got, key)
		}
		if req.Body != nil {
			if _, err := io.ReadAll(req.Body); err != nil {
				t.Error(err)
			}
		}
	})
}
